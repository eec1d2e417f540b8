package convert

import (
	"encoding/binary"
	"fmt"
	"math"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
)

// Names of dimensions and of what goes in and out, as transformers.js expects them.
const (
	batch, sequence, past, total = "batch_size", "sequence_length", "past_sequence_length", "total_sequence_length"

	inputIDs, mask, keepLogits, logits = "input_ids", "attention_mask", "num_logits_to_keep", "logits"
)

// encode returns the model's file, whose weights have their places.
func (g *graph) encode() message {
	m := message{}
	for _, n := range g.nodes {
		m = m.bytes(1, n)
	}
	m = m.text(2, g.Name)
	m = m.bytes(5, asBytes(g.inside)...)
	for _, w := range g.weights {
		m = m.bytes(5, w.external())
	}
	in := []message{value(inputIDs, int64s, batch, sequence), value(mask, int64s, batch, total),
		value(keepLogits, int64s)}
	out := []message{value(logits, float32s, batch, "kept", g.VocabSize)}
	for i := range g.BlockCount {
		for _, what := range []string{"key", "value"} {
			in = append(in, value(cached("past_key_values", i, what), g.elem, batch, g.HeadCountKV, past, g.HeadDim))
			out = append(out, value(cached("present", i, what), g.elem, batch, g.HeadCountKV, total, g.HeadDim))
		}
	}
	m = m.bytes(11, asBytes(in)...).bytes(12, asBytes(out)...)
	return message{}.int(1, 8).text(2, "llmparity").bytes(7, m).bytes(8, opset("", 17), opset(microsoft, 1))
}

func asBytes(all []message) (out [][]byte) {
	for _, m := range all {
		out = append(out, m)
	}
	return out
}

func cached(prefix string, layer int, what string) string {
	return fmt.Sprintf("%s.%d.%s", prefix, layer, what)
}

// build adds the whole model.
func (g *graph) build() error {
	x := g.plain("Gather", g.vector(part{name: embedding}), inputIDs)
	if scale := g.EmbeddingScale(); scale > 0 {
		x = g.plain("Mul", x, g.number(scale))
	}
	length := g.add("", "ReduceSum", []string{mask, g.ints(false, 1)}, attr{"keepdims", 0})
	last := g.cast(g.plain("Sub", length, g.ints(true, 1)), int32s)
	all := g.cast(g.plain("Gather", g.plain("Shape", mask), g.ints(true, 1)), int32s)
	for i := range g.BlockCount {
		of := func(name string) part { return part{name: fmt.Sprintf("blk.%d.%s", i, name)} }
		attended, err := g.attend(i, g.norm(x, of("attn_norm.weight")), last, all)
		if err != nil {
			return err
		}
		x = g.plain("Add", x, g.post(attended, of("post_attention_norm.weight")))
		x = g.plain("Add", x, g.post(g.feed(i, g.norm(x, of("ffn_norm.weight"))), of("post_ffw_norm.weight")))
	}
	first := g.plain("Unsqueeze", g.plain("Neg", keepLogits), g.ints(false, 0))
	x = g.add("", "Slice", []string{x, first, g.ints(false, math.MaxInt64), g.ints(false, 1)})
	x = g.capped(g.head(g.norm(x, part{name: "output_norm.weight"})), g.OutputCap)
	g.nodes = append(g.nodes, node("", "Cast", []string{x}, []string{logits}, []attr{{"to", int(float32s)}}))
	return nil
}

const embedding = "token_embd.weight"

// head computes logits. A tied matrix is stored once, by rows.
func (g *graph) head(x string) string {
	if t := g.tensor(part{name: embedding}); !g.Tied {
		return g.linear(x, part{name: "output.weight"})
	} else if t.Type == gguf.Q4_0 {
		return g.linear(x, part{name: embedding})
	}
	flat := g.plain("Reshape", x, g.ints(false, -1, int64(g.EmbeddingLength)))
	flat = g.add("", "Gemm", []string{flat, embedding}, attr{"transB", 1})
	texts := g.add("", "Slice", []string{g.plain("Shape", x), g.ints(false, 0), g.ints(false, 1)})
	shape := g.add("", "Concat", []string{texts, g.ints(false, -1, int64(g.VocabSize))}, attr{"axis", 0})
	return g.plain("Reshape", flat, shape)
}

// post normalises what is added to the hidden state, in architectures that do so.
func (g *graph) post(x string, p part) string {
	if !g.Traits().PostNorms {
		return x
	}
	return g.norm(x, p)
}

