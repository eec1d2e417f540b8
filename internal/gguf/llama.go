package gguf

import (
	"fmt"
	"math"
	"slices"

	"llmparity/internal/fault"
)

// Llama is what a llama-architecture file says of itself, checked against its tensors.
type Llama struct {
	ContextLength     int // the longest sequence that the model was made for
	EmbeddingLength   int
	BlockCount        int
	FeedForwardLength int
	HeadCount         int
	HeadCountKV       int
	HeadDim           int
	VocabSize         int
	RMSEpsilon        float64 // the file's float32, widened
	RopeBase          float64
	Tied              bool // the head is the embedding
}

// Wanted is a tensor that a llama model consists of.
type Wanted struct {
	Name  string
	Shape []uint64
}

// Tensors lists the model's tensors in the order in which they are usually stored.
func (l Llama) Tensors() []Wanted {
	n := func(v int) uint64 { return uint64(v) }
	h, i := n(l.EmbeddingLength), n(l.FeedForwardLength)
	q, kv := n(l.HeadCount*l.HeadDim), n(l.HeadCountKV*l.HeadDim)
	list := []Wanted{{"token_embd.weight", []uint64{h, n(l.VocabSize)}}}
	for b := range l.BlockCount {
		add := func(part string, shape ...uint64) {
			list = append(list, Wanted{fmt.Sprintf("blk.%d.%s.weight", b, part), shape})
		}
		add("attn_norm", h)
		add("attn_q", h, q)
		add("attn_k", h, kv)
		add("attn_v", h, kv)
		add("attn_output", q, h)
		add("ffn_norm", h)
		add("ffn_gate", h, i)
		add("ffn_up", h, i)
		add("ffn_down", i, h)
	}
	list = append(list, Wanted{"output_norm.weight", []uint64{h}})
	if !l.Tied {
		list = append(list, Wanted{"output.weight", []uint64{h, n(l.VocabSize)}})
	}
	return list
}

// ArchitectureName gives general.architecture.
func (f *File) ArchitectureName() (string, error) { return f.Text("general.architecture") }

// Llama reads the architecture. A file of another architecture, or a llama with parts that a plain one lacks, is a
// fault of kind UnknownArch.
func (f *File) Llama() (Llama, error) {
	name, err := f.ArchitectureName()
	if err != nil {
		return Llama{}, err
	}
	if name != "llama" {
		return Llama{}, f.unsupported("architecture %q is not supported; supported: llama", name)
	}
	l, err := f.sizes()
	if err != nil {
		return Llama{}, err
	}
	if err := f.plain(l); err != nil {
		return Llama{}, err
	}
	return l, f.complete(l)
}

func (f *File) unsupported(format string, args ...any) error {
	e := fault.New(fault.UnknownArch, "choose a plain llama model", format, args...)
	e.What = "model " + f.Name + ": " + e.What
	return e
}

func (f *File) sizes() (Llama, error) {
	var l Llama
	for _, field := range []struct {
		key string
		to  *int
	}{
		{"context_length", &l.ContextLength}, {"embedding_length", &l.EmbeddingLength}, {"block_count", &l.BlockCount},
		{"feed_forward_length", &l.FeedForwardLength}, {"attention.head_count", &l.HeadCount},
	} {
		n, err := f.count("llama." + field.key)
		if err != nil {
			return l, err
		}
		*field.to = n
	}
	l.HeadCountKV = l.HeadCount
	var err error
	if _, ok := f.Lookup("llama.attention.head_count_kv"); ok {
		if l.HeadCountKV, err = f.count("llama.attention.head_count_kv"); err != nil {
			return l, err
		}
	}
	if l.RMSEpsilon, err = f.Float("llama.attention.layer_norm_rms_epsilon"); err != nil {
		return l, err
	}
	if !(l.RMSEpsilon > 0 && l.RMSEpsilon < 1) {
		return l, f.bad(again, "metadata llama.attention.layer_norm_rms_epsilon is %v; a small positive number is right", l.RMSEpsilon)
	}
	l.RopeBase = 10000
	if _, ok := f.Lookup("llama.rope.freq_base"); ok {
		if l.RopeBase, err = f.Float("llama.rope.freq_base"); err != nil {
			return l, err
		}
	}
	if !(l.RopeBase > 1) || math.IsInf(l.RopeBase, 0) {
		return l, f.bad(again, "metadata llama.rope.freq_base is %v; a number above 1 is right", l.RopeBase)
	}
	tokens, err := f.Texts("tokenizer.ggml.tokens")
	if err != nil {
		return l, err
	}
	l.VocabSize = len(tokens)
	_, separate := f.Tensor("output.weight")
	l.Tied = !separate
	return l, f.heads(&l)
}

