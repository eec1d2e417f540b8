package tiny

import (
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"math"
	"strings"

	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
)

// scales are those of a random model's weights, as deviations of their results.
type scales struct {
	quiet   float64 // embeddings
	sharp   float64 // queries and keys
	leaning float64 // biases
	adds    float64 // contribution of attention, and of the feed-forward part, to the hidden state
	wide    float64 // gates
	spread  float64 // logits
}

// usual scales give varied text, and best logits that lead by much more than rounding: small embeddings, so that layers
// outweigh them and a tied head does not repeat the last token; heads that attend to few positions; and logits that are
// far apart.
var usual = scales{quiet: 0.05, sharp: 2.6, leaning: 0.35, adds: 1, wide: 1.4, spread: 40}

// WriteRandom writes a GGUF with random weights, in any shape that engines can run. The same spec gives the same file
// everywhere. Weights are generated while writing, so memory does not depend on the size.
//
// The text is meaningless. Unlike the tiny model's, its two best logits can be close by chance: nearer than 0.02 once
// in some thousand tokens.
func WriteRandom(w io.Writer, spec Spec) error {
	s, err := spec.Resolved()
	if err != nil {
		return err
	}
	v, sayable := s.randomVocabulary()
	return gguf.Write(w, append(s.metadata(), s.tokenizerMetadata(v)...), s.randomWeights(sayable))
}

// WriteRandomFile writes the model to path, which appears when it is complete.
func WriteRandomFile(ctx context.Context, path string, spec Spec) error {
	if _, err := spec.Resolved(); err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error { return WriteRandom(whole.Until(ctx, w), spec) })
}

func (s Spec) metadata() []gguf.Entry {
	key := func(name string, value any) gguf.Entry {
		return gguf.Entry{Key: s.Architecture + "." + name, Value: value}
	}
	n := func(name string, value int) gguf.Entry { return key(name, uint32(value)) }
	m := []gguf.Entry{
		{Key: "general.architecture", Value: s.Architecture},
		{Key: "general.type", Value: "model"},
		{Key: "general.name", Value: s.Name},
		{Key: "general.file_type", Value: uint32(0)}, // all F32
	}
	m = append(m, sizes(s.architecture())...)
	if s.Heads*s.HeadDim != s.Hidden {
		m = append(m, n("attention.key_length", s.HeadDim), n("attention.value_length", s.HeadDim))
	}
	if s.Window > 0 {
		m = append(m, n("attention.sliding_window", s.Window))
	}
	if s.RopeScaling == Linear {
		m = append(m, key("rope.scaling.type", "linear"), key("rope.scaling.factor", float32(s.RopeFactor)))
	}
	if s.RopeScaling == Long {
		factor := math.Sqrt(1 + math.Log(s.RopeFactor)/math.Log(float64(s.RopeContext))) // as in Phi-3
		m = append(m, n("rope.scaling.original_context_length", s.RopeContext),
			key("rope.scaling.attn_factor", float32(factor)))
	}
	if s.Architecture == gguf.Gemma2 || s.OutputCap > 0 {
		m = append(m, key("final_logit_softcapping", float32(s.OutputCap)))
	}
	if s.Architecture == gguf.Gemma2 {
		m = append(m, key("attn_logit_softcapping", float32(s.AttentionCap)))
	}
	if s.LocalBase > 0 {
		m = append(m, key("rope.freq_base_swa", float32(s.LocalBase)))
	}
	return m
}

// randomWeights returns the model's tensors, each with its own stream of random numbers.
func (s Spec) randomWeights(sayable []bool) []gguf.Weights {
	var out []gguf.Weights
	for _, want := range s.architecture().Tensors() {
		r := &random{s.Seed ^ hash(want.Name)}
		w := gguf.Weights{Name: want.Name, Shape: want.Shape, Type: s.typeOf(want)}
		if w.Type == gguf.F32 {
			w.Stream = s.stream(r, want, s.silent(want, sayable))
		} else {
			w.Blocks = s.quantised(r, want, w.Type, s.silent(want, sayable))
		}
		out = append(out, w)
	}
	add := func(name string, factors []float32) {
		out = append(out, gguf.Weights{Name: name, Shape: []uint64{uint64(len(factors))}, Values: factors})
	}
	switch s.RopeScaling {
	case Llama3:
		add("rope_freqs.weight", s.llama3Factors())
	case Long:
		add("rope_factors_long.weight", s.LongFactors(s.RopeFactor))
		add("rope_factors_short.weight", s.LongFactors(1.5))
	}
	return out
}

