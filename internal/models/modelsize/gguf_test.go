package modelsize

import (
	"maps"
	"slices"
	"testing"

	"llmparity/internal/models/gguf"
)

func TestRepackableMatrices(t *testing.T) {
	tensor := func(name string, size int64, shape ...uint64) gguf.Tensor {
		return gguf.Tensor{Name: name, Size: size, Shape: shape, Type: gguf.Q4_0}
	}
	layer := []gguf.Tensor{tensor("blk.0.attn_q.weight", 1, 64, 64), tensor("blk.0.attn_norm.weight", 2, 64),
		tensor("blk.0.odd.weight", 4, 64, 12),
		tensor("blk.0.ffn_up_exps.weight", 8, 64, 64, 4), tensor("blk.0.conv.weight", 16, 64, 64, 4),
		tensor("token_embd.weight", 32, 64, 512)}
	if got := matrices(layer); !maps.Equal(got, map[string]int64{"q4_0": 1 + 8 + 32}) {
		t.Errorf("tied embedding: %v", got)
	}
	if got := matrices(append(slices.Clone(layer), tensor("output.weight", 64, 64, 512))); !maps.Equal(
		got, map[string]int64{"q4_0": 1 + 8 + 64}) {
		t.Errorf("separate head: %v", got)
	}
}