// count reads a size, which must be positive and small enough that products of two of them can't overflow.
func (f *File) count(key string) (int, error) {
	n, err := f.Uint(key)
	if err != nil {
		return 0, err
	}
	if n == 0 || n > 1<<30 {
		return 0, f.bad(again, "metadata %s is %d; 1 to %d are right", key, n, 1<<30)
	}
	return int(n), nil
}

func (f *File) heads(l *Llama) error {
	if l.HeadCount%l.HeadCountKV != 0 {
		return f.bad(again, "metadata llama.attention.head_count %d is not a multiple of head_count_kv %d", l.HeadCount, l.HeadCountKV)
	}
	if _, ok := f.Lookup("llama.attention.key_length"); ok {
		n, err := f.count("llama.attention.key_length")
		if err != nil {
			return err
		}
		l.HeadDim = n
	} else {
		if l.EmbeddingLength%l.HeadCount != 0 {
			return f.bad(again, "metadata llama.embedding_length %d is not a multiple of attention.head_count %d",
				l.EmbeddingLength, l.HeadCount)
		}
		l.HeadDim = l.EmbeddingLength / l.HeadCount
	}
	if l.HeadDim%2 != 0 {
		return f.bad(again, "heads of %d values can't be rotated; an even number is right", l.HeadDim)
	}
	return nil
}

// plain refuses the settings that the conversion would leave out.
func (f *File) plain(l Llama) error {
	if v, ok := f.Lookup("llama.rope.scaling.type"); ok && v != "none" {
		return f.unsupported("llama.rope.scaling.type is %s; supported: none", brief(v))
	}
	for _, key := range []string{"llama.attention.value_length", "llama.rope.dimension_count"} {
		if _, ok := f.Lookup(key); !ok {
			continue
		}
		n, err := f.count(key)
		if err != nil {
			return err
		}
		if n != l.HeadDim {
			return f.unsupported("%s is %d; supported: the head dimension, %d", key, n, l.HeadDim)
		}
	}
	if v, ok := f.Lookup("llama.expert_count"); ok {
		if n, whole := unsigned(v); !whole || n != 0 {
			return f.unsupported("llama.expert_count is %s; supported: none", brief(v))
		}
	}
	if v, ok := f.Lookup("llama.vocab_size"); ok {
		if n, whole := unsigned(v); !whole || n != uint64(l.VocabSize) {
			return f.bad(again, "metadata llama.vocab_size is %s, tokenizer.ggml.tokens has %d", brief(v), l.VocabSize)
		}
	}
	return nil
}

// complete checks that each tensor of a llama is there in the right shape, and no other.
func (f *File) complete(l Llama) error {
	// Before the list is made: its length comes from the file.
	if l.BlockCount > len(f.Tensors) {
		return f.bad(again, "metadata llama.block_count is %d; the file has %d tensors in all", l.BlockCount, len(f.Tensors))
	}
	known := map[string]bool{}
	for _, want := range l.Tensors() {
		known[want.Name] = true
		t, ok := f.Tensor(want.Name)
		if !ok {
			return f.bad(again, "tensor %s of shape %v is missing", want.Name, want.Shape)
		}
		if !sameShape(t.Shape, want.Shape) {
			return f.bad(again, "tensor %s has the shape %v; %v is right", t.Name, t.Shape, want.Shape)
		}
	}
	for _, t := range f.Tensors {
		if !known[t.Name] {
			return f.unsupported("tensor %s has no place in a plain llama model", t.Name)
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
