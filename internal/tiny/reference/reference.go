// Package reference is a third opinion: a plain llama forward pass and the tokenizers, written for being read, against
// which tests hold the real engines, and which says what the tiny model is expected to answer. Where two engines differ
// it shows which one is off.
//
// It is not an engine: one sequence, greedy only, F32 weights only, everything in memory, no threads.
package reference

import (
	"fmt"
	"math"

	"llmparity/internal/gguf"
)

// Model is a llama with its weights in memory.
type Model struct {
	shape  gguf.Architecture
	embed  []float32
	head   []float32
	norm   []float32
	layers []layer
}

type layer struct {
	attnNorm, q, k, v, o, ffnNorm, gate, up, down []float32
}

// Load reads a model's weights.
func Load(f *gguf.File) (*Model, error) {
	shape, err := f.Architecture()
	if err != nil {
		return nil, err
	}
	m := &Model{shape: shape, layers: make([]layer, shape.BlockCount)}
	read := func(to *[]float32, format string, args ...any) {
		if err != nil {
			return
		}
		t, ok := f.Tensor(fmt.Sprintf(format, args...) + ".weight")
		if !ok {
			panic("a tensor that Llama has checked is gone: " + fmt.Sprintf(format, args...))
		}
		*to, err = f.Floats(t)
	}
	read(&m.embed, "token_embd")
	read(&m.norm, "output_norm")
	m.head = m.embed
	if !shape.Tied {
		read(&m.head, "output")
	}
	for i := range m.layers {
		l := &m.layers[i]
		read(&l.attnNorm, "blk.%d.attn_norm", i)
		read(&l.q, "blk.%d.attn_q", i)
		read(&l.k, "blk.%d.attn_k", i)
		read(&l.v, "blk.%d.attn_v", i)
		read(&l.o, "blk.%d.attn_output", i)
		read(&l.ffnNorm, "blk.%d.ffn_norm", i)
		read(&l.gate, "blk.%d.ffn_gate", i)
		read(&l.up, "blk.%d.ffn_up", i)
		read(&l.down, "blk.%d.ffn_down", i)
	}
	return m, err
}

// Sequence is a position in a text: its keys and values so far.
type Sequence struct {
	m            *Model
	length       int
	keys, values [][]float32 // one a layer, growing by a position a step
}

// Start begins an empty sequence.
func (m *Model) Start() *Sequence {
	n := m.shape.BlockCount
	return &Sequence{m: m, keys: make([][]float32, n), values: make([][]float32, n)}
}

// Step appends a token and gives the logits for the next one, or nil when they aren't wanted.
func (s *Sequence) Step(id int, logits bool) []float32 {
	m, h := s.m, s.m.shape.EmbeddingLength
	x := append([]float32(nil), m.embed[id*h:(id+1)*h]...)
	for i := range m.layers {
		l := &m.layers[i]
		add(x, s.attend(i, rmsNorm(x, l.attnNorm, m.shape.RMSEpsilon)))
		in := rmsNorm(x, l.ffnNorm, m.shape.RMSEpsilon)
		gate, up := multiply(l.gate, in), multiply(l.up, in)
		for j, g := range gate {
			gate[j] = float32(float64(g) / (1 + math.Exp(-float64(g))) * float64(up[j]))
		}
		add(x, multiply(l.down, gate))
	}
	s.length++
	if !logits {
		return nil
	}
	return multiply(m.head, rmsNorm(x, m.norm, m.shape.RMSEpsilon))
}

