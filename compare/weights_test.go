package compare_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// Each form of a converted model's weights is set against the engine that has one form, and said rightly.
func TestEachFormOfWeightsIsSetAgainstTheFile(t *testing.T) {
	web := func(id int, form, same string) comparetest.Engine {
		e := comparetest.Browser(6)
		e.Cell.ID, e.Cell.Setup, e.Cell.Weights = id, id-1, form
		e.Device = record.Device{Class: record.CPU}
		e.Info.Policy = map[string]string{"weights": same, "weights_dtype": "q4_0", "kv_dtype": "f32"}
		return e
	}
	native := comparetest.Native(6)
	native.Cell.ID, native.Cell.Setup = 1, 1
	r := compare.Runs(comparetest.Run(t, "forms", native, web(2, "", "same weights, bit for bit"),
		web(3, "f32", "same model, other weights")))
	if len(r.Comparisons) != 2 {
		t.Fatalf("%d pairs, want 2: %+v", len(r.Comparisons), r.Comparisons)
	}
	all := strings.Join(r.Comparability, "\n")
	for _, want := range []string{"weights: same weights, bit for bit (llamacpp and webllm)",
		"weights: same model, other weights (llamacpp and webllm (weights f32))"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in:\n%s", want, all)
		}
	}
	if facts := strings.Join(r.Answer().Facts, "\n"); !strings.Contains(facts,
		"webllm as-is: same weights, bit for bit; webllm f32: same model, other weights") {
		t.Errorf("facts:\n%s", facts)
	}
}
