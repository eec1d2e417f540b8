package mlc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

// tinyPackage makes a package of the tiny model and opens the model.
func tinyPackage(t testing.TB, options Options) (*gguf.File, Package) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	return packageOfFile(t, path, options)
}

// packageOf makes a package of a random model and opens the model.
func packageOf(t testing.TB, spec tiny.Spec, options Options) (*gguf.File, Package) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	check.Err(t, tiny.WriteRandomFile(t.Context(), path, spec))
	return packageOfFile(t, path, options)
}

func packageOfFile(t testing.TB, path string, options Options) (*gguf.File, Package) {
	t.Helper()
	p, err := Write(t.Context(), path, filepath.Join(t.TempDir(), "models", "package"), options)
	check.Err(t, err)
	f, err := gguf.Open(path)
	check.Err(t, err)
	t.Cleanup(func() { f.Close() })
	return f, p
}

func readJSON(t *testing.T, dir, name string, to any) {
	t.Helper()
	b := check.Read(t, filepath.Join(dir, name))
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// weightsOf reads a package as WebLLM does, and checks the hash of each shard.
func weightsOf(t *testing.T, dir string) (map[string][]float32, []string) {
	t.Helper()
	check.Also(t, sound(dir))
	var c cache
	readJSON(t, dir, "tensor-cache.json", &c)
	weights := map[string][]float32{}
	var names []string
	for _, s := range c.Records {
		data := check.Read(t, filepath.Join(dir, s.File))
		for _, r := range s.Tensors {
			if r.DType != "float32" || r.Format != "raw" {
				t.Errorf("%s is %s %s", r.Name, r.DType, r.Format)
			}
			names = append(names, r.Name)
			weights[r.Name] = make([]float32, r.Bytes/4)
			_, err := binary.Decode(data[r.Offset:], binary.LittleEndian, weights[r.Name])
			check.Err(t, err)
		}
	}
	return weights, names
}

func tensor(t *testing.T, f *gguf.File, name string) []float32 {
	t.Helper()
	info, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	v, err := f.Floats(info)
	check.Err(t, err)
	return v
}

// blocks returns random blocks of size bytes with finite 16-bit floats at halves.
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

// A package has the values of all tensors, whatever their types, with the rows of heads reordered.
func TestPackageHasTheModelsWeights(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	data := check.Read(t, f.Name)
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
	check.Err(t, os.WriteFile(path, data, 0o644))
	mixed, p := packageOfFile(t, path, Options{})
	a, err := mixed.Architecture()
	check.Err(t, err)
	got, _ := weightsOf(t, p.Dir)
	for name, want := range expected(t, mixed, a) {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s is not what the file holds", name)
		}
	}
}

func sizeOf(t *testing.T, dir, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, name))
	check.Err(t, err)
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
	check.Err(t, err)
	for name, b := range contents(t, again) {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("%s differs", name)
		}
	}
	alone(t, filepath.Dir(p.Dir), "package")
}

func contents(t *testing.T, p Package) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range filesIn(t, p.Dir) {
		b := check.Read(t, filepath.Join(p.Dir, name))
		out[name] = b
	}
	return out
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check.Err(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// alone checks that a folder contains only these names.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	if got := filesIn(t, dir); !slices.Equal(got, names) {
		t.Errorf("%s contains %v, want %v", dir, got, names)
	}
}

func TestLargeModelsAreSplitIntoShards(t *testing.T) {
	f, p := packageOf(t, tiny.Spec{FFN: 20000}, Options{}) // 10 MiB a tensor
	got, _ := weightsOf(t, p.Dir)
	want := slices.Concat(tensor(t, f, "blk.0.ffn_gate.weight"), tensor(t, f, "blk.0.ffn_up.weight"))
	if !slices.Equal(got["model.layers.0.mlp.gate_up_proj.weight"], want) { // read in several pieces
		t.Error("gate_up_proj is not what the file holds")
	}
	shards := 0
	for _, name := range filesIn(t, p.Dir) {
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
	whole := check.Read(t, f.Name)
	file := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "model.gguf")
		check.Err(t, os.WriteFile(path, b, 0o644))
		return path
	}
	foreign := bytes.Replace(whole, []byte("\x05\x00\x00\x00\x00\x00\x00\x00llama"),
		[]byte("\x05\x00\x00\x00\x00\x00\x00\x00mamba"), 1)
	strange := bytes.Clone(whole)
	strange[bytes.Index(strange, []byte("blk.0.attn_q.weight"))+19+4+16] = 20
	large := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(large[f.Tensors[3].Offset+20:], math.Float32bits(-65520))
	for _, c := range []struct {
		name, path, says string
		options          Options
		kind             fault.Kind
	}{
		{"truncated", file(whole[:len(whole)/2]), "truncated: tensor blk.", Options{}, fault.BadModel},
		{"missing", filepath.Join(t.TempDir(), "none.gguf"), "cannot open", Options{}, fault.BadModel},
		{"foreign", file(foreign), `architecture "mamba" is not supported; choose a plain`, Options{},
			fault.UnknownArch},
		{"quantised otherwise", file(strange), "tensor blk.0.attn_q.weight is IQ4_NL, whose values cannot be read",
			Options{},
			fault.UnknownArch},
		{"too large for float16", file(large), "tensor " + f.Tensors[3].Name + " cannot be stored as float16: " +
			"value -65520 exceeds ±65504; convert it to float32", Options{DType: Float16}, fault.UnknownArch},
		{"dtype", f.Name, `"int8"`, Options{DType: "int8"}, fault.Usage},
		{"library", f.Name, "cannot read model library none.wasm: no such file", Options{Library: "none.wasm"},
			fault.Unwritable},
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
	check.Err(t, os.WriteFile(lib, []byte("\x00asm"), 0o600))
	_, p := tinyPackage(t, Options{Library: lib})
	if b := contents(t, p)[LibraryName]; string(b) != "\x00asm" {
		t.Errorf("%s has %q", LibraryName, b)
	}
}

func TestWriteLeavesOtherFoldersAlone(t *testing.T) {
	f, _ := tinyPackage(t, Options{})
	dir := t.TempDir()
	check.Err(t, os.WriteFile(filepath.Join(dir, "letters.txt"), []byte("a letter"), 0o644))
	if _, err := Write(context.Background(), f.Name, dir, Options{}); fault.Of(err) != fault.Unwritable {
		t.Errorf("got %v, want a fault of kind Unwritable", err)
	}
	alone(t, dir, "letters.txt")
}
