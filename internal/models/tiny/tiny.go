// Package tiny generates a small llama: two layers, 426,000 float32 weights and 512 ASCII tokens, the same bytes on
// every machine. Every engine can load it without a download, and correct engines agree on it token by token: its
// greedy text varies and depends on the whole prompt and on every weight, and its best logit leads by more than
// rounding, with rare exceptions.
//
// Its text is meaningless. It cannot express non-ASCII text, and measurements on it say little about useful models.
//
// For other shapes, a Spec describes a random model. Package tinytest lists specs that cover everything supported.
package tiny

import (
	"io"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
)

const (
	// Name is the model's name, in its metadata and in records.
	Name = "tiny-llama-2x128"
	// SHA256 is the hash of the file that Write writes. It changes with weights, tokenizer or metadata; records with
	// different hashes are not comparable.
	SHA256 = "7555dfeebc6eba5f80d03ebbdffe37e8e4a1ef3b666a23e9b6e67eb40284fd57"
)

func metadata() []gguf.Entry {
	v := vocabulary()
	n := func(key string, value int) gguf.Entry { return gguf.Entry{Key: key, Value: uint32(value)} }
	return slices.Concat([]gguf.Entry{
		{Key: "general.architecture", Value: "llama"},
		{Key: "general.name", Value: Name},
		n("general.file_type", 0), // all F32
	}, sizes(shape), []gguf.Entry{
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: v.Pre},
		{Key: "tokenizer.ggml.tokens", Value: v.Tokens},
		{Key: "tokenizer.ggml.token_type", Value: v.Types},
		{Key: "tokenizer.ggml.merges", Value: v.Merges},
		n("tokenizer.ggml.bos_token_id", v.BOS),
		n("tokenizer.ggml.eos_token_id", v.EOS),
		n("tokenizer.ggml.padding_token_id", v.BOS),
		{Key: "tokenizer.ggml.add_bos_token", Value: v.AddBOS},
		{Key: "tokenizer.chat_template", Value: v.ChatTemplate},
	})
}

// sizes is the part of a description that every model has, but for the size of heads.
func sizes(a gguf.Architecture) []gguf.Entry {
	common := []string{"context_length", "embedding_length", "block_count", "feed_forward_length",
		"attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon", "rope.freq_base",
		"rope.dimension_count", "vocab_size"}
	return slices.DeleteFunc(a.Metadata(), func(e gguf.Entry) bool {
		return !slices.Contains(common, strings.TrimPrefix(e.Key, a.Name+"."))
	})
}

// Write writes the model as GGUF.
func Write(w io.Writer) error { return gguf.Write(w, metadata(), weights()) }

// WriteFile writes the model to path, which appears when it is complete.
func WriteFile(path string) error { return writeFile(path, Write) }

func writeFile(path string, write func(io.Writer) error) error {
	return fault.WriteError(whole.Write(path, write), path, "choose another name or folder")
}
