package estimate

import (
	"math"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/models/modelsize"
)

// Peaks of PSS of transformers 5 with torch 2.13 on a CPU, f32, for 512 tokens of context, in MiB. The formula was
// fitted to the first two; the last is a random model of Llama 3.2's width.
func TestTransformersOnCPU(t *testing.T) {
	for name, c := range map[string]struct {
		sizes    modelsize.Numbers
		measured float64
	}{
		"tiny": {modelsize.Numbers{Parameters: 426624, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 128, Intermediate: 256,
			Vocab: 512}, 400.9},
		"smollm2": {modelsize.Numbers{Parameters: 134515008, Layers: 30, Heads: 9, KVHeads: 3, Hidden: 576,
			Intermediate: 1536, Vocab: 49152}, 953.6},
		"wide": {modelsize.Numbers{Parameters: 384310272, Layers: 2, Heads: 32, KVHeads: 8, Hidden: 2048,
			Intermediate: 8192, Vocab: 128256}, 1910.8},
	} {
		m, err := modelsize.FromNumbers(c.sizes)
		if err != nil {
			t.Fatal(err)
		}
		s := Setup{Engine: &engine.Memory{Name: "huggingface", Runtime: "torch", Before: 370 << 20}, DType: "f32",
			InputLen: 25, OutputLen: 15}
		s.Take(map[string]string{"device": "cpu", "context": "512", "weights_dtype": "f32", "kv_dtype": "f32"})
		e := of(t, m, s)
		got := float64(s.Engine.Before+e.Component(Total).Best) / mib
		if off := got/c.measured - 1; math.Abs(off) > 0.1 {
			t.Errorf("%s: %.0f MiB are predicted, %.0f were measured (%+.1f%%)", name, got, c.measured, 100*off)
		}
	}
}