// LongFactors returns divisors from 1 for the highest frequency to last for the lowest.
func (s Spec) LongFactors(last float64) []float32 {
	out := make([]float32, cmp.Or(s.RotaryDim, s.HeadDim)/2)
	for i := range out {
		out[i] = float32(1 + (last-1)*float64(i)/float64(max(1, len(out)-1)))
	}
	return out
}

// silent returns which rows are zero: in the head, those of tokens that are never said. With a tied head, so are their
// embeddings.
func (s Spec) silent(want gguf.Tensor, sayable []bool) func(row int) bool {
	head := want.Name == "output.weight" || s.Tied && want.Name == "token_embd.weight"
	return func(row int) bool { return head && !sayable[row] }
}

// stream returns a function that writes a tensor row by row.
func (s Spec) stream(r *random, want gguf.Tensor, silent func(row int) bool) func(func([]float32) error) error {
	mean, deviation := s.scale(want.Name)
	rows := 1
	if len(want.Shape) > 1 {
		rows = int(want.Shape[1])
	}
	return func(write func([]float32) error) error {
		row := make([]float32, want.Shape[0])
		for i := range rows {
			for c := range row {
				row[c] = float32(mean + float64(r.bell()*deviation))
			}
			if silent(i) {
				clear(row)
			}
			if err := write(row); err != nil {
				return err
			}
		}
		return nil
	}
}

// scale returns a tensor's mean and deviation. A sum of n terms of deviation 1 has deviation √n.
func (s Spec) scale(name string) (mean, deviation float64) {
	k := s.scales
	over := func(v float64, n int) float64 { return v / math.Sqrt(float64(n)) }
	embedding := k.quiet
	if scale := s.architecture().EmbeddingScale(); scale > 0 {
		embedding /= scale
	}
	parts := strings.Split(name, ".")
	switch strings.Join(parts[len(parts)-2:], ".") { // without the layer
	case "token_embd.weight":
		return 0, embedding
	case "attn_q.weight", "attn_k.weight", "attn_qkv.weight":
		return 0, over(k.sharp, s.Hidden)
	case "attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_qkv.bias":
		return 0, k.leaning
	case "attn_q_norm.weight", "attn_k_norm.weight":
		return k.sharp, 0.3 * k.sharp
	case "post_attention_norm.weight", "post_ffw_norm.weight":
		return k.adds, 0.3 * k.adds
	case "attn_v.weight":
		return 0, over(1, s.Hidden)
	case "attn_output.weight":
		return 0, over(k.adds, s.Heads*s.HeadDim)
	case "ffn_gate.weight", "ffn_up.weight":
		return 0, over(k.wide, s.Hidden)
	case "ffn_down.weight":
		return 0, over(k.adds, s.FFN)
	case "output.weight":
		return 0, over(k.spread, s.Hidden)
	case "output_norm.weight":
		if s.Tied { // the embedding is too small for a head otherwise
			return over(k.spread/embedding, s.Hidden), over(k.spread/embedding, s.Hidden) * 0.1
		}
	}
	return 1, 0.1 // a norm
}

// llama3Factors returns Llama 3.1's divisors: the factor for low frequencies, 1 for high ones, smooth in between.
func (s Spec) llama3Factors() []float32 {
	const low, high = 1.0, 4.0
	var out []float32
	for i := range s.HeadDim / 2 {
		wave := 2 * math.Pi * math.Pow(s.RopeBase, 2*float64(i)/float64(s.HeadDim))
		turns := float64(s.RopeContext) / wave // in the old context
		smooth := min(1, max(0, (turns-low)/(high-low)))
		out = append(out, float32(1/((1-smooth)/s.RopeFactor+smooth)))
	}
	return out
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // it takes everything
	return h.Sum64()
}
