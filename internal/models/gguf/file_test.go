package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

// entries has each kind of value once.
var entries = []gguf.Entry{
	{Key: "a.uint8", Value: uint8(200)}, {Key: "a.int8", Value: int8(-100)},
	{Key: "a.uint16", Value: uint16(60000)}, {Key: "a.int16", Value: int16(-30000)},
	{Key: "a.uint32", Value: uint32(4e9)}, {Key: "a.int32", Value: int32(-2e9)},
	{Key: "a.uint64", Value: uint64(1e19)}, {Key: "a.int64", Value: int64(-9e18)},
	{Key: "a.float32", Value: float32(0.1)}, {Key: "a.float64", Value: 0.1},
	{Key: "a.bool", Value: true}, {Key: "a.string", Value: "naïve ☂"},
	{Key: "b.strings", Value: []string{"", "one", "two words"}}, {Key: "b.int32", Value: []int32{1, -2, 3}},
	{Key: "b.float32", Value: []float32{1.5, -0.25}}, {Key: "b.bool", Value: []bool{true, false}},
	{Key: "b.uint8", Value: []uint8{1, 2, 255}}, {Key: "b.none", Value: []uint64{}},
}

var tensors = []gguf.Weights{
	{Name: "matrix", Shape: []uint64{3, 2}, Values: []float32{1, 2, 3, 4, 5, float32(math.Inf(1))}},
	{Name: "vector", Shape: []uint64{1}, Values: []float32{-7}},
}

func written(t testing.TB, m []gguf.Entry, w []gguf.Weights) []byte {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, gguf.Write(&b, m, w))
	return b.Bytes()
}

func read(b []byte) (*gguf.File, error) {
	return gguf.Read(bytes.NewReader(b), int64(len(b)), "test.gguf")
}

