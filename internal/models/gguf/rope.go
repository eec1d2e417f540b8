package gguf

import (
	"cmp"
	"math"
	"slices"
)

// Tensors with a divisor for each frequency of the rotation: Llama 3's, and LongRoPE's.
const (
	ropeFreqs = "rope_freqs.weight"
	ropeShort = "rope_factors_short.weight"
	ropeLong  = "rope_factors_long.weight"
)

// LongRope are divisors of the rotation's frequencies that depend on the context that an engine is started with, as in
// llama.cpp: one set for contexts up to Context, another beyond.
type LongRope struct {
	Context     int
	Short, Long []float64
	Magnitude   float64 // factor of rotated values
}

// Factors returns the divisors of the rotation's frequencies, nil if all are 1, and the factor of rotated values.
func (a Architecture) Factors(context int) (factors []float64, magnitude float64) {
	switch {
	case a.Long == nil:
		return a.RopeFactors, 1
	case context > a.Long.Context:
		return a.Long.Long, a.Long.Magnitude
	}
	return a.Long.Short, a.Long.Magnitude
}

// rotation reads the divisors of the rotation's frequencies.
func (f *File) rotation(a *Architecture) error {
	linear, err := f.ropeScale(a.Name)
	if err != nil {
		return err
	}
	if t := a.Traits(); t.longRope {
		if long, err := f.longRope(*a, linear); long != nil || err != nil {
			a.Long = long
			return err
		}
	}
	a.RopeFactors = slices.Repeat([]float64{linear}, a.Rotated()/2)
	if _, ok := f.Tensor(ropeFreqs); ok {
		if a.RopeFactors, err = f.factors(*a, ropeFreqs, linear); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(a.RopeFactors, func(v float64) bool { return v != 1 }) {
		a.RopeFactors = nil
	}
	return nil
}

// longRope reads LongRoPE's divisors; nil if the file has none.
func (f *File) longRope(a Architecture, linear float64) (*LongRope, error) {
	_, long := f.Tensor(ropeLong)
	_, short := f.Tensor(ropeShort)
	magnitude, err := f.number(a.Name+"."+keyMagnitude, 1, positive, "a positive number")
	if err != nil {
		return nil, err
	}
	if long != short {
		return nil, f.bad(again, "the file has only one of the tensors %s and %s", ropeShort, ropeLong)
	}
	l := &LongRope{Magnitude: magnitude}
	if l.Context, err = f.optional(a.Name+".rope.scaling.original_context_length", a.ContextLength); err != nil {
		return nil, err
	}
	if !long {
		if magnitude == 1 {
			return nil, nil
		}
		l.Short = slices.Repeat([]float64{linear}, a.Rotated()/2)
		l.Long = l.Short
		return l, nil
	}
	if l.Short, err = f.factors(a, ropeShort, linear); err != nil {
		return nil, err
	}
	l.Long, err = f.factors(a, ropeLong, linear)
	return l, err
}

// factors reads a tensor of divisors, times the linear factor.
func (f *File) factors(a Architecture, name string, linear float64) ([]float64, error) {
	t, _ := f.Tensor(name)
	if want := []uint64{uint64(a.Rotated() / 2)}; !sameShape(t.Shape, want) {
		return nil, f.bad(again, "tensor %s has shape %v, want %v", name, t.Shape, want)
	}
	values, err := f.Floats(t)
	if err != nil {
		return nil, err
	}
	var out []float64
	for i, v := range values {
		out = append(out, float64(v)*linear)
		if !(out[i] > 0) || math.IsInf(out[i], 0) {
			return nil, f.bad(again, "value %d of tensor %s is %v, want a positive number", i, name, v)
		}
	}
	return out, nil
}

// ropeScale returns the factor of linear scaling, under its new or old key. A factor without a type means linear.
func (f *File) ropeScale(arch string) (float64, error) {
	key := arch + ".rope.scaling.type"
	switch v, ok := f.Lookup(key); {
	case !ok || v == "linear" || v == "longrope" && architectures[arch].longRope:
	case v == "none":
		return 1, nil
	default:
		return 1, f.unsupported("%s is %s; supported: none, linear, and factors in the tensors %s, or %s and %s",
			key, brief(v), ropeFreqs, ropeShort, ropeLong)
	}
	for _, key := range []string{arch + ".rope.scaling.factor", arch + ".rope.scale_linear"} {
		if _, ok := f.Lookup(key); ok {
			v, err := f.number(key, 1, notNegative, "a positive number")
			return cmp.Or(v, 1), err // some files have 0 for none
		}
	}
	return 1, nil
}
