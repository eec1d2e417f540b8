package estimate

import (
	"math"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/models/modelsize"
)

// The most that intermediate tensors took at once in prefills by transformers 5 with torch 2.13 on a CPU, f32, in MiB:
// with long prompts, and with one that takes less than the logits.
func TestTransformersHoldsActivations(t *testing.T) {
	tiny := modelsize.Numbers{Parameters: 426624, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 128, Intermediate: 256,
		Vocab: 512}
	small := modelsize.Numbers{Parameters: 134515008, Layers: 30, Heads: 9, KVHeads: 3, Hidden: 576,
		Intermediate: 1536, Vocab: 49152}
	wide := modelsize.Numbers{Parameters: 384310272, Layers: 2, Heads: 32, KVHeads: 8, Hidden: 2048,
		Intermediate: 8192, Vocab: 128256}
	for _, c := range []struct {
		sizes    modelsize.Numbers
		prompt   int
		measured float64
	}{{tiny, 25, 0.1288}, {tiny, 256, 1.3184}, {small, 14, 0.3763}, {small, 361, 9.7031}, {wide, 256, 32.1309}} {
		m, err := modelsize.FromNumbers(c.sizes)
		if err != nil {
			t.Fatal(err)
		}
		s := Setup{Engine: &engine.Memory{Name: "huggingface", Runtime: "torch", Before: 370 << 20}, DType: "f32",
			InputLen: c.prompt, OutputLen: 8, OnCPU: true}
		got := float64(of(t, m, s).Component(Activation).Best) / mib
		if off := got/c.measured - 1; math.Abs(off) > 0.02 {
			t.Errorf("%d layers of %d, %d tokens: %.4f MiB are predicted, %.4f were measured", c.sizes.Layers,
				c.sizes.Hidden, c.prompt, got, c.measured)
		}
	}
}

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
		measured := e.AsMeasured()
		total := slices.IndexFunc(measured, func(c Component) bool { return c.Name == Total })
		if total < 0 {
			t.Fatalf("%s: no total", name)
		}
		got := float64(measured[total].Best) / mib
		if off := got/c.measured - 1; math.Abs(off) > 0.1 {
			t.Errorf("%s: %.0f MiB are predicted, %.0f were measured (%+.1f%%)", name, got, c.measured, 100*off)
		}
	}
}
