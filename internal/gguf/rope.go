package gguf

import (
	"math"
	"slices"
)

// ropeFreqs is the tensor that divides the rotation's frequencies one by one, which is how Llama 3's longer contexts
// are stored.
const ropeFreqs = "rope_freqs.weight"

// ropeFactors gives what divides each of the rotation's frequencies: the tensor's values times the linear factor.
func (f *File) ropeFactors(a Architecture) ([]float64, error) {
	linear, err := f.ropeScale(a.Name)
	if err != nil {
		return nil, err
	}
	factors := slices.Repeat([]float64{linear}, a.HeadDim/2)
	if t, ok := f.Tensor(ropeFreqs); ok {
		if want := []uint64{uint64(a.HeadDim / 2)}; !sameShape(t.Shape, want) {
			return nil, f.bad(again, "tensor %s has the shape %v; %v is right", t.Name, t.Shape, want)
		}
		values, err := f.Floats(t)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			factors[i] *= float64(v)
			if !(factors[i] > 0) || math.IsInf(factors[i], 0) {
				return nil, f.bad(again, "value %d of tensor %s is %v; positive numbers are right", i, t.Name, v)
			}
		}
	}
	if !slices.ContainsFunc(factors, func(v float64) bool { return v != 1 }) {
		return nil, nil
	}
	return factors, nil
}

// ropeScale gives the one factor of linear scaling, under its key's new or old name. A file that has a factor and no
// type means the linear one.
func (f *File) ropeScale(arch string) (float64, error) {
	key := arch + ".rope.scaling.type"
	if v, ok := f.Lookup(key); ok && v != "linear" {
		if v == "none" {
			return 1, nil
		}
		return 1, f.unsupported("%s is %s; supported: none, linear, and Llama 3's factors in the tensor %s",
			key, brief(v), ropeFreqs)
	}
	for _, key := range []string{arch + ".rope.scaling.factor", arch + ".rope.scale_linear"} {
		if _, ok := f.Lookup(key); !ok {
			continue
		}
		v, err := f.Float(key)
		if err != nil {
			return 1, err
		}
		if v == 0 { // by custom, none
			return 1, nil
		}
		if !(v > 0) || math.IsInf(v, 0) {
			return 1, f.bad(again, "metadata %s is %v; a positive number is right", key, v)
		}
		return v, nil
	}
	return 1, nil
}
