package mlc

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/tiny"
)

// tinyPackage makes a package of the tiny model and opens the model.
func tinyPackage(t *testing.T, options Options) (*gguf.File, Package) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	p, err := Write(context.Background(), path, filepath.Join(t.TempDir(), "models", "tiny"), options)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, p
}

func readJSON(t *testing.T, dir, name string, to any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// weightsOf reads a package back as WebLLM does: by tensor-cache.json, checking each shard's hash.
func weightsOf(t *testing.T, dir string) (map[string][]float32, []string) {
	t.Helper()
	var c cache
	readJSON(t, dir, "tensor-cache.json", &c)
	weights := map[string][]float32{}
	var names []string
	for _, s := range c.Records {
		data, err := os.ReadFile(filepath.Join(dir, s.File))
		if err != nil {
			t.Fatal(err)
		}
		if sum := md5.Sum(data); hex.EncodeToString(sum[:]) != s.MD5 || int64(len(data)) != s.Bytes {
			t.Errorf("%s: %d bytes, md5 %x; tensor-cache.json says %d, %s", s.File, len(data), sum, s.Bytes, s.MD5)
		}
		for _, r := range s.Tensors {
			if r.DType != "float32" || r.Format != "raw" {
				t.Errorf("%s is %s %s", r.Name, r.DType, r.Format)
			}
			n := int64(1)
			for _, d := range r.Shape {
				n *= d
			}
			if n*4 != r.Bytes || r.Offset+r.Bytes > s.Bytes {
				t.Fatalf("%s: shape %v, %d bytes at %d of %d", r.Name, r.Shape, r.Bytes, r.Offset, s.Bytes)
			}
			names = append(names, r.Name)
			weights[r.Name] = floats(data[r.Offset : r.Offset+r.Bytes])
		}
	}
	return weights, names
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(
			b[4*i+3])<<24)
	}
	return out
}