func TestWriteAndRead(t *testing.T) {
	b := written(t, entries, tensors)
	for _, version := range []uint32{2, 3} {
		binary.LittleEndian.PutUint32(b[4:], version)
		f, err := read(b)
		check.Err(t, err)
		if f.Version != version || !reflect.DeepEqual(f.Metadata, entries) {
			t.Errorf("version %d: metadata is %v", f.Version, f.Metadata)
		}
		for i, want := range tensors {
			got := f.Tensors[i]
			values, err := f.Floats(got)
			if err != nil || got.Name != want.Name || !reflect.DeepEqual(got.Shape, want.Shape) ||
				!reflect.DeepEqual(values, want.Values) {
				t.Errorf("tensor %+v %v %v, want %+v", got, values, err, want)
			}
			if raw, _ := io.ReadAll(f.Data(got)); int64(len(raw)) != got.Size || got.Offset%32 != 0 {
				t.Errorf("tensor %s has %d bytes at %d, read %d", got.Name, got.Size, got.Offset, len(raw))
			}
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	if err := gguf.Write(io.Discard, []gguf.Entry{{Key: "k", Value: 1}}, nil); err == nil {
		t.Error("wrote an int")
	}
	if err := gguf.Write(io.Discard, nil,
		[]gguf.Weights{{Name: "w", Shape: []uint64{2}, Values: []float32{1}}}); err == nil {
		t.Error("wrote a tensor with missing values")
	}
}

// patch returns a copy with bytes replaced, starting where the text mark is found, skip bytes further on.
func patch(t testing.TB, b []byte, mark string, skip int, with ...byte) []byte {
	t.Helper()
	at := bytes.Index(b, []byte(mark))
	if at < 0 {
		t.Fatalf("no %q in the file", mark)
	}
	out := bytes.Clone(b)
	copy(out[at+len(mark)+skip:], with)
	return out
}

func TestReadRefuses(t *testing.T) {
	b := written(t, entries, tensors)
	for _, c := range []struct {
		name, says string
		file       []byte
	}{
		{"empty", "test.gguf: empty file", nil},
		{"short", "truncated: a GGUF header needs 24 bytes, the file has 3", b[:3]},
		{"zip", `not a GGUF: starts with "PK\x03\x04"`, []byte("PK\x03\x04 and more than 24 bytes")},
		{"big-endian", "a big-endian GGUF", patch(t, b, "GGUF", 0, 0, 0, 0, 3)},
		{"version 1", "GGUF version 1 is not supported", patch(t, b, "GGUF", 0, 1)},
		{"tensor count", "byte 8 counts 72057594037927938 tensors", patch(t, b, "GGUF", 11, 1)},
		{"entry count", "byte 16 counts", patch(t, b, "GGUF", 19, 1)},
		{"header cut", `truncated: metadata "b.none"`, b[:bytes.Index(b, []byte("b.none"))+10]},
		{"string too long", `truncated: metadata "a.string"`, patch(t, b, "a.string", 9, 1)},
		{"string of 2^63 bytes", `truncated: metadata "a.string"`,
			patch(t, b, "a.string", 4, 0, 0, 0, 0, 0, 0, 0, 128)},
		{"array of 2^60 strings", `truncated: metadata "b.strings"`,
			patch(t, b, "b.strings", 8, 0, 0, 0, 0, 0, 0, 0, 16)},
		{"array too long", `truncated: metadata "b.int32"`, patch(t, b, "b.int32", 12, 1)},
		{"unknown kind", `metadata "a.bool" has the unknown type 99`, patch(t, b, "a.bool", 0, 99)},
		{"bool of 7", `metadata "a.bool" has 7`, patch(t, b, "a.bool", 4, 7)},
		{"array of arrays", `metadata "b.none" is an array of type 9`, patch(t, b, "b.none", 4, 9)},
		{"twice", `metadata "a.int8" appears twice`, written(t, []gguf.Entry{entries[1], entries[1]}, nil)},
		{"alignment", "metadata general.alignment is 24",
			written(t, []gguf.Entry{{Key: "general.alignment", Value: uint32(24)}}, nil)},
		{"dimensions", `tensor "matrix" has 9 dimensions`, patch(t, b, "matrix", 0, 9)},
		{"no rows", `tensor "matrix" has shape [3 0]`, patch(t, b, "matrix", 12, 0)},
		{"huge", "truncated: tensor matrix of shape [3 144115188075855874]", patch(t, b, "matrix", 19, 2)},
		{"blocks", `tensor "matrix" has rows of 3 values, which is not a multiple of Q4_0's block size 32`,
			patch(t, b, "matrix", 20, 2)},
		{"not aligned", "tensor vector starts 33 bytes into the data", patch(t, b, "vector", 16, 33)},
		{"overlap", "tensors matrix and vector overlap", patch(t, b, "vector", 16, 0)},
		{"outside", "truncated: tensor vector ends at byte", patch(t, b, "vector", 16, 64)},
		{"far outside", "truncated: tensor vector starts", patch(t, b, "vector", 23, 0x80)},
		{"data cut", "truncated: tensor vector ends at byte", b[:len(b)-32]},
		{"same name", `tensor "vector" is described twice`, written(t, nil, []gguf.Weights{tensors[1], tensors[1]})},
	} {
		_, err := read(c.file)
		if err == nil || !strings.Contains(err.Error(), c.says) || fault.Of(err) != fault.BadModel {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for path, says := range map[string]string{
		filepath.Join(dir, "none.gguf"): "no such file",
		dir:                             "not a regular file",
	} {
		_, err := gguf.Open(path)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want %q and the path once", err, says)
		}
	}
}

// tinyBytes returns the tiny model's file.
var tinyBytes = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := tiny.Write(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
})

// altered returns a file with some metadata changed (nil: removed) and tensors removed or added.
func altered(t *testing.T, file []byte, changes map[string]any, without string, more ...gguf.Weights) *gguf.File {
	t.Helper()
	f, err := read(file)
	check.Err(t, err)
	metadata := f.Metadata
	for key, value := range changes {
		metadata = changed(metadata, gguf.Entry{Key: key, Value: value})
	}
	weights := slices.DeleteFunc(f.Unquantised(), func(w gguf.Weights) bool { return w.Name == without })
	f, err = read(written(t, metadata, append(weights, more...)))
	check.Err(t, err)
	return f
}

func TestArchitecture(t *testing.T) {
	l, err := altered(t, tinyBytes(), nil, "").Architecture()
	check.Err(t, err)
	want := gguf.Architecture{Name: gguf.Llama, ContextLength: 1024, EmbeddingLength: 128, BlockCount: 2,
		FeedForwardLength: 256, HeadCount: 4,
		HeadCountKV: 2, HeadDim: 32, VocabSize: 512, RMSEpsilon: float64(float32(1e-5)), RopeBase: 10000}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("got %+v, want %+v", l, want)
	}
}

func one(name string) gguf.Weights {
	return gguf.Weights{Name: name, Shape: []uint64{1}, Values: []float32{1}}
}

func ropeFreqs(n int, values ...float32) gguf.Weights {
	all := append(values, slices.Repeat([]float32{values[len(values)-1]}, n-len(values))...)
	return gguf.Weights{Name: "rope_freqs.weight", Shape: []uint64{uint64(n)}, Values: all}
}

func TestFeatures(t *testing.T) {
	factors := func(first, others float64) []float64 {
		return append([]float64{first}, slices.Repeat([]float64{others}, 15)...)
	}
	for _, c := range []struct {
		name    string
		changes map[string]any
		weights []gguf.Weights
		want    func(*gguf.Architecture)
	}{
		{"linear", map[string]any{"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": float32(4)}, nil,
			func(a *gguf.Architecture) { a.RopeFactors = factors(4, 4) }},
		{"factor without a type", map[string]any{"llama.rope.scaling.factor": float32(4)}, nil,
			func(a *gguf.Architecture) { a.RopeFactors = factors(4, 4) }},
		{"old key", map[string]any{"llama.rope.scale_linear": float32(2)}, nil,
			func(a *gguf.Architecture) { a.RopeFactors = factors(2, 2) }},
		{"none", map[string]any{"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": float32(4)}, nil, nil},
		{"no factor", map[string]any{"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": float32(0)}, nil,
			nil},
		{"factors", nil, []gguf.Weights{ropeFreqs(16, 1, 8)},
			func(a *gguf.Architecture) { a.RopeFactors = factors(1, 8) }},
		{"factors of one", nil, []gguf.Weights{ropeFreqs(16, 1)}, nil},
		{"both", map[string]any{"llama.rope.scaling.factor": float32(4)}, []gguf.Weights{ropeFreqs(16, 1, 8)},
			func(a *gguf.Architecture) { a.RopeFactors = factors(4, 32) }},
		{"window", map[string]any{"llama.attention.sliding_window": uint32(64)}, nil,
			func(a *gguf.Architecture) { a.SlidingWindow = 64 }},
		{"window as long as the context", map[string]any{"llama.attention.sliding_window": uint32(1024)}, nil, nil},
		{"no window", map[string]any{"llama.attention.sliding_window": uint32(0)}, nil, nil},
		{"settings without effect",
			map[string]any{"general.type": "model", "llama.expert_count": uint32(0), "llama.logit_scale": float32(1),
				"llama.attention.causal": true, "llama.rope.scaling.attn_factor": float32(1), "split.count": uint16(1)},
			nil, nil},
	} {
		want, err := altered(t, tinyBytes(), nil, "").Architecture()
		check.Err(t, err)
		if c.want != nil {
			c.want(&want)
		}
		got, err := altered(t, tinyBytes(), c.changes, "", c.weights...).Architecture()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v %v, want %+v", c.name, got, err, want)
		}
	}
}

