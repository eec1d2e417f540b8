package gguf

import (
	"math"
	"slices"
)

// ropeFreqs is the tensor with a divisor for each frequency of the rotation, as in Llama 3's long contexts.
const ropeFreqs = "rope_freqs.weight"

// ropeFactors returns the divisors of the rotation's frequencies: the tensor's values times the linear factor.
func (f *File) ropeFactors(a Architecture) ([]float64, error) {
	linear, err := f.ropeScale(a.Name)
	if err != nil {
		return nil, err
	}
	factors := slices.Repeat([]float64{linear}, a.HeadDim/2)
	if t, ok := f.Tensor(ropeFreqs); ok {
		if want := []uint64{uint64(a.HeadDim / 2)}; !sameShape(t.Shape, want) {
			return nil, f.bad(again, "tensor %s has shape %v, want %v", t.Name, t.Shape, want)
		}
		values, err := f.Floats(t)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			factors[i] *= float64(v)
			if !(factors[i] > 0) || math.IsInf(factors[i], 0) {
				return nil, f.bad(again, "value %d of tensor %s is %v, want a positive number", i, t.Name, v)
			}
		}
	}
	if !slices.ContainsFunc(factors, func(v float64) bool { return v != 1 }) {
		return nil, nil
	}
	return factors, nil
}

// ropeScale returns the factor of linear scaling, under its new or old key. A factor without a type means linear.
func (f *File) ropeScale(arch string) (float64, error) {
	key := arch + ".rope.scaling.type"
	if v, ok := f.Lookup(key); ok && v != "linear" {
		if v == "none" {
			return 1, nil
		}
		return 1, f.unsupported("%s is %s; supported: none, linear, and Llama 3's factors in tensor %s",
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
		if v == 0 { // some files have 0 for none
			return 1, nil
		}
		if !(v > 0) || math.IsInf(v, 0) {
			return 1, f.bad(again, "metadata %s is %v, want a positive number", key, v)
		}
		return v, nil
	}
	return 1, nil
}
