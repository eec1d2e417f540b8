package estimate

import (
	"encoding/binary"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models"
)

// tensors is a safetensors file of a model of one layer: 10 × 8, and projections of keys and values of 4 × 8 each, in
// bf16.
func tensors() string {
	header := `{"model.embed_tokens.weight":{"dtype":"BF16","shape":[10,8],"data_offsets":[0,160]},` +
		`"model.layers.0.self_attn.k_proj.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[160,224]},` +
		`"model.layers.0.self_attn.v_proj.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[224,288]}}`
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("\x00", 288)
}

const small = `{"model_type":"llama","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":10,"torch_dtype":"bfloat16"}`

func TestOpenFolders(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		bytes int64
		kv    int64 // of 64 tokens
		trust Confidence
		says  string
	}{
		"a config": {map[string]string{"config.json": small}, 2 * (2*80 + 4*64 + 3*128 + 3*8),
			64 * 16 * 2, High, ""},
		"the same weights twice": {map[string]string{"config.json": small, "model.safetensors": tensors(),
			"consolidated.safetensors": tensors()}, 288, 64 * 16 * 2, Medium, "144 values"},
		"files that the index does not name": {map[string]string{"config.json": small, "model-1.safetensors": tensors(),
			"model-fp8.safetensors":        tensors(),
			"model.safetensors.index.json": `{"weight_map":{"a":"model-1.safetensors"}}`}, 288, 64 * 16 * 2, Medium,
			"144 values"},
	} {
		m, err := models.Sizes(check.Tree(t, t.TempDir(), c.files))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e := of(t, m, Setup{Engine: Transformers, Context: 64})
		if got := e.Component(Weights).Best; got != c.bytes {
			t.Errorf("%s: %d bytes of weights, want %d", name, got, c.bytes)
		}
		if got := e.Component(KVReserved).Best; got != c.kv {
			t.Errorf("%s: %d bytes of KV cache, want %d", name, got, c.kv)
		}
		if m.Trust != c.trust || !strings.Contains(strings.Join(e.Warnings, " "), c.says) {
			t.Errorf("%s: trust %s, %q", name, m.Trust, e.Warnings)
		}
	}
}

// vLLM loads 32-bit weights in 16 bits, for files and configs alike, with one warning.
func TestVLLMNarrowsWideWeights(t *testing.T) {
	m, err := models.Sizes(check.Tree(t, t.TempDir(), map[string]string{
		"config.json":       strings.Replace(small, "bfloat16", "float32", 1),
		"model.safetensors": strings.ReplaceAll(tensors(), `"BF16"`, ` "F32"`)})) // the header stays as long
	check.Err(t, err)
	e := of(t, m, Setup{Engine: VLLM, Context: 64})
	if said := strings.Count(strings.Join(e.Warnings, " "), "published in float32"); said != 1 {
		t.Errorf("%d warnings", said)
	}
	if w := e.Component(Weights); w.Best != 144 || w.DType != "bf16" { // half of the file's
		t.Errorf("%d bytes in %s", w.Best, w.DType)
	}
}
