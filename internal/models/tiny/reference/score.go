package reference

import (
	"context"
	"fmt"
	"math"
)

// Steps moves what is computed by rounding steps, up or down at random but the same in each run. It shows how far
// correct engines that round in other places may lie from the reference. The zero value moves nothing.
type Steps struct {
	Activations float64 // relative; of what enters and leaves each product, and of attention scores
	Cache       float64 // relative; of keys and values
	CacheBits   int     // rounds keys and values to integers of so many bits in blocks of 32; 0: it does not
	Sines       float64 // absolute; of sines and cosines in rotations
	// Block rounds what enters products to 8-bit integers in blocks of so many values, as ggml does with quantised
	// weights; 0: it does not.
	Block int
	GELU  float64 // relative; of what enters and leaves a GELU
}

// Rounding steps of number formats, relative.
const (
	// StepOfFloat32 is four steps of a float32: a sum of some hundred products loses about as much.
	StepOfFloat32 = 1.0 / (1 << 21)
	StepOfFloat16 = 1.0 / (1 << 10)
	// StepOfSines is the absolute error that WGSL allows for sines and cosines.
	StepOfSines = 1.0 / (1 << 11)
)

// random returns the next pseudo-random bits (xorshift).
func (s *Sequence) random() uint64 {
	if s.state == 0 {
		s.state = 0x9e3779b97f4a7c15
	}
	s.state ^= s.state << 13
	s.state ^= s.state >> 7
	s.state ^= s.state << 17
	return s.state
}

// sign is 1 or -1.
func (s *Sequence) sign() float64 { return float64(int64(s.random()>>63)*2 - 1) }

// move moves each value by a relative step. It returns x.
func (s *Sequence) move(x []float32, step float64) []float32 {
	if step == 0 {
		return x
	}
	for i, v := range x {
		x[i] = float32(float64(v) * (1 + step*s.sign()))
	}
	return x
}

// enter moves what enters a product. It returns x.
func (s *Sequence) enter(x []float32) []float32 {
	if s.steps.Block > 0 {
		roundBlocks(x, s.steps.Block, 8)
	}
	return s.move(x, s.steps.Activations)
}

// store moves keys or values that enter the cache. It returns x.
func (s *Sequence) store(x []float32) []float32 {
	if s.steps.CacheBits > 0 {
		roundBlocks(x, 32, s.steps.CacheBits)
	}
	return s.move(x, s.steps.Cache)
}

// roundBlocks rounds blocks of values to integers of so many bits, whose largest is the block's largest.
func roundBlocks(x []float32, block, bits int) {
	for from := 0; from < len(x); from += block {
		part := x[from:min(from+block, len(x))]
		most := 0.0
		for _, v := range part {
			most = max(most, math.Abs(float64(v)))
		}
		if scale := most / float64(int(1)<<(bits-1)-1); scale > 0 {
			for i, v := range part {
				part[i] = float32(math.Round(float64(v)/scale) * scale)
			}
		}
	}
}

// Score computes ids and calls each for those from a position on, which is above 0, with the log-probabilities of all
// tokens at that place. The slice is only valid during the call.
func (m *Model) Score(ctx context.Context, ids []int, from int, steps Steps,
	each func(position int, logProbs []float64)) error {
	if from < 1 || from >= len(ids) || len(ids) > m.shape.ContextLength {
		return fmt.Errorf("reference: scoring from position %d of %d; the context is %d", from, len(ids),
			m.shape.ContextLength)
	}
	s := m.Start()
	s.steps = steps
	logProbs := make([]float64, m.shape.VocabSize)
	for i, id := range ids[:len(ids)-1] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if id < 0 || id >= m.shape.VocabSize {
			return fmt.Errorf("reference: token %d is outside the vocabulary of %d", id, m.shape.VocabSize)
		}
		if logits := s.Step(id, i+1 >= from); i+1 >= from {
			normalise(logProbs, logits)
			each(i+1, logProbs)
		}
	}
	return nil
}

// normalise turns logits into log-probabilities.
func normalise(out []float64, logits []float32) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range logits {
		most = max(most, float64(v))
	}
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	all := most + math.Log(sum)
	for i, v := range logits {
		out[i] = float64(v) - all
	}
}
