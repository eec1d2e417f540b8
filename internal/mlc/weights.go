package mlc

import (
	"fmt"
	"io"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
)

// param is a weight of the package: the rows of one or more GGUF tensors, one after another.
type param struct {
	name  string
	shape []int64
	parts []part
}

// part is a GGUF tensor. With a head dimension its rows are those of attention heads, stored in pairs for an interleaved
// rotation; they are put back as a rotation by halves wants them.
type part struct {
	tensor  string
	headDim int
}

// params lists a llama's weights under the names, and in the order, that the model library is compiled for.
func params(l gguf.Llama) []param {
	h, i := int64(l.EmbeddingLength), int64(l.FeedForwardLength)
	q, kv := int64(l.HeadCount*l.HeadDim), int64(l.HeadCountKV*l.HeadDim)
	vocab := int64(l.VocabSize)
	list := []param{{"model.embed_tokens.weight", []int64{vocab, h}, []part{{"token_embd.weight", 0}}}}
	for n := range l.BlockCount {
		add := func(name string, shape []int64, parts ...part) {
			for i := range parts {
				parts[i].tensor = fmt.Sprintf("blk.%d.%s.weight", n, parts[i].tensor)
			}
			list = append(list, param{fmt.Sprintf("model.layers.%d.%s.weight", n, name), shape, parts})
		}
		add("self_attn.qkv_proj", []int64{q + 2*kv, h}, part{"attn_q", l.HeadDim}, part{"attn_k", l.HeadDim}, part{"attn_v", 0})
		add("self_attn.o_proj", []int64{h, q}, part{"attn_output", 0})
		add("mlp.gate_up_proj", []int64{2 * i, h}, part{"ffn_gate", 0}, part{"ffn_up", 0})
		add("mlp.down_proj", []int64{h, i}, part{"ffn_down", 0})
		add("input_layernorm", []int64{h}, part{"attn_norm", 0})
		add("post_attention_layernorm", []int64{h}, part{"ffn_norm", 0})
	}
	list = append(list, param{"model.norm.weight", []int64{h}, []part{{"output_norm.weight", 0}}})
	if !l.Tied {
		list = append(list, param{"lm_head.weight", []int64{vocab, h}, []part{{"output.weight", 0}}})
	}
	return list
}

func (p param) bytes() int64 {
	n := int64(4)
	for _, d := range p.shape {
		n *= d
	}
	return n
}

// read gives a part's bytes in the package's order.
func (p part) read(f *gguf.File) ([]byte, error) {
	t, ok := f.Tensor(p.tensor)
	if !ok {
		return nil, fmt.Errorf("tensor %s, which was there, is gone", p.tensor)
	}
	data := make([]byte, t.Size)
	if _, err := io.ReadFull(f.Data(t), data); err != nil {
		return nil, fault.Wrap(fault.BadModel, err, "check that nothing changes the file while it is read",
			"model %s: tensor %s can't be read", f.Name, t.Name)
	}
	if p.headDim == 0 {
		return data, nil
	}
	return halves(data, int(t.Shape[0])*4, p.headDim), nil
}

// halves reorders the rows of attention heads: where GGUF has rows j and j+dim/2 of a head side by side, as rows 2j and
// 2j+1, the package has them half a head apart.
func halves(data []byte, rowBytes, dim int) []byte {
	out := make([]byte, 0, len(data))
	for head := 0; head < len(data); head += dim * rowBytes {
		for first := range 2 {
			for row := first; row < dim; row += 2 {
				at := head + row*rowBytes
				out = append(out, data[at:at+rowBytes]...)
			}
		}
	}
	return out
}
