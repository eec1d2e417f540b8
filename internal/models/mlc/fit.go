package mlc

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
)

// wanted describes the model and the context that a library must support.
type wanted struct {
	have  []Param
	shape modellib.Shape // with the requested context
	// whole: the shape is complete. In packages written by MLC, zeros are unknown.
	whole  bool
	scaled bool // the rotation is scaled; for shapes that are not whole
}

// Matches returns the first reason why a library cannot run a model with these weights and this shape.
func (l Library) Matches(have []Param, s modellib.Shape) error {
	return l.runs(wanted{have: have, shape: s, whole: true})
}

// Replaces is Matches for a library that the user did not name. It also compares what the metadata of MLC's libraries
// leaves out, and refuses what MLC's graphs lack.
func (l Library) Replaces(have []Param, s modellib.Shape) error {
	return cmp.Or(l.Matches(have, s), l.computes(wanted{have: have, shape: s, whole: true}))
}

// ReplacesPackage is Replaces for an existing package.
func (l Library) ReplacesPackage(p Existing) error {
	return cmp.Or(l.MatchesPackage(p), l.computes(wanted{shape: p.Shape, whole: p.Whole, scaled: p.Scaled}))
}

// MatchesPackage is Matches for an existing package, with its own context.
func (l Library) MatchesPackage(p Existing) error {
	if l.Quantization != p.Quantization {
		return l.differs("the library is for %s weights, the package has %s", l.Quantization, p.Quantization)
	}
	s := p.Shape
	s.ContextWindowSize = p.Longest()
	if p.RotatingWindow > 0 {
		s.SlidingWindowSize = p.RotatingWindow
	}
	return l.runs(wanted{p.Params(), s, p.Whole, p.Scaled})
}

func (l Library) runs(w wanted) error { return cmp.Or(l.fits(w), l.sameShape(w), l.reaches(w)) }

func (l Library) differs(format string, args ...any) error {
	return fault.New(fault.BadLibrary, "use a library compiled for this model and --dtype",
		"model library %s does not fit the model: %s", l.File, fmt.Sprintf(format, args...))
}

// fits compares architecture and weights.
func (l Library) fits(w wanted) error {
	if l.ModelType != w.shape.ModelType {
		return l.differs("the library is for architecture %s, the model is %s", l.ModelType, w.shape.ModelType)
	}
	for _, want := range l.Params {
		at := slices.IndexFunc(w.have, func(p Param) bool { return p.Name == want.Name })
		switch {
		case at < 0:
			return l.differs("the library needs weight %s as %s, which the model does not have (library quantization: %s)",
				want.Name, want, l.Quantization)
		case !want.Shape.takes(w.have[at].Shape) || w.have[at].DType != want.DType:
			return l.differs("the library needs weight %s as %s, the model has it as %s", want.Name, want, w.have[at])
		}
	}
	for _, p := range w.have {
		if !slices.ContainsFunc(l.Params, func(want Param) bool { return p.Name == want.Name }) {
			return l.differs("the model has weight %s, which the library does not have", p.Name)
		}
	}
	return nil
}

// apart are the fields that sameShape compares in other ways, or not at all.
var apart = []string{"model_type", "context_window_size", "prefill_chunk_size", "sliding_window_size", "rope_factors"}

// sameShape compares what the weights do not show but changes the output. Libraries of others describe only the KV
// cache and the window. Unknown fields, of a package or of such a library, are not compared.
func (l Library) sameShape(w wanted) error {
	lib, s, complete := modellib.Shape{SlidingWindowSize: l.SlidingWindowSize}, w.shape, w.whole && l.Own != nil
	if kv := l.KVCache; kv != nil {
		lib.NumHiddenLayers, lib.NumAttentionHeads = kv.Layers, kv.Heads
		lib.NumKeyValueHeads, lib.HeadDim = kv.KVHeads, kv.HeadDim
	}
	if l.Own != nil {
		lib = l.Own.Shape
	}
	for i := range reflect.TypeFor[modellib.Shape]().NumField() {
		field := reflect.TypeFor[modellib.Shape]().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		own, model := reflect.ValueOf(lib).Field(i), reflect.ValueOf(s).Field(i)
		unknown := own.IsZero() || model.IsZero()
		if !slices.Contains(apart, name) && (complete || !unknown) &&
			!reflect.DeepEqual(own.Interface(), model.Interface()) {
			return l.differs("%s is %v in the library, %v in the model", name, own, model)
		}
	}
	if l.Own != nil {
		if err := l.sameFactors(lib.RopeFactors, w); err != nil {
			return err
		}
	}
	return l.sameWindow(lib.SlidingWindowSize, s)
}

