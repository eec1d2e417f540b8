package chart

import (
	"testing"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// An engine has its colour whatever else is in the report; no two that fit share one.
func TestEnginesKeepTheirColours(t *testing.T) {
	of := func(engines ...string) map[string]int {
		res := &compare.Result{}
		for _, e := range engines {
			res.Cells = append(res.Cells, &compare.Cell{Setup: evidence.Setup{Spec: record.Cell{Engine: e}}})
		}
		return (&View{Res: res, Own: map[string]int{"webllm": 1, "llamacpp": 2, "ollama": 3, "hf": 5}}).engineColour()
	}
	if a, b := of("llamacpp", "webllm"),
		of("exec:mine", "webllm", "ollama", "llamacpp"); a["llamacpp"] != b["llamacpp"] || a["webllm"] != b["webllm"] {
		t.Errorf("%v, and %v beside others", a, b)
	}
	seen := map[int]string{}
	for e, c := range of("exec:a", "hf", "wllama", "webllm", "exec:b", "llamacpp") {
		if other, taken := seen[c]; taken || c < 1 || c > engineColours {
			t.Errorf("%s and %s have colour %d", e, other, c)
		}
		seen[c] = e
	}
}
