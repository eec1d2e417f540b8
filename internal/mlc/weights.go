package mlc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

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
func params(l gguf.Architecture) []param {
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

// pieceBytes is about how much of a tensor is read and written at a time.
const pieceBytes = 1 << 20

// each gives a part's values, as little-endian float32 in the package's order, piece by piece. What do is given is good
// until it returns.
func (p part) each(f *gguf.File, do func([]byte) error) error {
	t, ok := f.Tensor(p.tensor)
	if !ok {
		return fmt.Errorf("tensor %s, which was there, is gone", p.tensor)
	}
	width, group := int(t.Shape[0]), max(p.headDim, 1)
	rows, err := f.Rows(t, max(pieceBytes/(4*width*group), 1)*group) // whole heads, so that a piece can be reordered by itself
	if err != nil {
		return err
	}
	var piece []byte
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		piece = piece[:0]
		for at := 0; at < len(values); at += group * width {
			piece = p.encode(piece, values[at:at+group*width], width)
		}
		if err := do(piece); err != nil {
			return err
		}
	}
}

// encode appends a row, or the rows of an attention head: where GGUF has rows j and j+dim/2 of a head side by side, as
// rows 2j and 2j+1, the package has them half a head apart.
func (p part) encode(to []byte, values []float32, width int) []byte {
	if p.headDim == 0 {
		return appendFloats(to, values)
	}
	for first := range 2 {
		for row := first; row < p.headDim; row += 2 {
			to = appendFloats(to, values[row*width:(row+1)*width])
		}
	}
	return to
}

func appendFloats(to []byte, values []float32) []byte {
	at := len(to)
	to = slices.Grow(to, 4*len(values))[:at+4*len(values)]
	for out := to[at:]; len(values) > 0 && len(out) >= 4; out, values = out[4:], values[1:] {
		binary.LittleEndian.PutUint32(out, math.Float32bits(values[0]))
	}
	return to
}
