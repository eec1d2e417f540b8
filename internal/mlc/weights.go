package mlc

import (
	"fmt"

	"llmparity/internal/gguf"
)

// param is a weight of the package: the rows of one or more GGUF tensors.
type param struct {
	name  string
	shape []int64
	parts []part
}

// part is a GGUF tensor. With a head size, its rows (or a vector's values) are stored in pairs for an interleaved
// rotation and must be reordered for a rotation by halves.
type part struct {
	tensor  string
	headDim int
	vector  bool
}

// fused is the name of the joined queries, keys and values by architecture.
var fused = map[string]string{gguf.Llama: "self_attn.qkv_proj", gguf.Qwen2: "self_attn.c_attn"}

// params returns a model's weights, with the names and in the order of the model library.
func params(a gguf.Architecture) []param {
	h, i := int64(a.EmbeddingLength), int64(a.FeedForwardLength)
	q, kv := int64(a.HeadCount*a.HeadDim), int64(a.HeadCountKV*a.HeadDim)
	vocab := int64(a.VocabSize)
	qkv, paired := fused[a.Name], 0
	if a.Interleaved() {
		paired = a.HeadDim
	}
	list := []param{{"model.embed_tokens.weight", []int64{vocab, h}, []part{{tensor: "token_embd.weight"}}}}
	for n := range a.BlockCount {
		add := func(name, kind string, shape []int64, parts ...part) {
			for i := range parts {
				parts[i].tensor = fmt.Sprintf("blk.%d.%s.%s", n, parts[i].tensor, kind)
				parts[i].vector = len(shape) == 1
			}
			list = append(list, param{fmt.Sprintf("model.layers.%d.%s.%s", n, name, kind), shape, parts})
		}
		three := func() []part {
			return []part{{tensor: "attn_q", headDim: paired}, {tensor: "attn_k", headDim: paired}, {tensor: "attn_v"}}
		}
		add(qkv, "weight", []int64{q + 2*kv, h}, three()...)
		if a.AttentionBias {
			add(qkv, "bias", []int64{q + 2*kv}, three()...)
		}
		add("self_attn.o_proj", "weight", []int64{h, q}, part{tensor: "attn_output"})
		add("mlp.gate_up_proj", "weight", []int64{2 * i, h}, part{tensor: "ffn_gate"}, part{tensor: "ffn_up"})
		add("mlp.down_proj", "weight", []int64{h, i}, part{tensor: "ffn_down"})
		add("input_layernorm", "weight", []int64{h}, part{tensor: "attn_norm"})
		add("post_attention_layernorm", "weight", []int64{h}, part{tensor: "ffn_norm"})
	}
	list = append(list, param{"model.norm.weight", []int64{h}, []part{{tensor: "output_norm.weight"}}})
	if !a.Tied {
		list = append(list, param{"lm_head.weight", []int64{vocab, h}, []part{{tensor: "output.weight"}}})
	}
	return list
}

func (p param) values() int64 {
	n := int64(1)
	for _, d := range p.shape {
		n *= d
	}
	return n
}
