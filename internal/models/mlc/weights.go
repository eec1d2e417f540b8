package mlc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/models/gguf"
)

// param is a weight of the package: the rows of one or more GGUF tensors.
type param struct {
	name  string
	shape []int64
	parts []part
}

// part is a GGUF tensor, or some of its rows. With a head size, its rows (or a vector's values) are stored in pairs for
// an interleaved rotation and must be reordered for a rotation by halves.
type part struct {
	tensor      string
	first, rows int64
	headDim     int
}

// names are MLC's for an architecture's weights.
type names struct {
	root, embedding, layers, attention, out, firstNorm, head string

	queries []string // one fused matrix, or one each for queries, keys and values
}

func namesOf(architecture string) names {
	n := names{"model", "embed_tokens", "layers", "self_attn", "o_proj", "input_layernorm", "lm_head",
		[]string{"qkv_proj"}}
	switch architecture {
	case gguf.Qwen2, gguf.Qwen3:
		n.queries = []string{"c_attn"}
	case gguf.Gemma3:
		n.root, n.head = "language_model.model", "language_model.lm_head"
		n.queries = []string{"q_proj", "k_proj", "v_proj"}
	case gguf.Phi3:
		n.root, n.embedding, n.layers, n.attention = "transformer", "embd", "h", "mixer"
		n.out, n.firstNorm = "out_proj", "ln"
	}
	return n
}

// params returns a model's weights, with the names and in the order of the model library.
func params(a gguf.Architecture) []param {
	h, vocab, n := int64(a.EmbeddingLength), int64(a.VocabSize), namesOf(a.Name)
	list := []param{{n.root + "." + n.embedding + ".weight", []int64{vocab, h},
		[]part{{tensor: "token_embd.weight", rows: vocab}}}}
	for i := range a.BlockCount {
		list = append(list, layer(a, n, i)...)
	}
	list = append(list, param{n.root + ".norm.weight", []int64{h},
		[]part{{tensor: "output_norm.weight", rows: h}}})
	if !a.Tied {
		list = append(list, param{n.head + ".weight", []int64{vocab, h},
			[]part{{tensor: "output.weight", rows: vocab}}})
	}
	return list
}

// layer returns the weights of a layer.
func layer(a gguf.Architecture, n names, number int) (list []param) {
	h, i, q, d := int64(a.EmbeddingLength), int64(a.FeedForwardLength), int64(a.HeadCount*a.HeadDim), int64(a.HeadDim)
	add := func(name, kind string, shape []int64, parts ...part) {
		for i := range parts {
			parts[i].tensor = fmt.Sprintf("blk.%d.%s.%s", number, parts[i].tensor, kind)
			parts[i].rows = cmp.Or(parts[i].rows, shape[0]/int64(len(parts)))
		}
		list = append(list, param{fmt.Sprintf("%s.%s.%d.%s.%s", n.root, n.layers, number, name, kind), shape, parts})
	}
	norm := func(name, tensor string, size int64) { add(name, "weight", []int64{size}, part{tensor: tensor}) }
	three := queries(a)
	for i, name := range n.queries {
		parts, rows := three, three[0].rows+three[1].rows+three[2].rows
		if len(n.queries) > 1 {
			parts, rows = three[i:i+1], three[i].rows
		}
		name = n.attention + "." + name
		add(name, "weight", []int64{rows, h}, slices.Clone(parts)...)
		if a.AttentionBias {
			add(name, "bias", []int64{rows}, slices.Clone(parts)...)
		}
	}
	add(n.attention+"."+n.out, "weight", []int64{h, q}, part{tensor: "attn_output"})
	if a.Traits().QKNorm {
		norm(n.attention+".q_norm", "attn_q_norm", d)
		norm(n.attention+".k_norm", "attn_k_norm", d)
	}
	gate := []part{{tensor: "ffn_gate"}, {tensor: "ffn_up"}}
	if a.FusedGate {
		gate = gate[1:]
	}
	add("mlp.gate_up_proj", "weight", []int64{2 * i, h}, gate...)
	add("mlp.down_proj", "weight", []int64{h, i}, part{tensor: "ffn_down"})
	norm(n.firstNorm, "attn_norm", h)
	if !a.Traits().PostNorms {
		norm("post_attention_layernorm", "ffn_norm", h)
		return list
	}
	norm("post_attention_layernorm", "post_attention_norm", h)
	norm("pre_feedforward_layernorm", "ffn_norm", h)
	norm("post_feedforward_layernorm", "post_ffw_norm", h)
	return list
}

// queries returns the parts of queries, keys and values, each with its rows.
func queries(a gguf.Architecture) []part {
	q, kv, paired := int64(a.HeadCount*a.HeadDim), int64(a.HeadCountKV*a.HeadDim), 0
	if a.Traits().Interleaved {
		paired = a.HeadDim
	}
	if a.FusedQKV {
		return []part{{tensor: "attn_qkv", rows: q, headDim: paired},
			{tensor: "attn_qkv", first: q, rows: kv, headDim: paired},
			{tensor: "attn_qkv", first: q + kv, rows: kv}}
	}
	return []part{{tensor: "attn_q", rows: q, headDim: paired}, {tensor: "attn_k", rows: kv, headDim: paired},
		{tensor: "attn_v", rows: kv}}
}

// product returns the values of a shape.
func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// stem returns the name of a weight without its last part.
func (p param) stem() string { return p.name[:strings.LastIndex(p.name, ".")] }
