// Package damage plants faults: into the weights of a model, and into the arithmetic of the reference implementation.
// They show which faults of an engine a comparison of tokens finds, which one of scores, and which none.
package damage

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"llmparity/internal/models/gguf"
)

// Kind is a kind of fault in weights.
type Kind string

// The kinds. Norms have no rows; of them values are zeroed and swapped.
const (
	Signs   Kind = "2% of signs flipped"
	Zeroed  Kind = "a zeroed row"
	Swapped Kind = "two swapped rows"
	Noise   Kind = "relative noise of 1%"
	Loud    Kind = "relative noise of 5%"
	Scaled  Kind = "a norm × 1.03"
	Rope    Kind = "RoPE base 1% off"
)

// Kinds returns them in the order of tables.
func Kinds() []Kind { return []Kind{Signs, Zeroed, Swapped, Noise, Loud, Scaled, Rope} }

// Fault is a fault in a tensor, or with no tensor in the metadata.
type Fault struct {
	Kind   Kind
	Tensor string
	Row    int    // the zeroed row, or the first of two swapped ones
	Hidden string // why nothing finds it; "" if something must
}

const (
	embedding = "token_embd.weight"
	head      = "output.weight"
	ropeBase  = "llama.rope.freq_base"
)

// All returns the faults of a model: each kind in each tensor. In embedding and head, one row is that of a token of the
// text, and another one that of a token without a say there.
func (in *Intact) All() (all []Fault) {
	used := in.Text[len(in.Text)/3]
	for _, t := range in.file.Tensors {
		tokens := t.Name == embedding || t.Name == head
		row := rowsOf(t) / 3
		if tokens {
			row = used
		}
		for _, kind := range []Kind{Signs, Noise, Loud} {
			all = append(all, Fault{Kind: kind, Tensor: t.Name})
		}
		if isNorm(t.Name) {
			all = append(all, Fault{Kind: Scaled, Tensor: t.Name})
		}
		for _, kind := range []Kind{Zeroed, Swapped} {
			all = append(all, Fault{Kind: kind, Tensor: t.Name, Row: row})
			switch t.Name {
			case embedding:
				all = append(all, Fault{kind, t.Name, in.unread(), "no token reads the row"})
			case head:
				all = append(all, Fault{kind, t.Name, in.unlikely(), "its token is unlikely at all positions"})
			}
		}
	}
	return append(all, Fault{Kind: Rope})
}

// unread returns the first of two tokens that neither prompt nor text has.
func (in *Intact) unread() int {
	return pair(func(id int) bool { return !slices.Contains(in.prompt, id) && !slices.Contains(in.Text, id) })
}

// unlikely returns the first of two tokens that are no candidates and have a small probability at each position.
func (in *Intact) unlikely() int {
	return pair(func(id int) bool {
		return !slices.ContainsFunc(in.scores, func(at []float64) bool {
			return at[id] > math.Log(Tolerance) || slices.Contains(candidates(at), id)
		})
	})
}

// pair returns the first of two tokens that both are as wanted.
func pair(wanted func(id int) bool) int {
	for id := 0; ; id++ {
		if wanted(id) && wanted(id+1) {
			return id
		}
	}
}

func isNorm(tensor string) bool { return strings.HasSuffix(tensor, "norm.weight") }

// rowsOf counts a tensor's rows, which in a norm are its values.
func rowsOf(t gguf.Tensor) int { return int(t.Shape[len(t.Shape)-1]) }

// Write writes a model with a fault.
func Write(w io.Writer, f *gguf.File, fault Fault) error {
	metadata, tensors := slices.Clone(f.Metadata), f.Unquantised()
	for i, e := range metadata {
		if base, ok := e.Value.(float32); ok && fault.Kind == Rope && e.Key == ropeBase {
			metadata[i].Value = base * 1.01
		}
	}
	for i, t := range f.Tensors {
		if t.Name != fault.Tensor {
			continue
		}
		values, err := f.Floats(t)
		if err != nil {
			return err
		}
		fault.plant(values, len(values)/rowsOf(t))
		tensors[i].Values, tensors[i].Stream = values, nil
	}
	return gguf.Write(w, metadata, tensors)
}

// plant damages a tensor. The same fault does the same each time.
func (f Fault) plant(values []float32, columns int) {
	random := rand.New(rand.NewPCG(uint64(len(values)), uint64(len(f.Tensor))))
	row := func(n int) []float32 { return values[n*columns : (n+1)*columns] }
	times := func(factor func() float64) {
		for i := range values {
			values[i] *= float32(factor())
		}
	}
	switch f.Kind {
	case Signs:
		for _, i := range random.Perm(len(values))[:max(1, len(values)/50)] {
			values[i] = -values[i]
		}
	case Zeroed:
		clear(row(f.Row))
	case Swapped:
		first := slices.Clone(row(f.Row))
		copy(row(f.Row), row(f.Row+1))
		copy(row(f.Row+1), first)
	case Noise:
		times(func() float64 { return 1 + 0.01*random.NormFloat64() })
	case Loud:
		times(func() float64 { return 1 + 0.05*random.NormFloat64() })
	case Scaled:
		times(func() float64 { return 1.03 })
	}
}
