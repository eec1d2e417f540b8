// Package hfconfig reads what a Hugging Face config.json says of a language model, and works out from it every weight
// the model consists of and what a token takes in its KV cache: by architecture, never by a table of models.
//
// It knows decoder-only transformers (families.go lists their model_types), among them those with grouped and
// multi-query attention, with latent attention (MLA), with sliding windows in some or all layers, and mixtures of
// experts. Of models that see or hear it counts the text part. A model_type that it doesn't know is an error and not a
// guess. It can't see weights that a config doesn't mention (adapters, heads for other tasks, layers for multi-token
// prediction are left out, with a note), and it reads no weights; the headers of safetensors files it does read, where
// they lie beside a config (safetensors.go).
package hfconfig

import (
	"fmt"
	"math"
	"math/bits"

	"llmparity/internal/fault"
)

// Part is the part of a model that a weight belongs to.
type Part string

// The parts of a model.
const (
	Embedding   Part = "embedding"
	Positions   Part = "positions"
	Attention   Part = "attention"
	FeedForward Part = "feed-forward"
	Experts     Part = "experts"
	Router      Part = "router"
	Norms       Part = "norms"
	Head        Part = "head"
	Whole       Part = "all" // where only the sum is known
)

// Split says how tensor parallelism divides a weight among devices.
type Split int

// The ways of dividing.
const (
	Replicated Split = iota // each device has all of it
	Sharded                 // each has an equal share
	ByKVHead                // each has an equal share of the key-value heads, and at least one of them
)

// Weight is a tensor that a model has, or several that are alike.
type Weight struct {
	Part   Part
	Name   string // within its layer, as transformers names it
	Times  int64  // how many there are alike
	Rows   int64
	Cols   int64 // 1 for a vector
	Linear bool  // the matrix of a linear layer within the layers, which is what quantisers take
	Split  Split
	Active int64 // of Times, how many a token passes
}

// Values counts what is in it.
func (w Weight) Values() int64 { return w.Times * w.Rows * w.Cols }

// Cache is what a token takes in the KV cache, in a group of layers that are alike.
type Cache struct {
	Layers int
	Values int64 // keys and values together, of a token in one layer
	Keys   int64 // of them keys
	Heads  int   // key-value heads; 0: a latent, which tensor parallelism doesn't divide
	Window int   // how many tokens a token sees, itself among them; 0: all
	// Expanded is what an engine keeps that doesn't cache the latent itself but what it stands for; 0: the same.
	Expanded     int64
	ExpandedKeys int64
}

// Model is what a config says.
type Model struct {
	File          string
	Name          string
	Type          string // model_type
	DType         string // of the weights as they are published; "" where it isn't said
	Layers        int
	Hidden        int
	Heads         int
	KVHeads       int
	HeadDim       int
	Intermediate  int
	Vocab         int
	MaxPositions  int // the longest text; 0 where it isn't said
	Experts       int // of a layer that has some; 0: no mixture
	ActiveExperts int // that a token passes, shared ones not counted
	Tied          bool
	Latent        bool // attention with a latent, MLA
	Weights       []Weight
	Caches        []Cache
	Quantized     *Quantized // how the published weights are quantised; nil: not
	Notes         []string   // what the numbers don't count
}

// Parameters counts the model's weights; tied ones once.
func (m Model) Parameters() int64 {
	var n int64
	for _, w := range m.Weights {
		n += w.Values()
	}
	return n
}

// ActiveParameters counts those that one token passes: of a mixture not all.
func (m Model) ActiveParameters() int64 {
	var n int64
	for _, w := range m.Weights {
		n += w.Active * w.Rows * w.Cols
	}
	return n
}

// KVValues is how many values a token takes in the KV cache of all layers.
func (m Model) KVValues() int64 {
	var n int64
	for _, c := range m.Caches {
		n += int64(c.Layers) * c.Values
	}
	return n
}

// maxParameters is far beyond any model, and far below what would overflow when it is multiplied by bytes and devices.
const maxParameters = 1 << 50

// add takes a weight in; times of 0 are none.
func (m *Model) add(w Weight) {
	if w.Times == 0 || w.Rows == 0 || w.Cols == 0 {
		return
	}
	if w.Active == 0 && w.Part != Experts {
		w.Active = w.Times
	}
	m.Weights = append(m.Weights, w)
}

// sound says why numbers that are each possible make no model together.
func (m *Model) sound() error {
	if m.ActiveExperts > m.Experts {
		return bad(m.File, "correct one of them", "a token passes %d experts of %d", m.ActiveExperts, m.Experts)
	}
	var sum int64
	for _, w := range m.Weights {
		n, ok := product(w.Times, w.Rows, w.Cols)
		if sum += n; !ok || sum > maxParameters {
			return bad(m.File, "check its sizes", "%s would be %d × %d × %d values, more than any model has", w.Name,
				w.Times, w.Rows, w.Cols)
		}
	}
	for _, c := range m.Caches {
		if n, ok := product(int64(c.Layers), max(c.Values, c.Expanded)); !ok || n > 1<<40 {
			return bad(m.File, "check its sizes",
				"a token would take %d × %d values in the KV cache, more than in any model", c.Layers, c.Values)
		}
	}
	return nil
}

// product multiplies numbers that aren't negative; not ok is what doesn't fit.
func product(numbers ...int64) (int64, bool) {
	p := uint64(1)
	for _, n := range numbers {
		hi, lo := bits.Mul64(p, uint64(n))
		if n < 0 || hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		p = lo
	}
	return int64(p), true
}

// bad is an error about a config's content.
func bad(file, do, format string, args ...any) error {
	return fault.New(fault.BadModel, do, "%s: %s", file, fmt.Sprintf(format, args...))
}
