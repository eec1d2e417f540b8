package evidence_test

import (
	"strings"
	"testing"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// Weights that were made from quantised ones say so beside their dtype.
func TestDTypesSayWhatWeightsWereMadeFrom(t *testing.T) {
	for want, c := range map[string]struct {
		model record.Model
		asked string // form of the weights
		now   string // in the engine
	}{
		"f32":                                  {record.Model{DType: "f32"}, "", "f32"},
		"f16":                                  {record.Model{DType: "f32"}, "", "f16"},
		"f32 from q4_1":                        {record.Model{DType: "q4_1"}, "", "f32"},
		"q4_1":                                 {record.Model{DType: "q4_1"}, "", "q4_1"},
		"q4f32_1 from q4_1":                    {record.Model{DType: "q4_1"}, "q4f32_1", "q4f32_1"},
		"q4f32_1":                              {record.Model{DType: "f32"}, "q4f32_1", "q4f32_1"},
		"q8_0 from 4-bit weights":              {record.Model{DType: "q8_0", MadeFrom: "4-bit weights"}, "", "q8_0"},
		"Q4_K - Medium":                        {record.Model{DType: "q4_k_m"}, "", "Q4_K - Medium"}, // as an engine calls it
		"f32 from 4-bit weights, KV cache f16": {record.Model{DType: "f32", MadeFrom: "4-bit weights"}, "", "f32"},
	} {
		s := evidence.Setup{Spec: record.Cell{Model: c.model, Weights: c.asked},
			Engine: &record.EngineInfo{Policy: map[string]string{"weights_dtype": c.now}}}
		if strings.HasSuffix(want, "KV cache f16") {
			s.Engine.Policy["kv_dtype"] = "f16"
		}
		if got := s.DTypes(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