func tensor(t *testing.T, f *gguf.File, name string) []float32 {
	t.Helper()
	info, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	v, err := f.Floats(info)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPackageHasTheModelsWeights(t *testing.T) {
	f, p := tinyPackage(t, Options{})
	got, names := weightsOf(t, p.Dir)
	want := `model.embed_tokens model.layers.0.self_attn.qkv_proj model.layers.0.self_attn.o_proj model.layers.0.mlp.gate_up_proj
		model.layers.0.mlp.down_proj model.layers.0.input_layernorm model.layers.0.post_attention_layernorm
		model.layers.1.self_attn.qkv_proj model.layers.1.self_attn.o_proj model.layers.1.mlp.gate_up_proj
		model.layers.1.mlp.down_proj model.layers.1.input_layernorm model.layers.1.post_attention_layernorm model.norm lm_head`
	if list := strings.ReplaceAll(strings.Join(names, " "), ".weight", ""); list != strings.Join(
		strings.Fields(want), " ") {
		t.Errorf("weights are %s", list)
	}
	is := func(name string, want ...string) {
		t.Helper()
		var all []float32
		for _, w := range want {
			all = append(all, tensor(t, f, w+".weight")...)
		}
		if !slices.Equal(got[name+".weight"], all) {
			t.Errorf("%s is not %v", name, want)
		}
	}
	is("model.embed_tokens", "token_embd")
	is("model.layers.0.self_attn.o_proj", "blk.0.attn_output")
	is("model.layers.1.mlp.gate_up_proj", "blk.1.ffn_gate", "blk.1.ffn_up")
	is("model.layers.1.mlp.down_proj", "blk.1.ffn_down")
	is("model.layers.0.input_layernorm", "blk.0.attn_norm")
	is("model.layers.1.post_attention_layernorm", "blk.1.ffn_norm")
	is("model.norm", "output_norm")
	is("lm_head", "output")
	if v := got["model.layers.1.self_attn.qkv_proj.weight"]; !slices.Equal(
		v[(128+64)*128:], tensor(t, f, "blk.1.attn_v.weight")) {
		t.Error("the last 64 rows of qkv_proj are not V")
	}
	if p.Parameters*4 != p.Bytes || p.Bytes != sizeOf(t, p.Dir, "params_shard_0.bin") {
		t.Errorf("%d parameters, %d bytes", p.Parameters, p.Bytes)
	}
}

// blocks gives random blocks of size bytes, with finite 16-bit floats at the places halves.
func blocks(r *rand.Rand, count, size int, halves ...int) []byte {
	b := make([]byte, count*size)
	r.Read(b)
	for i := range count {
		for _, at := range halves {
			b[i*size+at+1] &= 0xbf // an exponent of all ones would be infinite or no number
		}
	}
	return b
}

// Weights that are stored otherwise come out as what they stand for, in the same places and order as float32 ones
// would.
func TestQuantisedWeightsBecomeFloats(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	data, err := os.ReadFile(f.Name)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(2))
	store := func(name string, kind gguf.Type, values, size int, halves ...int) {
		info, ok := f.Tensor(name + ".weight")
		if !ok {
			t.Fatalf("no tensor %s", name)
		}
		at := bytes.Index(data, []byte(name+".weight")) + len(name+".weight") + 4 + 8*len(info.Shape)
		data[at] = byte(kind)
		copy(data[info.Offset:], blocks(r, int(info.Elements())/values, size, halves...))
	}
	store("token_embd", gguf.Q8_0, 32, 34, 0)
	store("blk.0.attn_q", gguf.Q4_0, 32, 18, 0)
	store("blk.0.attn_k", gguf.Q5_1, 32, 24, 0, 2)
	store("blk.0.attn_v", gguf.F16, 1, 2, 0)
	store("blk.1.ffn_gate", gguf.Q5_0, 32, 22, 0)
	store("blk.1.ffn_up", gguf.Q4_1, 32, 20, 0, 2)
	store("blk.1.ffn_down", gguf.Q4_K, 256, 144, 0, 2)
	path := filepath.Join(t.TempDir(), "mixed.gguf")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	mixed, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mixed.Close()
	p, err := Write(context.Background(), path, filepath.Join(t.TempDir(), "mixed"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := weightsOf(t, p.Dir)
	whole := func(name string) []float32 { return tensor(t, mixed, name+".weight") }
	byHalves := func(name string) []float32 { // 32 rows of 128 a head
		in := whole(name)
		out := make([]float32, len(in))
		for row := range len(in) / 128 {
			head, j := row/32*32, row%32
			copy(out[(head+j/2+j%2*16)*128:][:128], in[row*128:])
		}
		return out
	}
	for name, want := range map[string][]float32{
		"model.embed_tokens": whole("token_embd"),
		"model.layers.0.self_attn.qkv_proj": slices.Concat(byHalves("blk.0.attn_q"), byHalves("blk.0.attn_k"),
			whole("blk.0.attn_v")),
		"model.layers.1.mlp.gate_up_proj": slices.Concat(whole("blk.1.ffn_gate"), whole("blk.1.ffn_up")),
		"model.layers.1.mlp.down_proj":    whole("blk.1.ffn_down"),
		"model.norm":                      whole("output_norm"),
	} {
		if !slices.Equal(got[name+".weight"], want) {
			t.Errorf("%s is not what the file holds", name)
		}
	}
}

func sizeOf(t *testing.T, dir, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestConfig(t *testing.T) {
	_, p := tinyPackage(t, Options{ContextWindow: 512, PrefillChunk: 64})
	var c map[string]any
	readJSON(t, p.Dir, configName, &c)
	for key, want := range map[string]any{
		"model_type": "llama", "quantization": "q0f32", "vocab_size": 512.0, "context_window_size": 512.0,
		"prefill_chunk_size": 64.0, "sliding_window_size": -1.0, "attention_sink_size": -1.0,
		"tensor_parallel_shards": 1.0,
	} {
		if c[key] != want {
			t.Errorf("%s is %v, want %v", key, c[key], want)
		}
	}
	chat := c["conv_template"].(map[string]any)
	if stop := chat["stop_token_ids"].([]any); len(stop) != 2 || stop[0] != 509.0 || stop[1] != 511.0 {
		t.Errorf("stop tokens are %v", stop)
	}
	if files := c["tokenizer_files"].([]any); len(files) != 1 || files[0] != "tokenizer.json" {
		t.Errorf("tokenizer files are %v", files)
	}
	if s := p.Shape; s.HiddenSize != 128 || s.RMSNormEps != 1e-5 || s.TieWordEmbeddings || s.PrefillChunkSize != 64 {
		t.Errorf("shape is %+v", s)
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings: %v", p.Warnings)
	}
}

func TestWriteTwiceGivesTheSameBytes(t *testing.T) {
	f, p := tinyPackage(t, Options{})
	before := contents(t, p)
	again, err := Write(context.Background(), f.Name, p.Dir, Options{}) // in place of the first
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range contents(t, again) {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("%s differs", name)
		}
	}
	alone(t, filepath.Dir(p.Dir), "tiny")
}

func contents(t *testing.T, p Package) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range p.Files {
		b, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = b
	}
	return out
}

// alone checks that a folder holds nothing but these.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %v, want %v", dir, got, names)
	}
}

