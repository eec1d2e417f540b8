package gguf

import (
	"fmt"
	"math"
	"slices"
)

// The architectures that are supported: what general.architecture says, and what the keys of a model's sizes begin
// with.
const (
	Llama = "llama"
	Qwen2 = "qwen2"
)

// Architecture is what a file says of its model, checked against its tensors.
type Architecture struct {
	Name              string // Llama or Qwen2
	ContextLength     int    // the longest sequence that the model was made for
	EmbeddingLength   int
	BlockCount        int
	FeedForwardLength int
	HeadCount         int
	HeadCountKV       int
	HeadDim           int
	VocabSize         int
	RMSEpsilon        float64 // the file's float32, widened
	RopeBase          float64
	RopeFactors       []float64 // the rotation's frequency i is divided by factor i; none where all would be 1
	SlidingWindow     int       // a token sees itself and so many less one before it; 0 where it sees all
	AttentionBias     bool      // queries, keys and values have biases
	Tied              bool      // the head is the embedding
}

// Interleaved says how queries and keys are rotated: values 2i and 2i+1 of a head together, or else values i and
// i+HeadDim/2. A llama's rows are stored in the order for the former, whatever its authors' own files have.
func (a Architecture) Interleaved() bool { return a.Name == Llama }

// Wanted is a tensor that a model consists of.
type Wanted struct {
	Name  string
	Shape []uint64
}

// Tensors lists the model's tensors in the order in which they are usually stored. Factors of the rotation are not
// among them: a file may say them otherwise.
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

// ArchitectureName gives general.architecture.
func (f *File) ArchitectureName() (string, error) { return f.Text("general.architecture") }

// Architecture reads what the model is. A model of another architecture, or one with parts that a plain one lacks, is a
// fault of kind UnknownArch.
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
	a.HeadCountKV = a.HeadCount
	key := name + ".attention.head_count_kv"
	if _, ok := f.Lookup(key); ok {
		n, err := f.count(key)
		if err != nil {
			return a, err
		}
		a.HeadCountKV = n
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
	a.AttentionBias = name == Qwen2 || f.hasBiases()
	if err := f.heads(&a); err != nil {
		return a, err
	}
	return a, f.window(&a)
}

// floats reads the two numbers that a model's arithmetic hangs on.
func (f *File) floats(a *Architecture) (err error) {
	key := a.Name + ".attention.layer_norm_rms_epsilon"
	if a.RMSEpsilon, err = f.Float(key); err != nil {
		return err
	}
	if !(a.RMSEpsilon > 0 && a.RMSEpsilon < 1) {
		return f.bad(again, "metadata %s is %v; a small positive number is right", key, a.RMSEpsilon)
	}
	a.RopeBase = 10000
	key = a.Name + ".rope.freq_base"
	if _, ok := f.Lookup(key); ok {
		if a.RopeBase, err = f.Float(key); err != nil {
			return err
		}
	}
	if !(a.RopeBase > 1) || math.IsInf(a.RopeBase, 0) {
		return f.bad(again, "metadata %s is %v; a number above 1 is right", key, a.RopeBase)
	}
	return nil
}

// hasBiases says whether any layer has one that belongs to queries, keys or values; then all must.
func (f *File) hasBiases() bool {
	return slices.ContainsFunc(f.Tensors, func(t Tensor) bool {
		var layer int
		var part string
		n, _ := fmt.Sscanf(t.Name, "blk.%d.attn_%s", &layer, &part)
		return n == 2 && (part == "q.bias" || part == "k.bias" || part == "v.bias")
	})
}

// count reads a size, which must be positive and small enough that products of two of them can't overflow.
func (f *File) count(key string) (int, error) {
	v, _ := f.Lookup(key)
	switch v.(type) {
	case []int32, []uint32:
		return 0, f.unsupported("%s is %s, which differs from layer to layer; supported: one number", key, brief(v))
	}
	n, err := f.Uint(key)
	if err != nil {
		return 0, err
	}
	if n == 0 || n > 1<<30 {
		return 0, f.bad(again, "metadata %s is %d; 1 to %d are right", key, n, 1<<30)
	}
	return int(n), nil
}

func (f *File) heads(a *Architecture) error {
	if a.HeadCount%a.HeadCountKV != 0 {
		return f.bad(again, "metadata %s.attention.head_count %d is not a multiple of head_count_kv %d",
			a.Name, a.HeadCount, a.HeadCountKV)
	}
	key := a.Name + ".attention.key_length"
	if _, ok := f.Lookup(key); ok {
		n, err := f.count(key)
		if err != nil {
			return err
		}
		a.HeadDim = n
	} else {
		if a.EmbeddingLength%a.HeadCount != 0 {
			return f.bad(again, "metadata %s.embedding_length %d is not a multiple of attention.head_count %d",
				a.Name, a.EmbeddingLength, a.HeadCount)
		}
		a.HeadDim = a.EmbeddingLength / a.HeadCount
	}
	if a.HeadDim%2 != 0 {
		return f.bad(again, "heads of %d values can't be rotated; an even number is right", a.HeadDim)
	}
	return nil
}

// window reads how far back a token sees. In a qwen2 only some layers have the window, and a file doesn't say which.
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
	if n >= a.ContextLength { // every token sees all
		return nil
	}
	if a.Name == Qwen2 {
		return f.unsupported("%s is %d, which is for some layers only, and the file doesn't say which; supported: none",
			key, n)
	}
	a.SlidingWindow = n
	return nil
}

// complete checks that each tensor of the model is there in the right shape, and no other.
func (f *File) complete(a Architecture) error {
	// Before the list is made: its length comes from the file.
	if a.BlockCount > len(f.Tensors) {
		return f.bad(again, "metadata %s.block_count is %d; the file has %d tensors in all", a.Name, a.BlockCount,
			len(f.Tensors))
	}
	known := map[string]bool{}
	for _, want := range a.Tensors() {
		known[want.Name] = true
		t, ok := f.Tensor(want.Name)
		if !ok {
			return f.bad(again, "tensor %s of shape %v is missing", want.Name, want.Shape)
		}
		if !sameShape(t.Shape, want.Shape) {
			return f.bad(again, "tensor %s has the shape %v; %v is right", t.Name, t.Shape, want.Shape)
		}
	}
	known[ropeFreqs] = a.Name == Llama
	for _, t := range f.Tensors {
		if !known[t.Name] {
			return f.unsupported("tensor %s has no place in a plain %s model", t.Name, a.Name)
		}
	}
	return nil
}

// sameShape compares shapes; dimensions of 1 at the end say nothing.
func sameShape(a, b []uint64) bool {
	for len(a) > len(b) && a[len(a)-1] == 1 {
		a = a[:len(a)-1]
	}
	return slices.Equal(a, b)
}