// attend is the attention of layer i for the token at the end of the sequence.
func (s *Sequence) attend(i int, in []float32) []float32 {
	l, sh := &s.m.layers[i], s.m.shape
	q, k := multiply(l.q, in), multiply(l.k, in)
	rotate(q, s.length, sh.HeadDim, sh.RopeBase)
	rotate(k, s.length, sh.HeadDim, sh.RopeBase)
	s.keys[i] = append(s.keys[i], k...)
	s.values[i] = append(s.values[i], multiply(l.v, in)...)
	out := make([]float32, sh.HeadCount*sh.HeadDim)
	width := sh.HeadCountKV * sh.HeadDim
	scores := make([]float64, s.length+1)
	for head := range sh.HeadCount {
		at := head / (sh.HeadCount / sh.HeadCountKV) * sh.HeadDim
		mine := q[head*sh.HeadDim : (head+1)*sh.HeadDim]
		for p := range scores {
			scores[p] = dot(mine, s.keys[i][p*width+at:p*width+at+sh.HeadDim]) / math.Sqrt(float64(sh.HeadDim))
		}
		softmax(scores)
		for d := range sh.HeadDim {
			sum := 0.0
			for p, w := range scores {
				sum += w * float64(s.values[i][p*width+at+d])
			}
			out[head*sh.HeadDim+d] = float32(sum)
		}
	}
	return multiply(l.o, out)
}

// rotate turns neighbouring pairs of each head by the position's angles: the layout in which GGUF stores a llama.
func rotate(x []float32, position, dim int, base float64) {
	for start := 0; start < len(x); start += dim {
		for j := 0; j < dim; j += 2 {
			angle := float64(position) * math.Pow(base, -float64(j)/float64(dim))
			sin, cos := math.Sincos(angle)
			a, b := float64(x[start+j]), float64(x[start+j+1])
			x[start+j], x[start+j+1] = float32(a*cos-b*sin), float32(a*sin+b*cos)
		}
	}
}

func softmax(x []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func rmsNorm(x, weight []float32, epsilon float64) []float32 {
	scale := 1 / math.Sqrt(dot(x, x)/float64(len(x))+epsilon)
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(float64(v) * scale * float64(weight[i]))
	}
	return out
}

// multiply is a matrix, stored by rows, times a vector.
func multiply(matrix, x []float32) []float32 {
	out := make([]float32, len(matrix)/len(x))
	for r := range out {
		out[r] = float32(dot(matrix[r*len(x):(r+1)*len(x)], x))
	}
	return out
}

// dot sums in float64, so that the order of summing matters to nobody.
func dot(a, b []float32) float64 {
	sum := 0.0
	b = b[:len(a)]
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

func add(to, x []float32) {
	for i, v := range x {
		to[i] += v
	}
}

// Greedy continues a prompt by n tokens. margins[i] is how far the logit of ids[i] lies above the next best.
func (m *Model) Greedy(prompt []int, n int) (ids []int, margins []float64, err error) {
	if len(prompt) == 0 {
		return nil, nil, fmt.Errorf("reference: an empty prompt has no continuation")
	}
	if total := len(prompt) + n; total > m.shape.ContextLength {
		return nil, nil, fmt.Errorf("reference: %d tokens don't fit into the context of %d", total, m.shape.ContextLength)
	}
	for _, id := range prompt {
		if id < 0 || id >= m.shape.VocabSize {
			return nil, nil, fmt.Errorf("reference: token %d is outside the vocabulary of %d", id, m.shape.VocabSize)
		}
	}
	s := m.Start()
	for _, id := range prompt[:len(prompt)-1] {
		s.Step(id, false)
	}
	next := prompt[len(prompt)-1]
	for range n {
		best, margin := top(s.Step(next, true))
		ids, margins, next = append(ids, best), append(margins, margin), best
	}
	return ids, margins, nil
}

// top finds the greatest logit and its lead over the next one.
func top(logits []float32) (best int, margin float64) {
	second := math.Inf(-1)
	for i, v := range logits {
		switch {
		case i == 0:
		case v > logits[best]:
			best, second = i, float64(logits[best])
		default:
			second = max(second, float64(v))
		}
	}
	return best, float64(logits[best]) - second
}

// Greedy loads a model for one continuation.
func Greedy(f *gguf.File, prompt []int, n int) (ids []int, margins []float64, err error) {
	m, err := Load(f)
	if err != nil {
		return nil, nil, err
	}
	return m.Greedy(prompt, n)
}
