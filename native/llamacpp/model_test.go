package llamacpp

import (
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
)

// randomModel writes a one-layer llama model with a token for each given byte, plus a BOS and an EOS token.
func randomModel(t *testing.T, bytes []byte) models.Model {
	t.Helper()
	const hidden, heads, headDim, ff = 64, 2, 32, 64
	var tokens []string
	types := make([]int32, 0, len(bytes)+2)
	for _, b := range bytes {
		tokens, types = append(tokens, string(gguf.ByteRune(b))), append(types, 1)
	}
	tokens, types = append(tokens, "<s>", "</s>"), append(types, 3, 3)
	vocab := uint64(len(tokens))

	r := rand.New(rand.NewSource(5))
	var weights []gguf.Weights
	add := func(name string, scale float32, shape ...uint64) {
		n := uint64(1)
		for _, s := range shape {
			n *= s
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = scale * float32(r.NormFloat64())
			if len(shape) == 1 {
				values[i] = 1 // a norm
			}
		}
		weights = append(weights, gguf.Weights{Name: name, Shape: shape, Values: values})
	}
	add("token_embd.weight", 0.3, hidden, vocab)
	add("output_norm.weight", 1, hidden)
	add("output.weight", 0.3, hidden, vocab)
	for _, w := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
		add("blk.0."+w+".weight", 0.3, hidden, hidden)
	}
	add("blk.0.attn_norm.weight", 1, hidden)
	add("blk.0.ffn_norm.weight", 1, hidden)

	path := filepath.Join(t.TempDir(), "random.gguf")
	f, err := os.Create(path)
	check.Err(t, err)
	err = gguf.Write(f, []gguf.Entry{
		{Key: "general.architecture", Value: "llama"},
		{Key: "llama.context_length", Value: uint32(256)},
		{Key: "llama.embedding_length", Value: uint32(hidden)},
		{Key: "llama.block_count", Value: uint32(1)},
		{Key: "llama.feed_forward_length", Value: uint32(ff)},
		{Key: "llama.attention.head_count", Value: uint32(heads)},
		{Key: "llama.attention.head_count_kv", Value: uint32(heads)},
		{Key: "llama.rope.dimension_count", Value: uint32(headDim)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: gguf.PreGPT2},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: []string{}},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(vocab - 2)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(vocab - 1)},
		{Key: "tokenizer.ggml.add_bos_token", Value: false},
	}, weights)
	check.Err(t, err)
	check.Err(t, f.Close())
	return models.Model{Model: record.Model{Name: "random", Context: 256}, Path: path}
}

// ascii is printable text: every token is a whole character.
func ascii() []byte { return span(' ', '~') }

// span returns all bytes between two, including them.
func span(first, last int) (out []byte) {
	for b := first; b <= last; b++ {
		out = append(out, byte(b))
	}
	return out
}
