package gguf

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Architecture describes a model, as its file says and its tensors confirm.
type Architecture struct {
	Name              string // one of Supported
	ContextLength     int    // maximum context
	EmbeddingLength   int
	BlockCount        int
	FeedForwardLength int
	HeadCount         int
	HeadCountKV       int
	HeadDim           int
	VocabSize         int
	RMSEpsilon        float64 // the file's float32, widened
	RopeBase          float64
	RopeFactors       []float64 // divisors of the rotation's frequencies; nil if all are 1
	Long              *LongRope // instead of RopeFactors; nil: none
	RotaryDim         int       // values of a head that are rotated, from the first; 0: all
	SlidingWindow     int       // tokens that a token sees, itself included; 0: all
	LocalLayers       []int     // layers with the window and LocalBase; nil: all have the window
	LocalBase         float64   // RopeBase of LocalLayers, without RopeFactors; 0: as in the others
	AttentionCap      float64   // soft cap of scores; 0: none
	OutputCap         float64   // soft cap of logits; 0: none
	AttentionBias     bool      // queries, keys and values have biases
	Tied              bool      // the embedding is also the head
	FusedQKV          bool      // queries, keys and values are one tensor in the file
	FusedGate         bool      // the gate and the projection up are one tensor in the file
}

// Rotated returns the values of a head that are rotated.
func (a Architecture) Rotated() int { return cmp.Or(a.RotaryDim, a.HeadDim) }

// Tensors lists the names and shapes of the model's tensors in their usual order, without the optional factors of the
// rotation.
func (a Architecture) Tensors() []Tensor {
	n := func(v int) uint64 { return uint64(v) }
	h, i := n(a.EmbeddingLength), n(a.FeedForwardLength)
	q, kv := n(a.HeadCount*a.HeadDim), n(a.HeadCountKV*a.HeadDim)
	list := []Tensor{{Name: "token_embd.weight", Shape: []uint64{h, n(a.VocabSize)}}}
	for b := range a.BlockCount {
		add := func(part string, shape ...uint64) {
			list = append(list, Tensor{Name: fmt.Sprintf("blk.%d.%s", b, part), Shape: shape})
		}
		add("attn_norm.weight", h)
		a.attention(add, h, q, kv)
		add("attn_output.weight", q, h)
		if a.Traits().PostNorms {
			add("post_attention_norm.weight", h)
		}
		add("ffn_norm.weight", h)
		if a.FusedGate {
			add("ffn_up.weight", h, 2*i)
		} else {
			add("ffn_gate.weight", h, i)
			add("ffn_up.weight", h, i)
		}
		add("ffn_down.weight", i, h)
		if a.Traits().PostNorms {
			add("post_ffw_norm.weight", h)
		}
	}
	list = append(list, Tensor{Name: "output_norm.weight", Shape: []uint64{h}})
	if !a.Tied {
		list = append(list, Tensor{Name: "output.weight", Shape: []uint64{h, n(a.VocabSize)}})
	}
	return list
}

// attention adds the tensors of queries, keys and values.
func (a Architecture) attention(add func(part string, shape ...uint64), h, q, kv uint64) {
	if a.FusedQKV {
		add("attn_qkv.weight", h, q+2*kv)
		if a.AttentionBias {
			add("attn_qkv.bias", q+2*kv)
		}
	} else {
		add("attn_q.weight", h, q)
		add("attn_k.weight", h, kv)
		add("attn_v.weight", h, kv)
		if a.AttentionBias {
			add("attn_q.bias", q)
			add("attn_k.bias", kv)
			add("attn_v.bias", kv)
		}
	}
	if a.Traits().QKNorm {
		add("attn_q_norm.weight", uint64(a.HeadDim))
		add("attn_k_norm.weight", uint64(a.HeadDim))
	}
}

// ArchitectureName returns general.architecture.
func (f *File) ArchitectureName() (string, error) { return f.Text("general.architecture") }

// Architecture reads the model's description. Other architectures, and models with parts that the supported ones lack,
// are faults of kind UnknownArch.
func (f *File) Architecture() (Architecture, error) {
	name, err := f.ArchitectureName()
	a := Architecture{Name: name}
	for _, step := range []func(*Architecture) error{f.isModel, f.sizes, f.heads, f.window, f.caps, f.plain, f.complete,
		f.rotation} {
		if err == nil {
			err = step(&a)
		}
	}
	return a, err
}

func (f *File) sizes(a *Architecture) (err error) {
	for _, field := range []struct {
		key string
		to  *int
	}{
		{"context_length", &a.ContextLength}, {"embedding_length", &a.EmbeddingLength}, {"block_count", &a.BlockCount},
		{"feed_forward_length", &a.FeedForwardLength}, {"attention.head_count", &a.HeadCount},
	} {
		if *field.to, err = f.count(a.Name + "." + field.key); err != nil {
			return err
		}
	}
	if a.HeadCountKV, err = f.optional(a.Name+".attention.head_count_kv", a.HeadCount); err != nil {
		return err
	}
	key := a.Name + ".attention.layer_norm_rms_epsilon"
	if a.RMSEpsilon, err = f.Float(key); err != nil {
		return err
	}
	if !(a.RMSEpsilon > 0 && a.RMSEpsilon < 1) {
		return f.bad(again, "metadata %s is %v, want a small positive number", key, a.RMSEpsilon)
	}
	if a.RopeBase, err = f.number(a.Name+".rope.freq_base", 10000, aboveOne, "a number above 1"); err != nil {
		return err
	}
	tokens, err := f.Texts("tokenizer.ggml.tokens")
	a.VocabSize = len(tokens)
	_, separate := f.Tensor("output.weight")
	a.Tied = !separate
	a.AttentionBias = a.Traits().biased || f.hasBiases()
	_, a.FusedQKV = f.Tensor("blk.0.attn_qkv.weight")
	_, gate := f.Tensor("blk.0.ffn_gate.weight")
	a.FusedGate = a.Traits().fusedGate && !gate
	return err
}

