package estimate

import (
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
)

// Sizes as the files have them. SmolLM2's rows of 576 values are no multiple of 256, and its embedding is the head: of
// the Q4_1 file the tensors are 66355200 bytes of Q4_1, 30081024 of Q8_0 and 140544 of F32.
func TestMixturesAreAsLargeAsTheFiles(t *testing.T) {
	for _, c := range []struct {
		model, quantization string
		bytes               float64
		within              float64 // what was published is rounded, and has a vocabulary in it
	}{
		{"smollm2-135m", "q4_1", 96576768, 0},
		{"llama-3.2-1b", "q4_k_m", 0.81e9, 0.02}, {"llama-3.2-1b", "q8_0", 1.32e9, 0.02},
		{"llama-3.2-1b", "iq4_xs", 0.74e9, 0.02}, {"llama-3.1-8b", "q2_k", 3.18e9, 0.02},
		{"llama-3.1-8b", "q3_k_m", 4.02e9, 0.02}, {"llama-3.1-8b", "iq2_m", 2.95e9, 0.2},
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

// The ledger of a run of SmolLM2's Q4_1 file in WebLLM has this size, too.
func TestTypeByNameIsAsTheLedgerSays(t *testing.T) {
	e := of(t, config(t, "smollm2-135m"), Setup{Engine: WebLLM, Quantization: "q4_1", Context: 4096})
	if w := e.Component(Weights); w.Best != 96576768 {
		t.Errorf("%d bytes", w.Best)
	}
}

// A config.json with the name of a GGUF type needs what WebLLM's package of such a file has. llama.cpp's quantiser
// stores the head of a Q4_0 in Q6_K, the random model in Q4_0.
func TestTypeByNameIsKeptInWebLLM(t *testing.T) {
	const headRows, headBlocks = 640, 8 // blocks of 32 values in a row
	for _, c := range []struct {
		quantization, dtype, options string
		more                         int64
	}{
		{"q8_0", "f32", mlc.Float32, 0}, {"q8_0", "f16", mlc.Float16, 0},
		{"q4_0", "f32", mlc.Float32, headRows * (210 - 20*headBlocks)},
		{"q4_0", "f16", mlc.Float16, headRows * (210 - 18*headBlocks)},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "random.gguf")
		check.Err(t, tiny.WriteRandomFile(t.Context(), file, tiny.Spec{Hidden: 256, Heads: 4, FFN: 512,
			Type: c.quantization}))
		_, err := mlc.Write(t.Context(), file, filepath.Join(dir, "package"),
			mlc.Options{DType: c.options, Weights: mlc.AsIs})
		check.Err(t, err)
		real, err := models.Sizes(filepath.Join(dir, "package"))
		check.Err(t, err)
		check.Tree(t, dir, map[string]string{"config.json": `{"model_type":"llama","hidden_size":256,` +
			`"num_hidden_layers":2,` +
			`"num_attention_heads":4,"num_key_value_heads":4,"intermediate_size":512,"vocab_size":640,` +
			`"max_position_embeddings":1024,"torch_dtype":"bfloat16","tie_word_embeddings":false}`})
		m, err := models.Sizes(filepath.Join(dir, "config.json"))
		check.Err(t, err)
		e := of(t, m, Setup{Engine: WebLLM, Quantization: c.quantization, DType: c.dtype, Context: 512})
		if w := e.Component(Weights); w.Best != sum(real.Tensors)+c.more || w.DType != c.quantization {
			t.Errorf("%s in %s: %d bytes in %s, want %d", c.quantization, c.dtype, w.Best, w.DType,
				sum(real.Tensors)+c.more)
		}
	}
}
