package estimate

import (
	"io"

	"llmparity/internal/gguf"
)

// writeStrange writes a model of two layers whose architecture's keys nobody knows: no heads, no block_count.
func writeStrange(w io.Writer) error {
	tensor := func(name string, shape ...uint64) gguf.Weights {
		n := uint64(1)
		for _, size := range shape {
			n *= size
		}
		return gguf.Weights{Name: name, Shape: shape, Values: make([]float32, n)}
	}
	list := []gguf.Weights{tensor("token_embd.weight", 64, 100)}
	for _, layer := range []string{"blk.0.", "blk.1."} {
		list = append(list, tensor(layer+"attn_q.weight", 64, 64), tensor(layer+"attn_k.weight", 64, 16),
			tensor(layer+"attn_v.weight", 64, 16))
	}
	return gguf.Write(w, []gguf.Entry{{Key: "general.architecture", Value: "strange"}}, list)
}