func aboveOne(v float64) bool    { return v > 1 }
func positive(v float64) bool    { return v > 0 }
func notNegative(v float64) bool { return v >= 0 }

// number reads a finite number that may be missing; want describes the numbers that are allowed.
func (f *File) number(key string, otherwise float64, allowed func(float64) bool, want string) (float64, error) {
	if _, ok := f.Lookup(key); !ok {
		return otherwise, nil
	}
	v, err := f.Float(key)
	if err == nil && (!allowed(v) || math.IsInf(v, 0)) {
		err = f.bad(again, "metadata %s is %v, want %s", key, v, want)
	}
	return v, err
}

// caps reads the soft caps.
func (f *File) caps(a *Architecture) (err error) {
	t := a.Traits()
	for key, cap := range map[string]*float64{keyAttentionCap: &a.AttentionCap, keyOutputCap: &a.OutputCap} {
		if !slices.Contains(t.understood, key) {
			continue
		}
		otherwise := map[string]float64{keyAttentionCap: t.attentionCap, keyOutputCap: t.outputCap}[key]
		if *cap, err = f.number(a.Name+"."+key, otherwise, notNegative, "a number of at least 0"); err != nil {
			return err
		}
	}
	return nil
}

// hasBiases reports whether any layer has a bias of queries, keys or values; then all must.
func (f *File) hasBiases() bool {
	return slices.ContainsFunc(f.Tensors, func(t Tensor) bool {
		var layer int
		var part string
		n, _ := fmt.Sscanf(t.Name, "blk.%d.attn_%s", &layer, &part)
		return n == 2 && (part == "q.bias" || part == "k.bias" || part == "v.bias" || part == "qkv.bias")
	})
}

// count reads a size: positive, and small enough that the product of two sizes cannot overflow.
func (f *File) count(key string) (int, error) {
	v, _ := f.Lookup(key)
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.Len() > 0 { // one for each layer
		for i := range list.Len() {
			if !list.Index(i).Equal(list.Index(0)) {
				return 0, f.unsupported("%s is %s: layers with different sizes are not supported", key, brief(v))
			}
		}
		v = list.Index(0).Interface()
	}
	n, ok := unsigned(v)
	if !ok {
		return 0, f.want(key, "an integer of at least 0")
	}
	if n == 0 || n > 1<<30 {
		return 0, f.bad(again, "metadata %s is %d, want 1 to %d", key, n, 1<<30)
	}
	return int(n), nil
}

// optional reads a size that may be missing.
func (f *File) optional(key string, otherwise int) (int, error) {
	if _, ok := f.Lookup(key); !ok {
		return otherwise, nil
	}
	return f.count(key)
}

func (f *File) heads(a *Architecture) error {
	if a.HeadCount%a.HeadCountKV != 0 {
		return f.bad(again, "metadata %s.attention.head_count %d is not a multiple of head_count_kv %d",
			a.Name, a.HeadCount, a.HeadCountKV)
	}
	var err error
	if a.HeadDim, err = f.optional(a.Name+".attention.key_length", 0); err != nil {
		return err
	}
	if a.HeadDim == 0 && a.EmbeddingLength%a.HeadCount != 0 {
		return f.bad(again, "metadata %s.embedding_length %d is not a multiple of attention.head_count %d",
			a.Name, a.EmbeddingLength, a.HeadCount)
	}
	if a.HeadDim = cmp.Or(a.HeadDim, a.EmbeddingLength/a.HeadCount); a.HeadDim%2 != 0 {
		return f.bad(again, "the head size is %d, want an even number", a.HeadDim)
	}
	if !a.Traits().longRope {
		return nil
	}
	key := a.Name + ".rope.dimension_count"
	n, err := f.optional(key, a.HeadDim)
	switch {
	case err != nil:
		return err
	case n > a.HeadDim || n%2 != 0:
		return f.bad(again, "metadata %s is %d, want an even number up to %d", key, n, a.HeadDim)
	case n < a.HeadDim:
		a.RotaryDim = n
	}
	return nil
}

// complete checks that the file has exactly the model's tensors, each in the right shape.
func (f *File) complete(a *Architecture) error {
	// Before listing the tensors, because the file sets the length of the list.
	if a.BlockCount > len(f.Tensors) {
		return f.bad(again, "metadata %s.block_count is %d, but the file has only %d tensors", a.Name, a.BlockCount,
			len(f.Tensors))
	}
	t := a.Traits()
	known := map[string]bool{ropeFreqs: t.ropeFreqs, ropeShort: t.longRope, ropeLong: t.longRope}
	for _, want := range a.Tensors() {
		known[want.Name] = true
	}
	// Before missing tensors, because models with experts or other parts lack some, and are not damaged.
	for _, t := range f.Tensors {
		if !known[t.Name] {
			return f.unsupported("tensor %s does not belong to a plain %s model", t.Name, a.Name)
		}
	}
	for _, want := range a.Tensors() {
		t, ok := f.Tensor(want.Name)
		if !ok {
			return f.bad(again, "tensor %s of shape %v is missing", want.Name, want.Shape)
		}
		if !sameShape(t.Shape, want.Shape) {
			return f.bad(again, "tensor %s has shape %v, want %v", t.Name, t.Shape, want.Shape)
		}
	}
	return nil
}

// sameShape compares shapes, ignoring dimensions of 1 at the end.
func sameShape(a, b []uint64) bool {
	for len(a) > len(b) && a[len(a)-1] == 1 {
		a = a[:len(a)-1]
	}
	return slices.Equal(a, b)
}
