package estimate

import (
	"math"
	"testing"

	"llmparity/internal/models/modelsize"
)

// Peaks of total PSS of vLLM 0.32 on a CPU, one thread, f32, without compiling, for 512 tokens of context, in MiB. The
// formula was fitted to the first two; the last is a random model whose head is not tied.
func TestVLLMOnCPU(t *testing.T) {
	for name, c := range map[string]struct {
		sizes           modelsize.Numbers
		measured, cache float64
	}{
		"tiny": {modelsize.Numbers{Parameters: 426624, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 128, Intermediate: 256,
			Vocab: 512}, 1456.8, 0.625},
		"smollm2": {modelsize.Numbers{Parameters: 134515008, Layers: 30, Heads: 9, KVHeads: 3, Hidden: 576,
			Intermediate: 1536, Vocab: 49152}, 2512.2, 28.125},
		"wide": {modelsize.Numbers{Parameters: 126362624, Layers: 4, Heads: 16, KVHeads: 4, Hidden: 1024,
			Intermediate: 4096, Vocab: 32000}, 2543.6, 5},
	} {
		m, err := modelsize.FromNumbers(c.sizes)
		if err != nil {
			t.Fatal(err)
		}
		s := Setup{Engine: VLLM, InputLen: 25, OutputLen: 15}
		s.Take(map[string]string{"device": "cpu", "context": "512", "weights_dtype": "f32", "kv_dtype": "f32",
			"kv_cells": "640"})
		e := of(t, m, s)
		got, cache := float64(e.Component(Increase).Best)/mib, float64(e.Component(KVReserved).Best)/mib
		if off := got/c.measured - 1; math.Abs(off) > 0.1 || cache != c.cache {
			t.Errorf("%s: %.0f MiB are predicted, %.0f were measured (%+.1f%%); KV cache %g, want %g", name, got,
				c.measured, 100*off, cache, c.cache)
		} else {
			t.Logf("%s: %.0f MiB are predicted, %.0f were measured (%+.1f%%)", name, got, c.measured, 100*off)
		}
	}
}
