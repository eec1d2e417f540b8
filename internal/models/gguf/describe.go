package gguf

import (
	"cmp"
	"slices"
)

// Metadata returns the entries that Architecture reads a model's description from. The divisors of single frequencies
// of the rotation are in tensors instead: see Divisors.
func (a Architecture) Metadata() []Entry {
	var m []Entry
	key := func(name string, value any) { m = append(m, Entry{a.Name + "." + name, value}) }
	n := func(name string, value int) { key(name, uint32(value)) }
	n("context_length", a.ContextLength)
	n("embedding_length", a.EmbeddingLength)
	n("block_count", a.BlockCount)
	n("feed_forward_length", a.FeedForwardLength)
	n("attention.head_count", a.HeadCount)
	n("attention.head_count_kv", a.HeadCountKV)
	n("attention.key_length", a.HeadDim)
	n("attention.value_length", a.HeadDim)
	key("attention.layer_norm_rms_epsilon", float32(a.RMSEpsilon))
	key("rope.freq_base", float32(a.RopeBase))
	n("rope.dimension_count", a.Rotated())
	n("vocab_size", a.VocabSize)
	if linear(a.RopeFactors) {
		key("rope.scaling.type", "linear")
		key("rope.scaling.factor", float32(a.RopeFactors[0]))
	}
	if a.Long != nil {
		n("rope.scaling.original_context_length", a.Long.Context)
		key(keyMagnitude, float32(a.Long.Magnitude))
	}
	a.describeWindow(n, key)
	for _, cap := range []struct {
		name  string
		value float64
	}{{keyAttentionCap, a.AttentionCap}, {keyOutputCap, a.OutputCap}} {
		if slices.Contains(a.Traits().understood, cap.name) {
			key(cap.name, float32(cap.value))
		}
	}
	return m
}

// describeWindow adds the entries of the sliding window. A window as long as the context has no effect, but some
// architectures have one unless the file says otherwise, and layers with a window may have a base of their own.
func (a Architecture) describeWindow(n func(string, int), key func(string, any)) {
	t := a.Traits()
	switch {
	case t.period == 0 && a.SlidingWindow == 0:
		return
	case t.localBase > 0 && len(a.LocalLayers) == 0:
		n(keyWindow, 0)
		return
	}
	n(keyWindow, cmp.Or(a.SlidingWindow, a.ContextLength))
	if a.LocalBase > 0 {
		key(keyLocalBase, float32(a.LocalBase))
	}
	local := make([]bool, a.BlockCount)
	usual := true
	for i := range local {
		local[i] = a.Local(i)
		usual = usual && local[i] == t.local(i)
	}
	if t.period > 0 && a.LocalLayers != nil && !usual {
		key(keyPattern, local)
	}
}

// local reports whether a layer has the sliding window, if the file does not say.
func (t Traits) local(layer int) bool { return t.period == 0 || layer%t.period < t.period-1 }

// linear reports whether all frequencies have the same divisor.
func linear(factors []float64) bool {
	return len(factors) > 0 && !slices.ContainsFunc(factors, func(v float64) bool { return v != factors[0] })
}

// Divisors returns the tensors with the divisors of single frequencies of the rotation.
func (a Architecture) Divisors() (list []Weights) {
	add := func(name string, factors []float64) {
		w := Weights{Name: name, Shape: []uint64{uint64(len(factors))}}
		for _, v := range factors {
			w.Values = append(w.Values, float32(v))
		}
		list = append(list, w)
	}
	switch {
	case a.Long != nil:
		add(ropeLong, a.Long.Long)
		add(ropeShort, a.Long.Short)
	case len(a.RopeFactors) > 0 && !linear(a.RopeFactors):
		add(ropeFreqs, a.RopeFactors)
	}
	return list
}
