package hffolder

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/models/gguf"
)

// weight is a tensor of a folder: rows of a GGUF's tensor.
type weight struct {
	name        string // in the folder
	tensor      string // in the GGUF
	first, rows int64  // of the GGUF's tensor
	columns     int64  // 0: a vector
	headDim     int    // rows of heads that a GGUF has in another order; 0: they have the same
	norm        bool   // a folder has one less
}

// shape is that in a folder.
func (w weight) shape() []int64 {
	if w.columns == 0 {
		return []int64{w.rows}
	}
	return []int64{w.rows, w.columns}
}

// names are transformers' for the tensors of a layer.
var names = map[string]string{"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
	"attn_k": "self_attn.k_proj",
	"attn_v": "self_attn.v_proj", "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj",
	"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}

// gemmaNames are the names of layers whose results are normalised too.
var gemmaNames = map[string]string{"post_attention_norm": "post_attention_layernorm",
	"ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}

// outside are the names of tensors outside of layers.
var outside = map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

// weights lists the tensors of a model's folder.
func weights(a gguf.Architecture) (list []weight) {
	q, kv := int64(a.HeadCount*a.HeadDim), int64(a.HeadCountKV*a.HeadDim)
	paired := 0
	if a.Traits().Interleaved {
		paired = a.HeadDim
	}
	for _, t := range a.Tensors() {
		stem, kind := t.Name[:strings.LastIndex(t.Name, ".")], t.Name[strings.LastIndex(t.Name, "."):]
		w := weight{tensor: t.Name, rows: int64(t.Shape[len(t.Shape)-1])}
		if len(t.Shape) > 1 {
			w.columns = int64(t.Shape[0])
		}
		w.norm = a.Traits().GELU && strings.HasSuffix(stem, "norm") // gemma's
		layer, part := "", stem
		if name, ok := outside[stem]; ok {
			w.name = name + kind
			list = append(list, w)
			continue
		}
		_, _ = fmt.Sscanf(stem, "blk.%s", &layer)
		layer, part, _ = strings.Cut(layer, ".")
		named := func(part string) string {
			name := names[part]
			if a.Traits().PostNorms && gemmaNames[part] != "" {
				name = gemmaNames[part]
			}
			if a.Name == gguf.Phi3 && part == "ffn_up" {
				name = "mlp.gate_up_proj"
			}
			return "model.layers." + layer + "." + name + kind
		}
		if part == "attn_qkv" && a.Name != gguf.Phi3 { // several in a folder
			for i, of := range []string{"attn_q", "attn_k", "attn_v"} {
				one := w
				one.name, one.first, one.rows = named(of), []int64{0, q, q + kv}[i], []int64{q, kv, kv}[i]
				if i < 2 {
					one.headDim = paired
				}
				list = append(list, one)
			}
			continue
		}
		if part == "attn_q" || part == "attn_k" {
			w.headDim = paired
		}
		w.name = named(part)
		list = append(list, w)
	}
	return list
}

// halves puts rows of heads that a GGUF has side by side half a head apart, and pairs does the reverse.
func halves(rows []byte, width, headDim int) []byte {
	return reordered(rows, width, headDim, func(i int) int { return i%(headDim/2)*2 + i/(headDim/2) })
}

func pairs(rows []byte, width, headDim int) []byte {
	return reordered(rows, width, headDim, func(i int) int { return i/2 + i%2*headDim/2 })
}

// reordered returns rows of a width in another order within each head: at says which row comes at a place.
func reordered(rows []byte, width, headDim int, at func(int) int) []byte {
	if headDim == 0 {
		return rows
	}
	out := make([]byte, 0, len(rows))
	for head := range slices.Chunk(rows, width*headDim) {
		for i := range headDim {
			out = append(out, head[at(i)*width:][:width]...)
		}
	}
	return out
}
