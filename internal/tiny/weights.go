package tiny

import (
	"fmt"

	"llmparity/internal/gguf"
)

// The weights are not just random. In a random model the two best logits are sometimes so close that correct engines
// diverge. This model decides between codewords (see code.go), so its best logit nearly always leads by a wide margin,
// and each choice still depends on the whole context:
//
//   - the embedding writes the token's codeword into the first half of the hidden state;
//   - in each layer, heads 0 and 2 choose one position together, sharply, by a random bilinear form of the two hidden
//     states and by their distance; heads 1 and 3 choose another. A key-value head carries half a codeword, so it takes
//     two heads to move one. Layer 0 mostly follows the first pair, layer 1 the second, the other pair is overtones;
//   - the feed-forward part multiplies the two halves of the hidden state, which is the exclusive or of their words: in
//     a gated layer silu(x)·y - silu(-x)·y is x·y exactly. Its other half is random and adds overtones as well;
//   - the head maps each of the 512 words to a token, in random order.
//
// So the next token is a random function of this one, of one that layer 1 picked, and of one that layer 0 picked there.
// A little noise on every weight makes omitted or swapped rows visible.
const (
	seed      = 10 // one with which no token follows itself for ever
	sharpness = 96.0
	overtone  = 0.15 // strength of the pair of heads that a layer doesn't follow
	follow0   = 0.7  // strength of what attention moves, per layer
	follow1   = 5.0
	product0  = 8.0 // strength of the exclusive or, per layer
	product1  = 50.0
	wild      = 0.15 // strength of the random half of the feed-forward part
	noise     = 0.02
	loud      = 1.2 // scale of the logits
)

// unit128 and unit256 keep a vector's length in sums of so many terms: one over their square roots.
const (
	unit128 = 0.08838834764831845
	unit256 = 0.0625
)

// matrix is a tensor under construction. Values are converted to float32 before additions, which prevents fused
// multiply-adds: the bits are the same on every platform.
type matrix struct {
	columns int
	values  []float32
}

func (m matrix) add(row, column int, v float32) { m.values[row*m.columns+column] += float32(v) }

func (m matrix) scatter(r *random, deviation float64) {
	for i := range m.values {
		m.values[i] += float32(r.bell() * deviation)
	}
}

// builder fills the tensors in order from one stream of random numbers.
type builder struct {
	*random
	tensors map[string]matrix
}

func (b *builder) part(layer int, name string) matrix {
	return b.tensors[fmt.Sprintf("blk.%d.%s.weight", layer, name)]
}

// weights returns all tensors in storage order.
func weights() []gguf.Weights {
	b := &builder{&random{seed}, map[string]matrix{}}
	var out []gguf.Weights
	for _, w := range shape.Tensors() {
		n := uint64(1)
		for _, d := range w.Shape {
			n *= d
		}
		m := matrix{int(w.Shape[0]), make([]float32, n)}
		b.tensors[w.Name] = m
		out = append(out, gguf.Weights{Name: w.Name, Shape: w.Shape, Values: m.values})
	}
	b.embedding()
	for layer := range shape.BlockCount {
		b.norm(b.part(layer, "attn_norm"))
		b.norm(b.part(layer, "ffn_norm"))
		b.choose(layer)
		b.move(layer)
		b.multiply(layer)
		b.wander(layer)
	}
	b.norm(b.tensors["output_norm.weight"])
	b.head()
	return out
}

func (b *builder) norm(m matrix) {
	for i := range m.values {
		m.values[i] = 1
	}
	m.scatter(b.random, 0.06)
}

func (b *builder) embedding() {
	m := b.tensors["token_embd.weight"]
	m.scatter(b.random, 4*noise)
	for id := range vocabSize {
		for place := range wordSigns {
			m.add(id, place, sign(id, place))
		}
	}
}

// choose fills Q and K with random forms, the same for both heads of a pair. The second head's form and key are rotated
// by a quarter turn, which keeps the scores but makes the heads different.
func (b *builder) choose(layer int) {
	q, k := b.part(layer, "attn_q"), b.part(layer, "attn_k")
	d := shape.HeadDim
	form := func(m matrix, first, second int, deviation float64) {
		f := matrix{m.columns, make([]float32, d*m.columns)}
		f.scatter(b.random, deviation)
		for row := range d {
			turned, s := row^1, float32(1)
			if row%2 == 0 {
				s = -1
			}
			for c := range m.columns {
				m.add(first*d+row, c, f.values[row*m.columns+c])
				m.add(second*d+row, c, s*f.values[turned*m.columns+c])
			}
		}
	}
	form(k, 0, 1, unit128)
	form(q, 0, 2, unit128*sharpness)
	form(q, 1, 3, unit128*sharpness)
}

// move fills V and the attention output: V reads the codeword from one half of the hidden state, the output writes it,
// permuted, into the other.
func (b *builder) move(layer int) {
	v, o := b.part(layer, "attn_v"), b.part(layer, "attn_output")
	v.scatter(b.random, noise)
	o.scatter(b.random, noise)
	from, to := 0, wordSigns
	strength := [2]float64{follow0, follow0 * overtone}
	if layer == 1 {
		from, to = wordSigns, 0
		strength = [2]float64{follow1 * overtone, follow1}
	}
	d := shape.HeadDim
	for place := range wordSigns {
		v.add(place, from+place, 1)
		for pair, s := range strength {
			head := place/d*2 + pair
			o.add(to+moved(place, 2+layer, 3+2*pair), head*d+place%d, float32(s))
		}
	}
}

// multiply fills the first half of the feed-forward part: the product of the hidden state's halves, added to the second
// half in layer 0 and to the first, which the head reads, in layer 1.
func (b *builder) multiply(layer int) {
	gate, up, down := b.part(layer, "ffn_gate"), b.part(layer, "ffn_up"), b.part(layer, "ffn_down")
	gate.scatter(b.random, noise)
	up.scatter(b.random, noise)
	down.scatter(b.random, noise)
	to, strength := wordSigns, float32(product0)
	if layer == 1 {
		to, strength = 0, product1
	}
	for place := range wordSigns {
		for half, s := range []float32{1, -1} {
			row := half*wordSigns + place
			gate.add(row, wordSigns+place, s)
			up.add(row, place, 1)
			down.add(to+place, row, s*strength)
		}
	}
}

// wander fills the other half of the feed-forward part with random values.
func (b *builder) wander(layer int) {
	gate, up, down := b.part(layer, "ffn_gate"), b.part(layer, "ffn_up"), b.part(layer, "ffn_down")
	for row := 2 * wordSigns; row < shape.FeedForwardLength; row++ {
		for c := range shape.EmbeddingLength {
			gate.add(row, c, float32(b.bell()*(unit128*1.4)))
			up.add(row, c, float32(b.bell()*(unit128*1.4)))
			down.add(c, row, float32(b.bell()*(unit256*wild)))
		}
	}
}

// head assigns a token to each word. Special tokens have zero rows and never win; their three words map to other
// tokens.
func (b *builder) head() {
	m := b.tensors["output.weight"]
	usual := vocabSize - specials
	for i := range usual * m.columns {
		m.values[i] = float32(b.bell() * (noise * loud))
	}
	for i, word := range b.order(words) {
		for place := range wordSigns {
			m.add(i%usual, place, sign(word, place)*float32(loud))
		}
	}
}