func TestArchitectureRefuses(t *testing.T) {
	const bad, unknown = fault.BadModel, fault.UnknownArch
	for _, c := range []struct {
		key     string
		value   any
		without string
		with    []gguf.Weights
		says    string
		kind    fault.Kind
	}{
		{"general.architecture", "mamba", "", nil,
			`architecture "mamba" is not supported; choose a plain gemma2, gemma3, llama, phi3, qwen2 or qwen3 model`,
			unknown},
		{"general.architecture", "qwen2", "", nil, "metadata qwen2.context_length is missing", bad},
		{"general.architecture", "clip", "", nil,
			"a vision or audio encoder, not a language model; use the GGUF of the text model",
			unknown},
		{"general.type", "adapter", "", nil, "a LoRA adapter, not a model; merge it into its base model",
			unknown},
		{"general.type", "mmproj", "", nil, "a vision or audio encoder", unknown},
		{"general.type", "imatrix", "", nil, `general.type is "imatrix", not a model`, unknown},
		{"general.architecture", nil, "", nil, "metadata general.architecture is missing", bad},
		{"llama.block_count", nil, "", nil, "metadata llama.block_count is missing", bad},
		{"llama.block_count", uint32(1 << 29), "", nil, "the file has only 21 tensors", bad},
		{"llama.block_count", uint32(3), "", nil, "tensor blk.2.attn_norm.weight of shape [128] is missing", bad},
		{"llama.attention.head_count", uint32(3), "", nil, "not a multiple of head_count_kv", bad},
		{"llama.attention.head_count_kv", uint32(4), "", nil,
			"tensor blk.0.attn_k.weight has shape [128 64], want [128 128]", bad},
		{"llama.attention.layer_norm_rms_epsilon", float32(math.NaN()), "", nil, "rms_epsilon is NaN", bad},
		{"llama.rope.freq_base", float32(0), "", nil, "freq_base is 0", bad},
		{"llama.rope.scaling.type", "yarn", "", nil, "llama.rope.scaling.type is string yarn", unknown},
		{"llama.rope.scaling.factor", float32(-2), "", nil, "llama.rope.scaling.factor is -2", bad},
		{"llama.rope.scaling.attn_factor", float32(1.2), "", nil,
			"llama.rope.scaling.attn_factor is float32 1.2", unknown},
		{"llama.attention.head_count_kv", []int32{2, 4}, "", nil,
			"llama.attention.head_count_kv is []int32 [2 4]: layers with different sizes", unknown},
		{"llama.attention.sliding_window_pattern", []bool{true, false}, "", nil,
			"llama.attention.sliding_window_pattern is []bool [true false], which is not supported", unknown},
		{"llama.attn_logit_softcapping", float32(50), "", nil, "llama.attn_logit_softcapping is float32 50", unknown},
		{"llama.rope.freq_base_swa", float32(10000), "", nil, "llama.rope.freq_base_swa is float32 10000", unknown},
		{"llama.rope.scaling.type", "longrope", "", nil, "llama.rope.scaling.type is string longrope", unknown},
		{"", nil, "", []gguf.Weights{one("rope_factors_long.weight")},
			"tensor rope_factors_long.weight does not belong", unknown},
		{"llama.logit_scale", float32(8), "", nil, "llama.logit_scale is float32 8", unknown},
		{"", nil, "", []gguf.Weights{ropeFreqs(16, 1, 0)}, "value 1 of tensor rope_freqs.weight is 0", bad},
		{"", nil, "", []gguf.Weights{ropeFreqs(15, 1)}, "tensor rope_freqs.weight has shape [15], want [16]", bad},
		{"", nil, "", []gguf.Weights{one("blk.0.attn_output.bias")},
			"tensor blk.0.attn_output.bias does not belong to a plain llama model", unknown},
		{"", nil, "", []gguf.Weights{one("blk.0.attn_q_norm.weight")},
			"tensor blk.0.attn_q_norm.weight does not belong", unknown},
		{"", nil, "", []gguf.Weights{one("blk.1.attn_k.bias")},
			"tensor blk.0.attn_q.bias of shape [128] is missing", bad},
		{"llama.rope.dimension_count", uint32(16), "", nil, "llama.rope.dimension_count is 16", unknown},
		{"llama.vocab_size", uint32(500), "", nil,
			"llama.vocab_size is uint32 500, but tokenizer.ggml.tokens has 512", bad},
		{"", nil, "blk.1.ffn_up.weight", nil, "tensor blk.1.ffn_up.weight of shape [128 256] is missing", bad},
	} {
		_, err := altered(t, tinyBytes(), map[string]any{c.key: c.value}, c.without, c.with...).Architecture()
		if err == nil || !strings.Contains(err.Error(), c.says) || fault.Of(err) != c.kind {
			t.Errorf("%s = %v: got %v (%s), want %q", c.key, c.value, err, fault.Of(err), c.says)
		}
	}
	perLayer := map[string]any{"llama.attention.head_count_kv": []int32{2, 2}}
	even, err := altered(t, tinyBytes(), perLayer, "").Architecture()
	if err != nil || even.HeadCountKV != 2 {
		t.Errorf("one number for each layer: %d, %v", even.HeadCountKV, err)
	}
	tied, err := altered(t, tinyBytes(), nil, "output.weight").Architecture()
	if err != nil || !tied.Tied {
		t.Errorf("without output.weight: tied: %v, %v", tied.Tied, err)
	}
}

