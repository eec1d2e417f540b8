package gguf

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// The supported architectures. The name in general.architecture also prefixes the keys of the model's sizes.
const (
	Llama = "llama"
	Qwen2 = "qwen2"
)

// traits are what differs between architectures.
type traits struct {
	interleaved bool // see Interleaved
	biased      bool // queries, keys and values always have biases; otherwise they may
	ropeFreqs   bool // a tensor may divide the frequencies of the rotation
	windowed    bool // a sliding window is in all layers; otherwise the file does not say in which
}

var architectures = map[string]traits{
	Llama: {interleaved: true, ropeFreqs: true, windowed: true},
	Qwen2: {biased: true},
}

// Supported lists the supported architectures.
func Supported() []string { return slices.Sorted(maps.Keys(architectures)) }

// Architecture describes a model, as its file says and its tensors confirm.
type Architecture struct {
	Name              string // Llama or Qwen2
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
	SlidingWindow     int       // tokens that a token sees, itself included; 0: all
	AttentionBias     bool      // queries, keys and values have biases
	Tied              bool      // the embedding is also the head
}

// Interleaved reports how queries and keys are rotated: values 2i and 2i+1 of a head together, or else i and
// i+HeadDim/2. llama.cpp stores the rows of a llama for the former.
func (a Architecture) Interleaved() bool { return architectures[a.Name].interleaved }

// Wanted is a tensor that a model must have.
type Wanted struct {
	Name  string
	Shape []uint64
}

// Tensors lists the model's tensors in their usual order, without the optional factors of the rotation.
func (a Architecture) Tensors() []Wanted {
	n := func(v int) uint64 { return uint64(v) }
	h, i := n(a.EmbeddingLength), n(a.FeedForwardLength)
	q, kv := n(a.HeadCount*a.HeadDim), n(a.HeadCountKV*a.HeadDim)
	list := []Wanted{{"token_embd.weight", []uint64{h, n(a.VocabSize)}}}
	for b := range a.BlockCount {
		add := func(part string, shape ...uint64) {
			list = append(list, Wanted{fmt.Sprintf("blk.%d.%s", b, part), shape})
		}
		add("attn_norm.weight", h)
		add("attn_q.weight", h, q)
		add("attn_k.weight", h, kv)
		add("attn_v.weight", h, kv)
		if a.AttentionBias {
			add("attn_q.bias", q)
			add("attn_k.bias", kv)
			add("attn_v.bias", kv)
		}
		add("attn_output.weight", q, h)
		add("ffn_norm.weight", h)
		add("ffn_gate.weight", h, i)
		add("ffn_up.weight", h, i)
		add("ffn_down.weight", i, h)
	}
	list = append(list, Wanted{"output_norm.weight", []uint64{h}})
	if !a.Tied {
		list = append(list, Wanted{"output.weight", []uint64{h, n(a.VocabSize)}})
	}
	return list
}

// ArchitectureName returns general.architecture.
func (f *File) ArchitectureName() (string, error) { return f.Text("general.architecture") }

// Architecture reads the model's description. Other architectures, and models with parts that the supported ones lack,
// are faults of kind UnknownArch.
func (f *File) Architecture() (Architecture, error) {
	name, err := f.ArchitectureName()
	if err != nil {
		return Architecture{}, err
	}
	if err := f.isModel(name); err != nil {
		return Architecture{}, err
	}
	a, err := f.sizes(name)
	if err != nil {
		return Architecture{}, err
	}
	if err := f.plain(a); err != nil {
		return Architecture{}, err
	}
	if err := f.complete(a); err != nil {
		return Architecture{}, err
	}
	a.RopeFactors, err = f.ropeFactors(a)
	return a, err
}

func (f *File) sizes(name string) (Architecture, error) {
	a := Architecture{Name: name}
	for _, field := range []struct {
		key string
		to  *int
	}{
		{"context_length", &a.ContextLength}, {"embedding_length", &a.EmbeddingLength}, {"block_count", &a.BlockCount},
		{"feed_forward_length", &a.FeedForwardLength}, {"attention.head_count", &a.HeadCount},
	} {
		n, err := f.count(name + "." + field.key)
		if err != nil {
			return a, err
		}
		*field.to = n
	}
	var err error
	if a.HeadCountKV, err = f.optional(name+".attention.head_count_kv", a.HeadCount); err != nil {
		return a, err
	}
	if err := f.floats(&a); err != nil {
		return a, err
	}
	tokens, err := f.Texts("tokenizer.ggml.tokens")
	if err != nil {
		return a, err
	}
	a.VocabSize = len(tokens)
	_, separate := f.Tensor("output.weight")
	a.Tied = !separate
	a.AttentionBias = architectures[name].biased || f.hasBiases()
	if err := f.heads(&a); err != nil {
		return a, err
	}
	return a, f.window(&a)
}

// floats reads the parameters of normalisation and rotation.
func (f *File) floats(a *Architecture) (err error) {
	key := a.Name + ".attention.layer_norm_rms_epsilon"
	if a.RMSEpsilon, err = f.Float(key); err != nil {
		return err
	}
	if !(a.RMSEpsilon > 0 && a.RMSEpsilon < 1) {
		return f.bad(again, "metadata %s is %v, want a small positive number", key, a.RMSEpsilon)
	}
	a.RopeBase = 10000
	key = a.Name + ".rope.freq_base"
	if _, ok := f.Lookup(key); ok {
		if a.RopeBase, err = f.Float(key); err != nil {
			return err
		}
	}
	if !(a.RopeBase > 1) || math.IsInf(a.RopeBase, 0) {
		return f.bad(again, "metadata %s is %v, want a number above 1", key, a.RopeBase)
	}
	return nil
}

// hasBiases reports whether any layer has a bias of queries, keys or values; then all must.
func (f *File) hasBiases() bool {
	return slices.ContainsFunc(f.Tensors, func(t Tensor) bool {
		var layer int
		var part string
		n, _ := fmt.Sscanf(t.Name, "blk.%d.attn_%s", &layer, &part)
		return n == 2 && (part == "q.bias" || part == "k.bias" || part == "v.bias")
	})
}

// count reads a size: positive, and small enough that the product of two sizes cannot overflow.
func (f *File) count(key string) (int, error) {
	v, _ := f.Lookup(key)
	switch v.(type) {
	case []int32, []uint32:
		return 0, f.unsupported("%s is %s: layers with different sizes are not supported", key, brief(v))
	}
	n, err := f.Uint(key)
	if err != nil {
		return 0, err
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
	return nil
}

// window reads the sliding window.
func (f *File) window(a *Architecture) error {
	key := a.Name + ".attention.sliding_window"
	v, ok := f.Lookup(key)
	if n, whole := unsigned(v); !ok || whole && n == 0 {
		return nil
	}
	n, err := f.count(key)
	if err != nil {
		return err
	}
	if n >= a.ContextLength { // no effect
		return nil
	}
	if !architectures[a.Name].windowed {
		return f.unsupported("%s is %d: sliding windows are not supported in %s, where only some layers have one",
			key, n, a.Name)
	}
	a.SlidingWindow = n
	return nil
}

// complete checks that the file has exactly the model's tensors, each in the right shape.
func (f *File) complete(a Architecture) error {
	// Before listing the tensors, because the file sets the length of the list.
	if a.BlockCount > len(f.Tensors) {
		return f.bad(again, "metadata %s.block_count is %d, but the file has only %d tensors", a.Name, a.BlockCount,
			len(f.Tensors))
	}
	known := map[string]bool{ropeFreqs: architectures[a.Name].ropeFreqs}
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
