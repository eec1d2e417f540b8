package mlc

import (
	"maps"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/models/gguf"
)

// Sameness says how the weights of a package and of its GGUF compare.
type Sameness int

// The kinds of sameness: the same bits; other bits with the same values; rounded.
const (
	BitForBit Sameness = iota
	SameValues
	OtherWeights
)

func (s Sameness) String() string {
	return [...]string{"same weights, bit for bit", "same values", "same model, other weights"}[s]
}

// Weights describes the weights of a package.
type Weights struct {
	DType   string // f32, f16, or the types of the matrices
	Kept    bool   // all matrices are in the bits of the file
	Same    Sameness
	Rounded string // what has other values than in the file
}

// WeightsOf describes the weights of the package that a file would become. It reads only norms and biases.
func WeightsOf(f *gguf.File, options Options) (Weights, error) {
	m, err := describe(f, options)
	if err != nil {
		return Weights{}, err
	}
	w := Weights{Kept: true, Same: BitForBit}
	names, rounded := map[string]bool{}, map[string]bool{}
	for _, p := range params(m.architecture) {
		matrix := len(p.shape) == 2
		for _, part := range p.parts {
			t, _ := f.Tensor(part.tensor) // checked by Architecture
			to, what := m.dtype.Torch, "norms and biases"
			if matrix {
				name := options.stored(t.Type, p.shape[1])
				as, decoded := options.decodedTo(name)
				if !decoded {
					names[name] = true
					if name != strings.ToLower(t.Type.String()) {
						w.Kept, w.Same, rounded["matrices"] = false, OtherWeights, true
					}
					continue
				}
				to, what = as, "matrices"
				names[dtype.Canonical(as)] = true
			}
			same, err := decodedTo(f, t, to, matrix)
			if err != nil {
				return w, err
			}
			w.Same = max(w.Same, same)
			w.Kept = w.Kept && (!matrix || same == BitForBit)
			if same == OtherWeights {
				rounded[what] = true
			}
		}
	}
	w.DType = strings.Join(slices.Sorted(maps.Keys(names)), "+")
	w.Rounded = strings.Join(slices.Sorted(maps.Keys(rounded)), " and ")
	return w, nil
}

// decodedTo compares a tensor with its values in a dtype. Matrices are not read: some of their values do not fit.
func decodedTo(f *gguf.File, t gguf.Tensor, dtype string, matrix bool) (Sameness, error) {
	switch {
	case t.Type == gguf.F32 && dtype == Float32, t.Type == gguf.F16 && dtype == Float16:
		return BitForBit, nil
	case dtype == Float32:
		return SameValues, nil
	case matrix:
		return OtherWeights, nil
	}
	values, err := f.Floats(t)
	for _, v := range values {
		if h, ok := half(v); !ok || gguf.Half(h) != v {
			return OtherWeights, err
		}
	}
	return SameValues, err
}