// feed is the feed-forward part of a layer.
func (g *graph) feed(layer int, x string) string {
	of := func(name string) string { return fmt.Sprintf("blk.%d.%s.weight", layer, name) }
	gate, up := part{name: of("ffn_gate")}, part{name: of("ffn_up")}
	if g.FusedGate {
		gate = part{up.name, 0, g.FeedForwardLength}
		up = part{up.name, g.FeedForwardLength, g.FeedForwardLength}
	}
	a, b := g.linear(x, gate), g.linear(x, up)
	if g.Traits().GELU {
		a = g.add(microsoft, "FastGelu", []string{a})
	} else {
		a = g.plain("Mul", a, g.plain("Sigmoid", a))
	}
	return g.linear(g.plain("Mul", a, b), part{name: of("ffn_down")})
}

// attend is the attention of a layer. GroupQueryAttention rotates queries and keys, and appends to the cache.
func (g *graph) attend(layer int, x, last, all string) (string, error) {
	of := func(name string) string { return fmt.Sprintf("blk.%d.%s", layer, name) }
	heads, kv := g.HeadCount, g.HeadCountKV
	project := func(name string, first, count int) string {
		p, bias := part{name: of(name + ".weight")}, part{name: of(name + ".bias")}
		if g.FusedQKV {
			p = part{of("attn_qkv.weight"), first * g.HeadDim, count * g.HeadDim}
			bias = part{of("attn_qkv.bias"), p.first, p.rows}
		}
		y := g.linear(x, p)
		if g.AttentionBias {
			y = g.plain("Add", y, g.vector(bias))
		}
		if !g.Traits().QKNorm || name == "attn_v" {
			return y
		}
		y = g.plain("Reshape", y, g.ints(false, 0, 0, int64(count), int64(g.HeadDim)))
		y = g.norm(y, part{name: of(name + "_norm.weight")})
		return g.plain("Reshape", y, g.ints(false, 0, 0, int64(count*g.HeadDim)))
	}
	q, k, v := project("attn_q", 0, heads), project("attn_k", heads, kv), project("attn_v", heads+kv, kv)
	cos, sin, err := g.rotation(g.Local(layer))
	if err != nil {
		return "", err
	}
	attrs := []attr{{"num_heads", heads}, {"kv_num_heads", kv}, {"do_rotary", 1},
		{"scale", 1 / math.Sqrt(float64(g.QueryScalar()))}}
	if g.Traits().Interleaved {
		attrs = append(attrs, attr{"rotary_interleaved", 1})
	}
	if g.SlidingWindow > 0 && g.Local(layer) {
		attrs = append(attrs, attr{"local_window_size", g.SlidingWindow})
	}
	if g.AttentionCap > 0 {
		attrs = append(attrs, attr{"softcap", g.AttentionCap})
	}
	out := []string{g.fresh("GroupQueryAttention"), cached("present", layer, "key"), cached("present", layer, "value")}
	in := []string{q, k, v, cached("past_key_values", layer, "key"), cached("past_key_values", layer, "value"), last,
		all, cos, sin}
	g.nodes = append(g.nodes, node(microsoft, "GroupQueryAttention", in, out, attrs))
	return g.linear(out[0], part{name: of("attn_output.weight")}), nil
}

// rotation returns the names of the tables of cosines and sines, of layers with a window or of the others.
func (g *graph) rotation(local bool) (cos, sin string, err error) {
	base, name := g.RopeBase, ""
	factors, magnitude := g.Factors(g.context)
	if local && g.LocalBase > 0 {
		base, factors, magnitude, name = g.LocalBase, nil, 1, "_local"
	}
	half := g.Rotated() / 2
	tables := [2][]float32{}
	for position := range g.context {
		for i := range half {
			angle := float64(position) * math.Pow(base, -float64(i)/float64(half))
			if len(factors) > 0 {
				angle /= factors[i]
			}
			s, c := math.Sincos(angle)
			tables[0] = append(tables[0], float32(c*magnitude))
			tables[1] = append(tables[1], float32(s*magnitude))
		}
	}
	dims := []int64{int64(g.context), int64(half)}
	for i, to := range []*string{&cos, &sin} {
		var raw []byte
		if raw, err = g.encoded(tables[i]); err != nil {
			return "", "", err
		}
		*to = g.store(weight{name: []string{"cos", "sin"}[i] + name, kind: g.elem, dims: dims, raw: raw})
	}
	return cos, sin, nil
}

// encoded returns values of the type of activations.
func (g *graph) encoded(values []float32) ([]byte, error) {
	if g.elem == float16s {
		return mlc.AppendHalves(nil, values)
	}
	return binary.Append(nil, binary.LittleEndian, values)
}
