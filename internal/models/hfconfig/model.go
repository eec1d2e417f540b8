// Package hfconfig calculates a language model's weights and KV cache from its Hugging Face config.json, by
// architecture. It also reads the headers of safetensors files.
//
// It supports the decoder-only transformers in families.go, with grouped and multi-query attention, latent attention
// (MLA), sliding windows and mixtures of experts. Of multimodal models it counts the text part. An unknown model_type
// is an error, not a guess. Weights that a config does not mention, such as adapters, are not counted.
package hfconfig

import (
	"fmt"
	"math"
	"math/bits"

	"llmparity/internal/kit/fault"
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
	Whole       Part = "all" // if only the sum is known
)

// Split is how tensor parallelism divides a weight among devices.
type Split int

// The ways of dividing.
const (
	Replicated Split = iota // each device has all of it
	Sharded                 // each has an equal share
	ByKVHead                // each has an equal share of the key-value heads, at least one
)

// Weight is a tensor of a model, or several of the same shape.
type Weight struct {
	Part   Part
	Name   string // within its layer, as transformers names it
	Times  int64  // how many there are
	Rows   int64
	Cols   int64 // 1 for a vector
	Linear bool  // the matrix of a linear layer, which quantisers take
	Split  Split
	Active int64 // of Times, how many a token uses
}

// Values returns the number of values.
func (w Weight) Values() int64 { return w.Times * w.Rows * w.Cols }

// Cache is the KV cache of a token, in a group of equal layers.
type Cache struct {
	Layers int
	Values int64 // keys and values together, of a token in one layer
	Keys   int64 // of them keys
	Heads  int   // key-value heads; 0: a latent, which tensor parallelism does not divide
	Window int   // tokens that a token sees, itself included; 0: all
	// Expanded is for engines that cache keys and values instead of the latent; 0: the same.
	Expanded     int64
	ExpandedKeys int64
}

// Model is the content of a config.
type Model struct {
	File          string
	Name          string
	Type          string // model_type
	DType         string // of the published weights; "": unknown
	Layers        int
	Hidden        int
	Heads         int
	KVHeads       int
	HeadDim       int
	Inter         int
	Vocab         int
	MaxContext    int // 0: unknown
	Experts       int // in a layer; 0: no mixture
	ActiveExperts int // that a token uses, without shared ones
	Weights       []Weight
	Caches        []Cache
	Quantized     *Quantized // format of the published weights; nil: not quantised
	Notes         []string   // what is not counted
}

// Parameters returns the number of parameters; tied ones count once.
func (m Model) Parameters() int64 {
	var n int64
	for _, w := range m.Weights {
		n += w.Values()
	}
	return n
}

// ActiveParameters returns the parameters that a token uses.
func (m Model) ActiveParameters() int64 {
	var n int64
	for _, w := range m.Weights {
		n += w.Active * w.Rows * w.Cols
	}
	return n
}

// KVValues returns the values of a token in the KV cache of all layers.
func KVValues(caches []Cache) (n int64) {
	for _, c := range caches {
		n += int64(c.Layers) * c.Values
	}
	return n
}

// maxParameters avoids overflows.
const maxParameters = 1 << 50

// add adds a weight, unless it is empty.
func (m *Model) add(w Weight) {
	if w.Times == 0 || w.Rows == 0 || w.Cols == 0 {
		return
	}
	if w.Active == 0 && w.Part != Experts {
		w.Active = w.Times
	}
	m.Weights = append(m.Weights, w)
}

// sound checks how sizes fit together.
func (m *Model) sound() error {
	if m.ActiveExperts > m.Experts {
		return bad(m.File, "correct one of them", "a token uses %d experts of %d", m.ActiveExperts, m.Experts)
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

// product multiplies numbers. It is not ok if one is negative or the product overflows.
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

// bad returns an error about the content of a file.
func bad(file, do, format string, args ...any) error {
	return fault.New(fault.BadModel, do, "%s: %s", file, fmt.Sprintf(format, args...))
}
