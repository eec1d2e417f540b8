package inspect_test

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/predict/inspect"
)

// WebLLM keeps the types of a quantised file, so its weights take what an estimate predicts, not their size as floats.
func TestWeightsInWebLLMAreThoseOfTheEstimate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	check.Err(t, tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Hidden: 256, Heads: 4, HeadDim: 64, Type: "Q4_K"}))
	kinds := engine.Kinds{{Name: webllm.Name, Title: "WebLLM", Formats: []string{models.WebLLM}}}
	info, err := inspect.Open(t.Context(), path, kinds, nil)
	check.Err(t, err)
	m, err := models.Sizes(path)
	check.Err(t, err)
	for dtype, got := range map[string]int64{"f32": info.Packaged.F32, "f16": info.Packaged.F16} {
		e, err := estimate.Of(m, estimate.Setup{Engine: webllm.Kind.Memory, Context: 64, DType: dtype})
		check.Err(t, err)
		if want := e.Component(estimate.Weights).Best; got != want || got > info.Parameters {
			t.Errorf("%s: %d bytes for %d parameters, the estimate is %d", dtype, got, info.Parameters, want)
		}
	}
	var text strings.Builder
	info.Print(&text)
	if !strings.Contains(text.String(), "in WebLLM      weights take 0.") {
		t.Errorf("%s", text.String())
	}
}
