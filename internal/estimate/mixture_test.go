package estimate

import "testing"

// Sizes as the files have them. SmolLM2's rows of 576 values are no multiple of 256, and its embedding is the head: of
// the Q4_1 file the tensors are 66355200 bytes of Q4_1, 30081024 of Q8_0 and 140544 of F32.
func TestMixturesAreAsLargeAsTheFiles(t *testing.T) {
	for _, c := range []struct {
		model, quantization string
		bytes               float64
		within              float64 // what was published is rounded, and has a vocabulary in it
	}{
		{"smollm2-135m", "q4_1", 96576768, 0},
		{"llama-3.2-1b", "q4_k_m", 0.81e9, 0.02}, {"llama-3.2-1b", "q4_k_s", 0.78e9, 0.02},
		{"llama-3.2-1b", "q5_k_m", 0.91e9, 0.02},
		{"llama-3.2-1b", "q6_k", 1.02e9, 0.02}, {"llama-3.2-1b", "q3_k_l", 0.73e9, 0.02},
		{"llama-3.2-1b", "q8_0", 1.32e9, 0.02},
		{"llama-3.2-1b", "iq4_xs", 0.74e9, 0.02},
		{"llama-3.1-8b", "q4_k_m", 4.92e9, 0.02}, {"llama-3.1-8b", "q2_k", 3.18e9, 0.02},
		{"llama-3.1-8b", "q3_k_m", 4.02e9, 0.02},
		{"llama-3.1-8b", "q3_k_s", 3.66e9, 0.02}, {"llama-3.1-8b", "iq2_m", 2.95e9, 0.2},
	} {
		w := of(t, config(t, c.model), Setup{Engine: LlamaCPP, Quantization: c.quantization, Context: 128}).Component(
			Weights)
		if d := float64(w.Best)/c.bytes - 1; d > c.within || -d > c.within {
			t.Errorf("%s %s: %d bytes, %.0f are right (%+.2f %%)", c.model, c.quantization, w.Best, c.bytes, 100*d)
		}
		if c.within > 0 && (float64(w.Low) > c.bytes || float64(w.High) < c.bytes*0.985) && w.Low != w.High {
			t.Errorf("%s %s: %.0f bytes are not from %d to %d", c.model, c.quantization, c.bytes, w.Low, w.High)
		}
		if mixed := c.quantization[0] == 'i' || c.quantization[1] < '6' && len(c.quantization) > 4 ||
			c.quantization == "q2_k"; mixed == (w.Confidence == High) {
			t.Errorf("%s: confidence %s, from %d to %d", c.quantization, w.Confidence, w.Low, w.High)
		}
	}
}
