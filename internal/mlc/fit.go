package mlc

import (
	"cmp"
	"fmt"
	"slices"

	"llmparity/internal/fault"
	"llmparity/internal/modellib"
)

// wanted is what a library is held against: a model, and the context that is asked for.
type wanted struct {
	have  []Param
	shape modellib.Shape // its context is the one that is asked for
	// whole says that the shape says all; in one that MLC wrote a zero is what it doesn't say.
	whole  bool
	scaled bool // the rotation is, in a way that a shape that isn't whole doesn't say
}

// Matches says why a library can't run a model that has these weights and this shape: the first thing that differs.
func (l Library) Matches(have []Param, s modellib.Shape) error {
	return l.runs(wanted{have: have, shape: s, whole: true})
}

// MatchesPackage is Matches for a package that is there, with the context that it says.
func (l Library) MatchesPackage(p Existing, have []Param) error {
	if l.Quantization != p.Quantization {
		return l.differs("it is for weights of %s, the package's are %s", l.Quantization, p.Quantization)
	}
	s := p.Shape
	s.ModelType, s.VocabSize = p.ModelType, p.Vocab
	s.NumHiddenLayers, s.NumAttentionHeads, s.NumKeyValueHeads, s.HeadDim = p.Layers, p.Heads, p.KVHeads, p.HeadDim
	s.ContextWindowSize = p.Longest()
	if p.SlidingWindowSize > 0 {
		s.SlidingWindowSize = p.SlidingWindowSize
	}
	return l.runs(wanted{have, s, p.Whole, p.Scaled})
}

func (l Library) runs(w wanted) error {
	for _, check := range []func(wanted) error{l.fits, l.sameCache, l.sameShape, l.reaches} {
		if err := check(w); err != nil {
			return err
		}
	}
	return nil
}

func (l Library) differs(format string, args ...any) error {
	return fault.New(fault.BadLibrary, "name a library that was compiled for this model, with the --dtype that it has",
		"the model library %s does not fit the model: %s", l.File, fmt.Sprintf(format, args...))
}

// fits says which architecture or weight is another one.
func (l Library) fits(w wanted) error {
	if l.ModelType != w.shape.ModelType {
		return l.differs("it is for the architecture %s, the model's is %s", l.ModelType, w.shape.ModelType)
	}
	for _, want := range l.Params {
		at := slices.IndexFunc(w.have, func(p Param) bool { return p.Name == want.Name })
		switch {
		case at < 0:
			return l.differs("it wants %s, %s, which the model doesn't have in that form (the library's quantization is %s)",
				want.Name, want, l.Quantization)
		case !want.Shape.takes(w.have[at].Shape) || w.have[at].DType != want.DType:
			return l.differs("it wants %s as %s, the model has %s", want.Name, want, w.have[at])
		}
	}
	for _, p := range w.have {
		if !slices.ContainsFunc(l.Params, func(want Param) bool { return p.Name == want.Name }) {
			return l.differs("the model has %s, which the library doesn't know", p.Name)
		}
	}
	return nil
}

// sameCache looks at the KV cache, which most libraries tell of; a package may not.
func (l Library) sameCache(w wanted) error {
	kv, s := l.KVCache, w.shape
	if kv == nil {
		return nil
	}
	other := func(lib, model int) bool { return lib != model && (w.whole || model != 0) }
	if other(kv.Layers, s.NumHiddenLayers) || other(kv.Heads, s.NumAttentionHeads) ||
		other(kv.KVHeads, s.NumKeyValueHeads) || other(kv.HeadDim, s.HeadDim) {
		return l.differs("it has a KV cache of %d layers and %d heads of %d, with %d for queries; "+
			"the model has %d and %d of %d, with %d",
			kv.Layers, kv.KVHeads, kv.HeadDim, kv.Heads, s.NumHiddenLayers, s.NumKeyValueHeads, s.HeadDim,
			s.NumAttentionHeads)
	}
	return nil
}

