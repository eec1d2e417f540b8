package estimate

import (
	"slices"
	"testing"
)

// A predicted component has the definition of the measured one: parts come to the increase, and
// the increase to the total.
func TestPartsComeToWhatIsMeasured(t *testing.T) {
	small := config(t, "smollm2-135m")
	for name, c := range map[string]struct {
		s               Setup
		overhead, total bool
		below           bool // less than nothing is left over
	}{
		"llama.cpp, a short prompt in a long context": {Setup{Engine: LlamaCPP, Context: 8192, InputLen: 5, OutputLen: 15,
			Own: []any{GGMLSettings{NoFlash: true}}}, true, true, true},
		"llama.cpp, a prompt that fills it": {Setup{Engine: LlamaCPP, Context: 512, InputLen: 500,
			OutputLen: 12}, true, true, false},
		"Ollama": {Setup{Engine: Ollama, Context: 512, InputLen: 500,
			OutputLen: 12}, true, false, false},
		"WebLLM": {Setup{Engine: WebLLM, Context: 512}, true, false, false},
		"WebLLM on a GPU": {Setup{Engine: WebLLM, Context: 512, OnGPU: true}, false, false,
			false},
		"layers on a GPU": {Setup{Engine: LlamaCPP, Context: 512, GPULayers: 3}, false,
			false, false},
		"llama.cpp on three devices": {Setup{Engine: LlamaCPP, Context: 512, TensorParallel: 3}, false,
			false, false},
		"vLLM": {Setup{Engine: VLLM, Context: 512}, false, false, false},
	} {
		e := of(t, small, c.s)
		parts := map[string]Component{}
		for _, p := range e.AsMeasured() {
			if _, twice := parts[p.Name]; twice || p.Low > p.Best || p.Best > p.High || p.Method == "" ||
				p.Confidence == "" {
				t.Errorf("%s: %+v", name, p)
			}
			parts[p.Name] = p
		}
		if parts[Program].Best != e.Component(Framework).Best || parts[TotalReserved].Best != e.Component(Total).Best ||
			parts[Program].Best <= 0 {
			t.Errorf("%s: %+v and %+v", name, parts[Program], parts[TotalReserved])
		}
		left, ok := parts[Framework]
		if ok != c.overhead || (left.Best < 0) != c.below {
			t.Errorf("%s: left over is %+v", name, left)
		}
		if sum := parts[Weights].Best + parts[KVReserved].Best + parts[Activation].Best + left.Best; ok &&
			sum != parts[Increase].Best {
			t.Errorf("%s: the parts come to %d, the increase to %d", name, sum, parts[Increase].Best)
		}
		if all, ok := parts[Total]; ok != c.total || ok && all.Best != parts[Increase].Best {
			t.Errorf("%s: the total is %+v, the increase %+v", name, all, parts[Increase])
		}
	}
	if names := of(t, small, Setup{Engine: LlamaCPP, Context: 512}).Components; !slices.ContainsFunc(
		names, func(c Component) bool { return c.Name == TotalUsed }) {
		t.Error("an estimate by itself doesn't tell the total as used any more")
	}
}
