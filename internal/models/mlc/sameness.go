package mlc

import (
	"maps"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
)

// Weights describes the weights of a package.
type Weights struct {
	DType   string // f32, f16, or the types of the matrices
	Kept    bool   // all matrices are in the bits of the file
	Same    record.Sameness
	Rounded string // what has other values than in the file
}

// WeightsOf describes the weights of the package that a file would become. It reads only norms and biases.
func WeightsOf(f *gguf.File, options Options) (Weights, error) {
	m, err := describe(f, options)
	if err != nil {
		return Weights{}, err
	}
	w := Weights{Kept: true, Same: record.SameBits}
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
						w.Kept, w.Same, rounded["matrices"] = false, record.OtherValues, true
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
			w.Same = worse(w.Same, same)
			w.Kept = w.Kept && (!matrix || same == record.SameBits)
			if same == record.OtherValues {
				rounded[what] = true
			}
		}
	}
	w.DType = strings.Join(slices.Sorted(maps.Keys(names)), "+")
	w.Rounded = strings.Join(slices.Sorted(maps.Keys(rounded)), " and ")
	return w, nil
}

// worse returns which of two says more against the weights.
func worse(a, b record.Sameness) record.Sameness {
	order := record.Converted()
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// decodedTo compares a tensor with its values in a dtype. Matrices are not read: some of their values do not fit.
func decodedTo(f *gguf.File, t gguf.Tensor, dtype string, matrix bool) (record.Sameness, error) {
	switch {
	case t.Type == gguf.F32 && dtype == Float32, t.Type == gguf.F16 && dtype == Float16:
		return record.SameBits, nil
	case dtype == Float32:
		return record.SameValues, nil
	case matrix:
		return record.OtherValues, nil
	}
	values, err := f.Floats(t)
	for _, v := range values {
		if h, ok := half(v); !ok || gguf.Half(h) != v {
			return record.OtherValues, err
		}
	}
	return record.SameValues, err
}
