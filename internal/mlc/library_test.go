package mlc

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cachedir "llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
	"llmparity/internal/tiny"
)

// mlcMetadata is what a library of MLC's says of itself, cut short.
const mlcMetadata = `{"model_type": "llama", "quantization": "q0f32", "context_window_size": 2048, "sliding_window_size": -1, "prefill_chunk_size": 1024, "kv_state_kind": "kv_cache", "params": [{"name": "model.embed_tokens.weight", "shape": ["vocab_size", 128], "dtype": "float32", "preprocs": []}], "memory_usage": {"decode": 2560}}`

func section(id byte, body string) string {
	return string(binary.AppendUvarint([]byte{id}, uint64(len(body)))) + body
}

func named(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

// wasmWith is a module with an import, an export, and these data segments.
func wasmWith(segments ...string) string {
	data := string(binary.AppendUvarint(nil, uint64(len(segments))))
	for i, s := range segments {
		switch i % 3 {
		case 0:
			data += "\x00\x41\x80\x08\x0b" // at i32.const 1024
		case 1:
			data += "\x01" // passive
		case 2:
			data += "\x02\x00\x23\x01\x41\x08\x6a\x0b" // in memory 0, at global 1 plus 8
		}
		data += named(s)
	}
	imports := "\x03" + named("env") + named("TVMFFIWasmSafeCall") + "\x00\x05" + named("env") + named("memory") + "\x02\x01\x01\x80\x02" + named("env") + named("base") + "\x03\x7f\x00"
	return wasmMagic + section(0, named("name")+"junk") + section(sectionImport, imports) +
		section(sectionExport, "\x02"+named("_start")+"\x00\x07"+named("memory")+"\x02\x00") + section(sectionData, data)
}

func TestMetadataIsFoundInAnySegment(t *testing.T) {
	decoy := `{"model_type": 7, {"model_type": "other"}`
	for n := range 3 {
		segments := slices.Repeat([]string{"nothing " + decoy}, n)
		lib, err := parseLibrary([]byte(wasmWith(append(segments, "\x00\x17{\x00"+mlcMetadata+"\x00{}")...)))
		if err != nil {
			t.Fatalf("segment %d: %v", n, err)
		}
		if lib.ModelType != "llama" || lib.MemoryUsage["decode"] != 2560 || lib.Variant != nil || lib.Params[0].Shape.String() != "[any, 128]" ||
			!slices.Equal(lib.Imports, []string{"TVMFFIWasmSafeCall"}) || !slices.Equal(lib.Exports, []string{"_start"}) {
			t.Errorf("segment %d: %+v", n, lib)
		}
	}
}

func TestWhatIsNoLibraryIsRefused(t *testing.T) {
	whole := wasmWith(mlcMetadata)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty.wasm": "", "text.wasm": "<!doctype html>", "short.wasm": whole[:len(whole)-10], "other.wasm": wasmWith("a module of something else"),
		"huge.wasm":  wasmMagic + "\x0b\xff\xff\xff\xff\x0f",
		"count.wasm": wasmMagic + section(sectionData, "\xff\xff\xff\xff\x0f"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLibrary(path); fault.Code(err) != int(fault.BadLibrary) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing.wasm")} {
		if _, err := OpenLibrary(path); fault.Code(err) != int(fault.BadLibrary) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The library that is compiled for a model says of itself what the model has.
func TestOwnLibraryMatchesItsModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	options := Options{ContextWindow: 1024, PrefillChunk: 128}
	shape, err := Shape(f, options)
	if err != nil {
		t.Fatal(err)
	}
	variant := modellib.Variant{Kernels: "software", Sort: "partial"}
	built, err := modellib.Build(t.Context(), modellib.FindTools(cachedir.Dir(os.Getenv), os.Getenv), shape, variant, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	lib, err := OpenLibrary(built.Path)
	if err != nil {
		t.Fatal(err)
	}
	if lib.Variant == nil || *lib.Variant != variant || !containsAll(lib.Imports, OwnImports()) || lib.MemoryUsage["prefill"] == 0 {
		t.Errorf("%+v", lib)
	}
	have, err := Params(f, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := lib.Matches(have, shape); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(l *Library, s *modellib.Shape){
		"qwen2": func(_ *Library, s *modellib.Shape) { s.ModelType = "qwen2" },
		"model.norm.weight as float32 [127],": func(l *Library, _ *modellib.Shape) {
			l.Params = with(l.Params, "model.norm.weight", Param{"model.norm.weight", Dims{127}, "float32"})
		},
		"float16 [128]": func(l *Library, _ *modellib.Shape) {
			l.Params = with(l.Params, "model.norm.weight", Param{"model.norm.weight", Dims{128}, "float16"})
		},
		"model.embed_tokens.q_weight": func(l *Library, _ *modellib.Shape) {
			l.Params = with(l.Params, "model.embed_tokens.weight", Param{"model.embed_tokens.q_weight", Dims{512, 16}, "uint32"})
		},
		"which the library doesn't know":        func(l *Library, _ *modellib.Shape) { l.Params = l.Params[1:] },
		"context window is 1024, 2048 is asked": func(_ *Library, s *modellib.Shape) { s.ContextWindowSize = 2048 },
		"a KV cache of 2 layers":                func(_ *Library, s *modellib.Shape) { s.NumKeyValueHeads = 4 },
	} {
		l, s := lib, shape
		change(&l, &s)
		if err := l.Matches(have, s); fault.Code(err) != int(fault.BadLibrary) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want a line with %q", err, want)
		}
	}
	// MLC's leave the vocabulary's size open.
	l := lib
	l.Params = with(l.Params, "model.embed_tokens.weight", Param{"model.embed_tokens.weight", Dims{AnyDim, 128}, "float32"})
	if err := l.Matches(have, shape); err != nil {
		t.Error(err)
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
		// JSON's own values are larger than their text; what no length in the file may do is to make much of little.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20+uint64(len(file))*2000 {
			t.Errorf("%d bytes were allocated for a file of %d", grown, len(file))
		}
		if err == nil && (lib.ModelType == "" || len(lib.Params) == 0) {
			t.Errorf("a library that says nothing: %+v", lib)
		}
	})
}