func TestUnreadableTypesAreKnown(t *testing.T) {
	w := []gguf.Weights{{Name: "q", Shape: []uint64{32}, Values: make([]float32, 32)}}
	f, err := read(patch(t, written(t, nil, w), "q", 12, 20)) // a block of 32 values in 18 bytes
	check.Err(t, err)
	if got := f.Tensors[0]; got.Size != 18 || got.Type.String() != "IQ4_NL" {
		t.Errorf("got %+v", got)
	}
	for _, err := range []error{f.RequireReadable(), func() error { _, err := f.Floats(f.Tensors[0]); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "tensor q is IQ4_NL") ||
			fault.Of(err) != fault.UnknownArch {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzRead looks for panics, tensors outside the file, and errors of other classes.
func FuzzRead(f *testing.F) {
	whole := written(f, entries, tensors)
	f.Add(whole)
	f.Add(whole[:100])
	f.Add([]byte("GGUF"))
	f.Add(tinyBytes()[:20000]) // the header: metadata, vocabulary and tensor list
	var small bytes.Buffer
	check.Err(f, tiny.WriteRandom(&small, tiny.Spec{Layers: 1, Hidden: 2, Heads: 1, FFN: 1, Window: 4,
		RopeScaling: tiny.Linear}))
	f.Add(small.Bytes())
	long := []byte{0, 0, 0, 0, 0, 0, 0, 16} // 2^60
	f.Add(patch(f, whole, "a.string", 4, long...))
	f.Add(patch(f, whole, "b.strings", 8, long...))
	f.Add(patch(f, whole, "b.none", 8, long...))
	f.Add(patch(f, whole, "vector", 16, long...))
	f.Add(patch(f, whole, "vector", 16, 64)) // outside
	f.Add(written(f, scored([]string{"a", "b", "ab"}), nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := read(content)
		if err != nil {
			if fault.Of(err) != fault.BadModel {
				t.Fatalf("%v has class %s", err, fault.Of(err))
			}
			return
		}
		for _, info := range file.Tensors {
			if n, err := io.Copy(io.Discard, file.Data(info)); err != nil || n != info.Size {
				t.Fatalf("tensor %+v: read %d, %v", info, n, err)
			}
			if v, err := file.Floats(info); info.Type.Readable() != (err == nil) || err == nil &&
				int64(len(v)) != info.Elements() {
				t.Fatalf("tensor %+v: read %d values, %v", info, len(v), err)
			}
		}
		_, arch := file.Architecture()
		v, vocabulary := file.Vocabulary()
		for _, err := range []error{arch, vocabulary} {
			if c := fault.Of(err); c != "" && c != fault.BadModel && c != fault.UnknownArch {
				t.Fatalf("%v has class %s", err, c)
			}
		}
		if vocabulary == nil {
			v.Uncovered("prompt é")
		}
	})
}

// The parts of a split model read as one file, whose values are those of the whole.
func TestSplitModelReadsAsOne(t *testing.T) {
	dir := t.TempDir()
	for i, w := range tensors {
		m := []gguf.Entry{{Key: "split.count", Value: uint16(len(tensors))}}
		if i == 0 {
			m = append(m, entries...)
		}
		check.Err(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("m-%05d-of-00002.gguf", i+1)),
			written(t, m, []gguf.Weights{w}), 0o600))
	}
	for i := range tensors { // any part stands for all
		f, err := gguf.Open(filepath.Join(dir, fmt.Sprintf("m-%05d-of-00002.gguf", i+1)))
		check.Err(t, err)
		for _, want := range tensors {
			got, _ := f.Tensor(want.Name)
			if values, err := f.Floats(got); err != nil || !reflect.DeepEqual(values, want.Values) {
				t.Errorf("%s: %v, want %v (%v)", want.Name, values, want.Values, err)
			}
		}
		if !reflect.DeepEqual(f.Metadata, entries) || len(f.Paths()) != 2 || len(f.Tensors) != len(tensors) {
			t.Errorf("%v, %d tensors of %v", f.Metadata, len(f.Tensors), f.Paths())
		}
		check.Err(t, f.Close())
	}
	renamed := filepath.Join(dir, "renamed.gguf")
	check.Err(t, os.Rename(filepath.Join(dir, "m-00002-of-00002.gguf"), renamed))
	if _, err := gguf.Open(renamed); fault.Of(err) != fault.BadModel ||
		!strings.Contains(err.Error(), "-of-00002.gguf") {
		t.Errorf("a renamed part: %v", err)
	}
	if _, err := gguf.Open(filepath.Join(dir, "m-00001-of-00002.gguf")); fault.Of(err) != fault.BadModel ||
		!errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "m-00002-of-00002.gguf") {
		t.Errorf("without its second part: %v", err)
	}
}

// A type that is unknown has a name and at most the bytes up to the next tensor.
func TestUnknownTypeIsNoError(t *testing.T) {
	f, err := read(patch(t, written(t, entries, tensors), "matrix", 20, 99))
	check.Err(t, err)
	got := f.Tensors[0]
	if got.Type.String() != "type 99" || got.Size != f.Tensors[1].Offset-got.Offset || got.Elements() != 6 {
		t.Errorf("%+v", got)
	}
	if err := f.RequireReadable(); fault.Of(err) != fault.UnknownArch {
		t.Error(err)
	}
}