func (l Library) sameFactors(own []float64, w wanted) error {
	switch model := w.shape.RopeFactors; {
	case !w.whole && w.scaled == (len(own) > 0): // nothing more is known
	case !w.whole || len(own) != len(model):
		return l.differs("the library has %s, the model has %s", scaling(len(own) > 0),
			scaling(w.scaled || len(model) > 0))
	default:
		for i := range own {
			if own[i] != model[i] {
				return l.differs("rope_factors differ at number %d: %v in the library, %v in the model",
					i+1, own[i], model[i])
			}
		}
	}
	return nil
}

// computes compares the numbers in the shaders. Those of an unscaled rotation are its base, its size and 1.
func (l Library) computes(w wanted) error {
	s := w.shape
	has := func(list []string, v float64) bool { return slices.Contains(list, fmt.Sprintf("%.6e", v)) }
	either := func(v float64) bool { return has(l.Rope, v) || has(l.Rope, 1/v) }
	const plain = 3 // numbers in the shader of an unscaled rotation
	switch {
	case l.Own != nil:
		return l.differs("llmparity compiled it")
	case s.KVDType != "" || w.whole && (s.AttnLogitSoftcapping > 0 || s.RopeLocalTheta > 0 || len(s.LocalLayers) > 0):
		return l.differs("MLC's libraries lack a part of this model")
	case !has(l.Norm, s.RMSNormEps):
		return l.differs("norms have the epsilon %g, the library's have another", s.RMSNormEps)
	case !has(l.Rope, s.RopeTheta) || !either(float64(cmp.Or(s.RotaryDim, s.HeadDim))):
		return l.differs("the rotation has the base %g, the library's has another", s.RopeTheta)
	case len(s.RopeFactors) > 0 && either(slices.Max(s.RopeFactors)):
		return nil
	case len(s.RopeFactors) == 0 && w.scaled == (len(l.Rope) > plain):
		return nil
	}
	return l.differs("the rotation is scaled in another way")
}

func scaling(scaled bool) string {
	if scaled {
		return "a scaled rotation (rope_factors)"
	}
	return "a rotation without rope_factors"
}

// sameWindow compares the sliding windows. A window as long as the context has no effect.
func (l Library) sameWindow(own int, s modellib.Shape) error {
	within := func(window int) int {
		if window <= 0 || window >= s.ContextWindowSize {
			return 0
		}
		return window
	}
	if lib, model := within(own), within(s.SlidingWindowSize); lib != model {
		return l.differs("the sliding window is %s in the library, %s in the model", tokens(lib), tokens(model))
	}
	return nil
}

func tokens(window int) string {
	if window == 0 {
		return "none"
	}
	return fmt.Sprintf("%d tokens", window)
}

// reaches checks that the library supports the context. Our own have a table of rotations of that length.
func (l Library) reaches(w wanted) error {
	longest := l.ContextWindowSize
	if l.Own != nil {
		longest = l.Own.Shape.ContextWindowSize
	}
	switch asked := w.shape.ContextWindowSize; {
	case longest > 0 && asked > longest:
		return fault.New(fault.BadLibrary, "use a library compiled for that context, or a smaller --context",
			"model library %s does not fit the model: its context window is %d, but %d is needed", l.File, longest,
			asked)
	case l.PrefillChunkSize < 0 || longest > 0 && l.PrefillChunkSize > longest:
		return l.differs("its prefill chunk of %d tokens is not within its context window of %d tokens",
			l.PrefillChunkSize, longest)
	}
	return nil
}

// Longest returns the maximum context of a package in tokens; 0 if unknown.
func (p Existing) Longest() int {
	return max(cmp.Or(max(p.Shape.ContextWindowSize, 0), p.RotatingWindow), 0)
}

// Params returns the weights as a library names them.
func (p Existing) Params() []Param {
	list := make([]Param, len(p.Weights))
	for i, w := range p.Weights {
		list[i] = Param{w.Name, w.Shape, w.DType}
	}
	return list
}

// Has reports whether a package has weights of a dtype.
func (p Existing) Has(dtype string) bool {
	return slices.ContainsFunc(p.Weights, func(w Tensor) bool { return w.DType == dtype })
}