// rewrite writes a model again, changed.
func rewrite(t *testing.T, f *gguf.File,
	change func([]gguf.Entry, []gguf.Weights) ([]gguf.Entry, []gguf.Weights)) string {
	t.Helper()
	var weights []gguf.Weights
	for _, info := range f.Tensors {
		weights = append(weights, gguf.Weights{Name: info.Name, Shape: info.Shape, Values: tensor(t, f, info.Name)})
	}
	metadata, weights := change(append([]gguf.Entry(nil), f.Metadata...), weights)
	path := filepath.Join(t.TempDir(), "changed.gguf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := gguf.Write(file, metadata, weights); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLargeModelsAreSplitIntoShards(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	const wide = 20000 // rows of the feed-forward part: 128 × 20000 × 4 bytes is 10 MiB a tensor
	path := rewrite(t, f, func(m []gguf.Entry, w []gguf.Weights) ([]gguf.Entry, []gguf.Weights) {
		for i := range m {
			if m[i].Key == "llama.feed_forward_length" {
				m[i].Value = uint32(wide)
			}
		}
		for i := range w {
			if strings.Contains(w[i].Name, "ffn_") && !strings.Contains(w[i].Name, "norm") {
				for d := range w[i].Shape {
					w[i].Shape = append([]uint64(nil), w[i].Shape...)
					if w[i].Shape[d] == 256 {
						w[i].Shape[d] = wide
					}
				}
				w[i].Values = make([]float32, 128*wide)
				for k := range w[i].Values {
					w[i].Values[k] = float32(k)
				}
			}
		}
		return m, w
	})
	p, err := Write(context.Background(), path, filepath.Join(t.TempDir(), "wide"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := weightsOf(t, p.Dir)
	for i, v := range got["model.layers.0.mlp.gate_up_proj.weight"] { // read in several pieces
		if v != float32(i%(128*wide)) {
			t.Fatalf("value %d is %v", i, v)
		}
	}
	shards := 0
	for _, name := range p.Files {
		if strings.HasSuffix(name, ".bin") {
			shards++
			if n := sizeOf(t, p.Dir, name); n > maxShard {
				t.Errorf("%s has %d bytes", name, n)
			}
		}
	}
	if shards < 2 {
		t.Errorf("%d shards", shards)
	}
}

func TestFaults(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	whole, err := os.ReadFile(f.Name)
	if err != nil {
		t.Fatal(err)
	}
	file := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := bytes.Replace(whole, []byte("\x05\x00\x00\x00\x00\x00\x00\x00llama"),
		[]byte("\x05\x00\x00\x00\x00\x00\x00\x00mamba"), 1)
	strange := bytes.Clone(whole)
	strange[bytes.Index(strange, []byte("blk.0.attn_q.weight"))+19+4+16] = 20
	for _, c := range []struct {
		name, path, says string
		options          Options
		kind             fault.Kind
	}{
		{"truncated", file(whole[:len(whole)/2]), "truncated: tensor blk.", Options{}, fault.BadModel},
		{"missing", filepath.Join(t.TempDir(), "none.gguf"), "cannot open", Options{}, fault.BadModel},
		{"foreign", file(foreign), `architecture "mamba" is not supported; supported: llama, qwen2`, Options{},
			fault.UnknownArch},
		{"quantised otherwise", file(strange), "tensor blk.0.attn_q.weight is IQ4_NL, whose values cannot be read",
			Options{},
			fault.UnknownArch},
		{"window", f.Name, "context window 4096", Options{ContextWindow: 4096}, fault.Usage},
		{"chunk", f.Name, "prefill chunk 2048", Options{PrefillChunk: 2048}, fault.Usage},
	} {
		parent := t.TempDir()
		_, err := Write(context.Background(), c.path, filepath.Join(parent, "package"), c.options)
		if fault.Of(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v (%s), want %q (%s)", c.name, err, fault.Of(err), c.says, c.kind)
		}
		alone(t, parent)
	}
}

func TestInterruptedWriteLeavesNothing(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	parent := t.TempDir()
	if _, err := Write(ctx, f.Name, filepath.Join(parent, "package"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	alone(t, parent)
}

func TestWriteCopiesLibrary(t *testing.T) {
	lib := filepath.Join(t.TempDir(), "compiled.wasm")
	if err := os.WriteFile(lib, []byte("\x00asm"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, p := tinyPackage(t, Options{Library: lib})
	if b := contents(t, p)[LibraryName]; string(b) != "\x00asm" {
		t.Errorf("%s has %q", LibraryName, b)
	}
	parent := t.TempDir()
	_, err := Write(t.Context(), f.Name, filepath.Join(parent, "package"), Options{Library: lib + ".none"})
	if fault.Of(err) != fault.Unwritable || strings.Count(err.Error(), lib) != 1 {
		t.Errorf("a library that isn't there: %v", err)
	}
	alone(t, parent)
}

func TestWriteLeavesOtherFoldersAlone(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letters.txt"), []byte("a letter"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), f.Name, dir, Options{}); fault.Of(err) != fault.Unwritable {
		t.Errorf("got %v, want a fault of kind Unwritable", err)
	}
	alone(t, dir, "letters.txt")
}
