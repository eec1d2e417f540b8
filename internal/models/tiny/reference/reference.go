// Package reference is a plain forward pass of the supported architectures, written to be read. Tests, and runs of the
// tiny model, compare engines with it: if two engines differ, it shows which one is wrong.
//
// It supports one sequence, greedy decoding and weights in memory, on one thread.
package reference

import (
	"fmt"
	"math"
	"strings"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// Model is a model in memory.
type Model struct {
	shape  gguf.Architecture
	global rotation // of most layers
	local  rotation // of layers with a window and a base of their own
	embed  []float32
	head   []float32
	norm   []float32
	layers []layer
}

// layer has the tensors of a layer by their names in the file, without its number. Those that it lacks are empty.
type layer map[string][]float32

// Open reads the tokenizer and the weights of a file.
func Open(path string) (*tokenizer.Tokenizer, *Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return Read(f)
}

// Read is Open for an open file.
func Read(f *gguf.File) (*tokenizer.Tokenizer, *Model, error) {
	v, err := f.Vocabulary()
	if err != nil {
		return nil, nil, err
	}
	m, err := Load(f)
	if err != nil {
		return nil, nil, err
	}
	return tokenizer.New(v), m, nil
}

// Load reads the weights.
func Load(f *gguf.File) (*Model, error) {
	shape, err := f.Architecture()
	if err != nil {
		return nil, err
	}
	weights := map[string][]float32{}
	for _, want := range shape.Tensors() {
		t, _ := f.Tensor(want.Name) // checked by Architecture
		if weights[want.Name], err = f.Floats(t); err != nil {
			return nil, err
		}
	}
	m := &Model{shape: shape, embed: weights["token_embd.weight"], head: weights["output.weight"],
		norm: weights["output_norm.weight"]}
	m.Context(shape.ContextLength)
	if shape.Tied {
		m.head = m.embed
	}
	for i := range shape.BlockCount {
		l := layer{}
		for name, values := range weights {
			if part, ok := strings.CutPrefix(name, fmt.Sprintf("blk.%d.", i)); ok {
				l[part] = values
			}
		}
		for _, kind := range []string{".weight", ".bias"} {
			if shape.FusedQKV {
				l["attn_q"+kind], l["attn_k"+kind], l["attn_v"+kind] = m.divide(l["attn_qkv"+kind])
			}
		}
		if up := l["ffn_up.weight"]; shape.FusedGate {
			l["ffn_gate.weight"], l["ffn_up.weight"] = up[:len(up)/2], up[len(up)/2:]
		}
		m.layers = append(m.layers, l)
	}
	return m, nil
}

// divide returns the rows of queries, keys and values.
func (m *Model) divide(all []float32) (q, k, v []float32) {
	heads, kv := m.shape.HeadCount, m.shape.HeadCountKV
	one := len(all) / (heads + 2*kv)
	return all[:heads*one], all[heads*one : (heads+kv)*one], all[(heads+kv)*one:]
}

// Context sets the context that LongRoPE's factors are for. Unless it is called, it is the model's longest.
func (m *Model) Context(tokens int) {
	factors, magnitude := m.shape.Factors(tokens)
	m.global = rotation{speeds(m.shape.RopeBase, m.shape.Rotated(), factors), magnitude}
	m.local = m.global
	if m.shape.LocalBase > 0 {
		m.local = rotation{speeds(m.shape.LocalBase, m.shape.Rotated(), nil), 1}
	}
}

// Sequence is a text in progress, with its keys and values.
type Sequence struct {
	m            *Model
	length       int
	keys, values [][]float32 // one a layer, growing by a position a step
	steps        Steps
	state        uint64 // of the random signs of steps
	// Scored, if set, sees the attention scores of each head, one for each visible position, and may change them.
	Scored func(layer int, scores []float64)
}

// Start starts an empty sequence.
func (m *Model) Start() *Sequence {
	n := m.shape.BlockCount
	return &Sequence{m: m, keys: make([][]float32, n), values: make([][]float32, n)}
}

// Step appends a token and returns the logits for the next one, or nil if not requested.
func (s *Sequence) Step(id int, logits bool) []float32 {
	m, h := s.m, s.m.shape.EmbeddingLength
	x := append([]float32(nil), m.embed[id*h:(id+1)*h]...)
	if scale := m.shape.EmbeddingScale(); scale > 0 {
		for i := range x {
			x[i] = float32(float64(x[i]) * scale)
		}
	}
	s.move(x, s.steps.Activations)
	for i, l := range m.layers {
		attended := s.attend(i, s.enter(rmsNorm(x, l["attn_norm.weight"], m.shape.RMSEpsilon)))
		add(x, m.post(attended, l["post_attention_norm.weight"]))
		in := s.enter(rmsNorm(s.move(x, s.steps.Activations), l["ffn_norm.weight"], m.shape.RMSEpsilon))
		gate, up := multiply(l["ffn_gate.weight"], in), multiply(l["ffn_up.weight"], in)
		for j, g := range gate {
			gate[j] = float32(s.activate(float64(g)) * float64(up[j]))
		}
		add(x, m.post(multiply(l["ffn_down.weight"], s.enter(gate)), l["post_ffw_norm.weight"]))
		s.move(x, s.steps.Activations)
	}
	s.length++
	if !logits {
		return nil
	}
	out := multiply(m.head, s.enter(rmsNorm(x, m.norm, m.shape.RMSEpsilon)))
	for i, v := range out {
		out[i] = float32(capped(float64(v), m.shape.OutputCap))
	}
	return out
}

// post normalises what is added to the hidden state, in architectures that do so.
func (m *Model) post(x, weight []float32) []float32 {
	if len(weight) == 0 {
		return x
	}
	return rmsNorm(x, weight, m.shape.RMSEpsilon)
}

// activate is the SiLU, or the GELU's approximation by tanh.
func (s *Sequence) activate(v float64) float64 {
	if s.m.shape.Traits().GELU {
		step := s.steps.GELU
		if step > 0 {
			v *= 1 + step*s.sign()
		}
		v = 0.5 * v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		if step > 0 {
			v *= 1 + step*s.sign()
		}
		return v
	}
	return v / (1 + math.Exp(-v))
}

// capped limits a value softly to ±cap; 0 is no limit.
func capped(v, cap float64) float64 {
	if cap == 0 {
		return v
	}
	return cap * math.Tanh(v/cap)
}

// normHeads normalises each head, in architectures that do so.
func (m *Model) normHeads(x, weight []float32) {
	if len(weight) == 0 {
		return
	}
	for ; len(x) > 0; x = x[len(weight):] {
		copy(x, rmsNorm(x[:len(weight)], weight, m.shape.RMSEpsilon))
	}
}

// attend computes the attention of layer i for the last token.
func (s *Sequence) attend(i int, in []float32) []float32 {
	l, sh := s.m.layers[i], s.m.shape
	q, k, v := multiply(l["attn_q.weight"], in), multiply(l["attn_k.weight"], in), multiply(l["attn_v.weight"], in)
	add(q, l["attn_q.bias"]) // which may be empty
	add(k, l["attn_k.bias"])
	add(v, l["attn_v.bias"])
	s.m.normHeads(q, l["attn_q_norm.weight"])
	s.m.normHeads(k, l["attn_k_norm.weight"])
	turn, local := s.m.global, sh.Local(i)
	if local {
		turn = s.m.local
	}
	s.rotate(q, turn)
	s.rotate(k, turn)
	s.keys[i] = append(s.keys[i], s.store(k)...)
	s.values[i] = append(s.values[i], s.store(v)...)
	out := make([]float32, sh.HeadCount*sh.HeadDim)
	width := sh.HeadCountKV * sh.HeadDim
	first := 0 // the first visible position
	if w := sh.SlidingWindow; w > 0 && local {
		first = max(0, s.length+1-w)
	}
	scores := make([]float64, s.length+1-first)
	keys, values := s.keys[i][first*width:], s.values[i][first*width:]
	for head := range sh.HeadCount {
		at := head / (sh.HeadCount / sh.HeadCountKV) * sh.HeadDim
		mine := q[head*sh.HeadDim : (head+1)*sh.HeadDim]
		for p := range scores {
			score := dot(mine, keys[p*width+at:p*width+at+sh.HeadDim]) / math.Sqrt(float64(sh.QueryScalar()))
			if step := s.steps.Activations; step > 0 {
				score *= 1 + step*s.sign()
			}
			scores[p] = capped(score, sh.AttentionCap)
		}
		if s.Scored != nil {
			s.Scored(i, scores)
		}
		softmax(scores)
		mix(out[head*sh.HeadDim:(head+1)*sh.HeadDim], scores, values[at:], width)
	}
	return multiply(l["attn_output.weight"], s.enter(out))
}

// rotation is how queries and keys are rotated.
type rotation struct {
	speeds    []float64 // angles a position, one for each pair of a head's values
	magnitude float64   // factor of what is rotated
}

func speeds(base float64, values int, factors []float64) []float64 {
	out := make([]float64, values/2)
	for i := range out {
		out[i] = math.Pow(base, -2*float64(i)/float64(values))
		if len(factors) > 0 {
			out[i] /= factors[i]
		}
	}
	return out
}

// mix adds weighted vectors, which are step apart in values. Excluded from race detection, like dot, for speed.
//
//go:norace
func mix(to []float32, weights []float64, values []float32, step int) {
	for d := range to {
		sum := 0.0
		for p, w := range weights {
			sum += w * float64(values[p*step+d])
		}
		to[d] = float32(sum)
	}
}

// rotate rotates the pairs of each head by the position's angles: adjacent values in a llama's GGUF, otherwise a value
// of the first half with one of the second.
func (s *Sequence) rotate(x []float32, r rotation) {
	dim := s.m.shape.HeadDim
	for i, speed := range r.speeds {
		sin, cos := math.Sincos(float64(s.length) * speed)
		if step := s.steps.Sines; step > 0 {
			sin, cos = sin+step*s.sign(), cos+step*s.sign()
		}
		sin, cos = sin*r.magnitude, cos*r.magnitude
		a, b := i, i+len(r.speeds)
		if s.m.shape.Traits().Interleaved {
			a, b = 2*i, 2*i+1
		}
		for head := 0; head < len(x); head += dim {
			v, w := float64(x[head+a]), float64(x[head+b])
			x[head+a], x[head+b] = float32(v*cos-w*sin), float32(v*sin+w*cos)
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

// multiply multiplies a matrix, stored by rows, with a vector.
func multiply(matrix, x []float32) []float32 {
	out := make([]float32, len(matrix)/len(x))
	for r := range out {
		out[r] = float32(dot(matrix[r*len(x):(r+1)*len(x)], x))
	}
	return out
}

// dot sums in float64, so that the order hardly matters. Most time is spent here: four independent sums, and no race
// detection.
//
//go:norace
func dot(a, b []float32) float64 {
	var s, t, u, v float64
	for ; len(a) >= 4 && len(b) >= 4; a, b = a[4:], b[4:] {
		s += float64(a[0]) * float64(b[0])
		t += float64(a[1]) * float64(b[1])
		u += float64(a[2]) * float64(b[2])
		v += float64(a[3]) * float64(b[3])
	}
	for i, x := range a {
		s += float64(x) * float64(b[i])
	}
	return (s + t) + (u + v)
}

func add(to, x []float32) {
	for i, v := range x {
		to[i] += v
	}
}

// Greedy continues a prompt by n tokens. margins[i] is the lead of the logit of ids[i] over the next best.
func (m *Model) Greedy(prompt []int, n int) (ids []int, margins []float64, err error) {
	if len(prompt) == 0 {
		return nil, nil, fmt.Errorf("reference: empty prompt")
	}
	if total := len(prompt) + n; total > m.shape.ContextLength {
		return nil, nil, fmt.Errorf("reference: %d tokens exceed the context of %d", total,
			m.shape.ContextLength)
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

// top returns the best logit and its lead over the second.
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
