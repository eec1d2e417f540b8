package mlc

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cachedir "llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
	"llmparity/internal/models/tiny"
)

// mlcMetadata is the metadata of a library of MLC, shortened.
const mlcMetadata = `{"model_type": "llama", "quantization": "q0f32", "context_window_size": 2048, "sliding_window_size": -1, "prefill_chunk_size": 1024, "kv_state_kind": "kv_cache", "params": [{"name": "model.embed_tokens.weight", "shape": ["vocab_size", 128], "dtype": "float32", "preprocs": []}], "memory_usage": {"decode": 2560}}`

func section(id byte, body string) string {
	return string(binary.AppendUvarint([]byte{id}, uint64(len(body)))) + body
}

func named(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

// wasmWith is a module with imports, an export, and these data segments.
func wasmWith(segments ...string) string {
	data := string(binary.AppendUvarint(nil, uint64(len(segments))))
	for _, s := range segments {
		data += "\x00\x41\x80\x08\x0b" + named(s) // at i32.const 1024
	}
	imports := "\x03" + named("env") + named("TVMFFIWasmSafeCall") + "\x00\x05" + named("env") + named("memory") +
		"\x02\x01\x01\x80\x02" + named("env") + named("base") + "\x03\x7f\x00"
	return wasmMagic + section(0, named("name")+"junk") + section(sectionImport, imports) +
		section(7, "\x02"+named("_start")+"\x00\x07"+named("memory")+"\x02\x00") + section(11, data)
}

func TestFindsMetadata(t *testing.T) {
	decoy := `{"model_type": 7, {"model_type": "other"}`
	for n := range 3 {
		segments := slices.Repeat([]string{"nothing " + decoy}, n)
		lib, err := parseLibrary([]byte(wasmWith(append(segments, "\x00\x17{\x00"+mlcMetadata+"\x00{}")...)))
		if err != nil {
			t.Fatalf("segment %d: %v", n, err)
		}
		if lib.ModelType != "llama" || lib.MemoryUsage["decode"] != 2560 || lib.Own != nil ||
			lib.Params[0].Shape.String() != "[any, 128]" ||
			!slices.Equal(lib.Imports, []string{"TVMFFIWasmSafeCall"}) {
			t.Errorf("segment %d: %+v", n, lib)
		}
	}
}

func TestOpenLibraryRefuses(t *testing.T) {
	whole := wasmWith(mlcMetadata)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty.wasm": "", "text.wasm": "<!doctype html>", "short.wasm": whole[:len(whole)-10],
		"other.wasm": wasmWith("a module of something else"),
		"huge.wasm":  wasmMagic + "\x0b\xff\xff\xff\xff\x0f",
		"count.wasm": wasmMagic + section(11, "\xff\xff\xff\xff\x0f"),
	} {
		path := filepath.Join(dir, name)
		check.Err(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := OpenLibrary(path); fault.Of(err) != fault.BadLibrary ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing.wasm")} {
		if _, err := OpenLibrary(path); fault.Of(err) != fault.BadLibrary {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A library compiled for a model matches it, and no other.
func TestOwnLibraryMatchesItsModel(t *testing.T) {
	options := Options{ContextWindow: 1024, PrefillChunk: 128}
	f, _ := tinyPackage(t, options)
	shape, err := Shape(f, options)
	check.Err(t, err)
	variant := modellib.Variant{Kernels: "software", Sort: "partial"}
	built, err := modellib.Build(t.Context(), modellib.FindTools(cachedir.Dir(os.Getenv), os.Getenv), shape, variant,
		func(s string) { t.Log(s) })
	check.Err(t, err)
	lib, err := OpenLibrary(built.Path)
	check.Err(t, err)
	if lib.Own == nil || lib.Own.Variant != variant || !containsAll(lib.Imports, OwnImports()) ||
		lib.MemoryUsage["prefill"] == 0 {
		t.Errorf("%+v", lib)
	}
	have, err := Params(f, options)
	check.Err(t, err)
	check.Also(t, lib.Matches(have, shape))
	for want, change := range map[string]func(l *Library, s *modellib.Shape){
		"qwen2": func(_ *Library, s *modellib.Shape) { s.ModelType = "qwen2" },
		"model.norm.weight as float32 [127],": func(l *Library, _ *modellib.Shape) {
			l.Params = with(l.Params, "model.norm.weight", Param{"model.norm.weight", Dims{127}, "float32"})
		},
		"model.embed_tokens.q_weight": func(l *Library, _ *modellib.Shape) {
			l.Params = with(l.Params, "model.embed_tokens.weight",
				Param{"model.embed_tokens.q_weight", Dims{512, 16}, "uint32"})
		},
		"which the library does not have":            func(l *Library, _ *modellib.Shape) { l.Params = l.Params[1:] },
		"context window is 1024, but 2048 is needed": func(_ *Library, s *modellib.Shape) { s.ContextWindowSize = 2048 },
		"num_key_value_heads is 2 in the library, 4": func(_ *Library, s *modellib.Shape) { s.NumKeyValueHeads = 4 },
		"rope_theta is 10000 in the library, 500000 in the model": func(_ *Library, s *modellib.Shape) {
			s.RopeTheta = 500000
		},
		"the sliding window is none in the library, 8 tokens in the model": func(_ *Library, s *modellib.Shape) {
			s.SlidingWindowSize = 8
		},
		"rope_factors differ at number 3: 1 in the library, 2 in the model": func(l *Library, s *modellib.Shape) {
			l.Own = ownWith(l, func(s *modellib.Shape) { s.RopeFactors = slices.Repeat([]float64{1}, 16) })
			s.RopeFactors = append([]float64{1, 1}, slices.Repeat([]float64{2}, 14)...)
		},
		"is 0 in the library": func(l *Library, _ *modellib.Shape) {
			l.Own = &Own{Variant: l.Own.Variant}
		},
		"its prefill chunk of 2048 tokens": func(l *Library, _ *modellib.Shape) { l.PrefillChunkSize = 2048 },
		"the sliding window is 16 tokens": func(l *Library, _ *modellib.Shape) {
			l.Own, l.SlidingWindowSize = nil, 16
		},
	} {
		l, s := lib, shape
		change(&l, &s)
		if err := l.Matches(have, s); fault.Of(err) != fault.BadLibrary ||
			!strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want a line with %q", err, want)
		}
	}
	// A shorter context is supported. A window as long as the context has no effect.
	for _, change := range []func(l *Library, s *modellib.Shape){
		func(_ *Library, s *modellib.Shape) { s.ContextWindowSize, s.PrefillChunkSize = 64, 64 },
		func(l *Library, s *modellib.Shape) {
			l.Own = ownWith(l, func(s *modellib.Shape) { s.SlidingWindowSize = 100 })
			s.ContextWindowSize = 100
		},
	} {
		l, s := lib, shape
		change(&l, &s)
		check.Also(t, l.Matches(have, s))
	}
	// MLC's libraries accept any vocabulary size.
	l := lib
	l.Params = with(l.Params, "model.embed_tokens.weight",
		Param{"model.embed_tokens.weight", Dims{AnyDim, 128}, "float32"})
	check.Also(t, l.Matches(have, shape))
}

// ownWith returns a library's description with a change.
func ownWith(l *Library, change func(*modellib.Shape)) *Own {
	s := l.Own.Shape
	change(&s)
	return &Own{l.Own.Variant, s}
}

// The first difference between a library and a package is named.
func TestLibraryAgainstPackage(t *testing.T) {
	p, err := OpenPackage(smallPackage(t))
	check.Err(t, err)
	s := p.Shape
	own := s
	own.ContextWindowSize = 256
	lib := Library{Metadata: Metadata{ModelType: "llama", Quantization: "q0f32", Params: p.Params(),
		PrefillChunkSize: 128, Own: &Own{Shape: own}}}
	lib.KVCache = &KVShape{s.NumHiddenLayers, s.NumAttentionHeads, s.NumKeyValueHeads, s.HeadDim}
	check.Err(t, lib.MatchesPackage(p))
	foreign := func(l *Library, p *Existing) { l.Own, l.ContextWindowSize, l.SlidingWindowSize = nil, 256, -1 }
	for want, change := range map[string]func(l *Library, p *Existing){
		"q0f32 weights, the package has q4f16_1": func(_ *Library, p *Existing) { p.Quantization = "q4f16_1" },
		"its prefill chunk of -1 tokens":         func(l *Library, _ *Existing) { l.PrefillChunkSize = -1 },
		"intermediate_size is 256 in the library, 300 in the model": func(l *Library, p *Existing) {
			p.Whole, p.Shape.IntermediateSize = false, 300
		},
		"has a rotation without rope_factors, the model has": func(l *Library, p *Existing) {
			p.Whole, p.Scaled = false, true
		},
		"window is none in the library, 64 tokens in the model": func(l *Library, p *Existing) {
			foreign(l, p)
			p.RotatingWindow = 64
		},
	} {
		l, q := lib, p
		change(&l, &q)
		err := l.MatchesPackage(q)
		if fault.Of(err) != fault.BadLibrary || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want a line with %q", err, want)
		}
	}
	// MLC's packages have fewer fields; missing ones are not compared.
	p.Whole, p.Shape = false, modellib.Shape{ModelType: "llama", HiddenSize: s.HiddenSize}
	check.Err(t, lib.MatchesPackage(p))
}

// A model's own window is not WebLLM's rotating window.
func TestPackageWindows(t *testing.T) {
	_, made := packageOf(t, tiny.Spec{Window: 8}, Options{ContextWindow: 64})
	p, err := OpenPackage(made.Dir)
	if err != nil || p.RotatingWindow != -1 || p.Shape.SlidingWindowSize != 8 || p.Longest() != 64 {
		t.Errorf("windows of %d and %d, a context of %d (%v); want -1, 8 and 64", p.RotatingWindow,
			p.Shape.SlidingWindowSize, p.Longest(), err)
	}
	if p.Shape.ContextWindowSize, p.RotatingWindow = -1, 4096; p.Longest() != 4096 {
		t.Errorf("a rotating window of 4096 is a context of %d", p.Longest())
	}
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

func with(params []Param, name string, p Param) []Param {
	out := slices.Clone(params)
	out[slices.IndexFunc(out, func(p Param) bool { return p.Name == name })] = p
	return out
}

func FuzzLibrary(f *testing.F) {
	f.Add([]byte(wasmWith(mlcMetadata)))
	f.Add([]byte(wasmWith("", strings.Repeat(`{"model_type":`, 100), mlcMetadata)))
	f.Add([]byte(wasmMagic + "\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, file []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		lib, err := parseLibrary(file)
		runtime.ReadMemStats(&after)
		// A length in the file must not cause large allocations. Decoded JSON is larger than its text.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20+uint64(len(file))*2000 {
			t.Errorf("%d bytes were allocated for a file of %d", grown, len(file))
		}
		if err == nil && (lib.ModelType == "" || len(lib.Params) == 0) {
			t.Errorf("a library without metadata: %+v", lib)
		}
	})
}