// sameShape looks at what the weights don't show, and what would give other words: of others' libraries that is the
// window.
func (l Library) sameShape(w wanted) error {
	s := w.shape
	if l.Own == nil {
		return l.sameWindow(l.SlidingWindowSize, s)
	}
	own := l.Own.Shape
	if own == nil {
		return l.differs("an earlier llmparity compiled it, and it doesn't say for which rotation and window; compile it again")
	}
	for _, f := range []struct {
		name       string
		lib, model any
		said       bool
	}{
		{"hidden_size", own.HiddenSize, s.HiddenSize, s.HiddenSize != 0},
		{"intermediate_size", own.IntermediateSize, s.IntermediateSize, s.IntermediateSize != 0},
		{"vocab_size", own.VocabSize, s.VocabSize, s.VocabSize != 0},
		{"rope_theta", own.RopeTheta, s.RopeTheta, s.RopeTheta != 0},
		{"rms_norm_eps", own.RMSNormEps, s.RMSNormEps, s.RMSNormEps != 0},
		{"attention_bias", own.AttentionBias, s.AttentionBias, false},
		{"tie_word_embeddings", own.TieWordEmbeddings, s.TieWordEmbeddings, false},
		{"dtype", own.DType, s.DType, s.DType != ""},
	} {
		if f.lib != f.model && (w.whole || f.said) {
			return l.differs("its %s is %v, the model's is %v", f.name, f.lib, f.model)
		}
	}
	if err := l.sameFactors(own.RopeFactors, w); err != nil {
		return err
	}
	return l.sameWindow(own.SlidingWindowSize, s)
}

func (l Library) sameFactors(own []float64, w wanted) error {
	switch model := w.shape.RopeFactors; {
	case !w.whole && w.scaled == (len(own) > 0): // all that can be said
	case !w.whole || len(own) != len(model):
		return l.differs("it has %s, the model has %s", scaling(len(own) > 0), scaling(w.scaled || len(model) > 0))
	default:
		for i := range own {
			if own[i] != model[i] {
				return l.differs("its rope_factors have %v where the model's have %v (the first that differs, number %d)",
					own[i], model[i], i+1)
			}
		}
	}
	return nil
}

func scaling(scaled bool) string {
	if scaled {
		return "a scaled rotation (rope_factors)"
	}
	return "a rotation without rope_factors"
}

// sameWindow takes a window that the context doesn't reach for none.
func (l Library) sameWindow(own int, s modellib.Shape) error {
	within := func(window int) int {
		if window <= 0 || window >= s.ContextWindowSize {
			return 0
		}
		return window
	}
	if lib, model := within(own), within(s.SlidingWindowSize); lib != model {
		return l.differs("its sliding window is %s, the model's is %s", tokens(lib), tokens(model))
	}
	return nil
}

func tokens(window int) string {
	if window == 0 {
		return "none"
	}
	return fmt.Sprintf("%d tokens", window)
}

// reaches looks whether the library goes as far as the context does: our own have a table of rotations for no more.
func (l Library) reaches(w wanted) error {
	longest := l.ContextWindowSize
	if l.Own != nil {
		longest = l.Own.Shape.ContextWindowSize
	}
	switch asked := w.shape.ContextWindowSize; {
	case longest > 0 && asked > longest:
		return fault.New(fault.BadLibrary, "name a library that was compiled for as many, or give a smaller --context",
			"the model library %s does not fit the model: its context window is %d, %d is asked for", l.File, longest,
			asked)
	case l.PrefillChunkSize < 0 || longest > 0 && l.PrefillChunkSize > longest:
		return l.differs("it would take prompts in pieces of %d tokens, with a context window of %d",
			l.PrefillChunkSize, longest)
	}
	return nil
}

// Longest is the context that a package was made for, in tokens; 0 where it doesn't say.
func (p Existing) Longest() int {
	return max(cmp.Or(max(p.ContextWindowSize, 0), p.SlidingWindowSize), 0)
}

// Params are the weights that a package has.
func (p Existing) Params() []Param {
	list := make([]Param, len(p.Weights))
	for i, w := range p.Weights {
		list[i] = w.Param
	}
	return list
}
