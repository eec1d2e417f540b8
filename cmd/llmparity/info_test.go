package main

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/predict/inspect"
)

func infoOf(t *testing.T, args ...string) inspect.Info {
	t.Helper()
	return decoded[inspect.Info](t, good(t, append([]string{"model", "info", "--json"}, args...)...))
}

// A GGUF, its package and its model library are described alike.
func TestInfoDescribesModel(t *testing.T) {
	browserTest(t)
	cmd := program(t, "model", "tiny", "-o", "model")
	well(t, cmd)
	dir := filepath.Join(cmd.Dir, "model")
	file, folder, library := infoOf(t, filepath.Join(dir, "tiny.gguf")), infoOf(t, filepath.Join(dir, "webllm")),
		infoOf(t, filepath.Join(dir, "webllm", "lib.wasm"))
	// Two layers with two heads of 32 for keys and two for values; pages of 16 tokens for the whole context, and one
	// more.
	const perToken = 2 * 2 * 2 * 32
	for _, i := range []inspect.Info{file, folder, library} {
		if i.KV == nil || i.KV.PerTokenF32 != 4*perToken || i.KV.PerTokenF16 != 2*perToken ||
			i.KV.ReservedF32 != 4*perToken*16*(1024/16+1) || i.KV.ReservedF16 != i.KV.ReservedF32/2 {
			t.Errorf("%s: KV cache %+v", i.Kind, i.KV)
		}
		if i.Parameters != 426624 || i.Layers != 2 || i.KVHeads != 2 || i.Context != 1024 || i.Architecture != "llama" {
			t.Errorf("%+v", i)
		}
		if i.Kind == "model-library" {
			continue
		}
		var parts int64
		for part, types := range i.BytesByComponent {
			for _, bytes := range types {
				parts += bytes
			}
			if part == "other" {
				t.Errorf("%s: %v belongs to no part", i.Kind, types)
			}
		}
		if parts != 4*426624 || i.WeightsB != parts {
			t.Errorf("%s: parts of %d bytes, want %d", i.Kind, parts, 4*426624)
		}
	}
	if file.BytesByComponent["attention"]["f32"] != folder.BytesByComponent["attention"]["float32"] ||
		file.BytesByComponent["norms"]["f32"] != 5*128*4 {
		t.Errorf("%v and %v", file.BytesByComponent, folder.BytesByComponent)
	}
	if file.SHA256 != tiny.SHA256 || file.BytesByType["f32"] != 4*426624 ||
		!strings.Contains(file.Tokenizer, "gpt-2") ||
		file.ChatTemplate != "chatml" || folder.Quantization != "q0f32" {
		t.Errorf("%+v", file)
	}
	if library.Library.MemoryUsage["prefill"] == 0 || library.Library.PrefillChunk != 128 ||
		!strings.HasPrefix(library.Library.Origin, "llmparity's (software kernels, partial sort)") {
		t.Errorf("%+v", library.Library)
	}
	for _, c := range []struct {
		got  inspect.Ability
		want string
	}{
		{file.Engines["webllm"], "f16 if the WebGPU adapter has shader-f16"},
		{file.Engines["llamacpp"], "uses the file as it is, in f32"},
		{folder.Engines["llamacpp"], "as a GGUF, F32, same weights, bit for bit"},
		{folder.Engines["webllm"], "which fits"}, {library.Engines["webllm"], "--dtype f32"},
	} {
		if c.got.Cannot != "" || !strings.Contains(c.got.Can, c.want) {
			t.Errorf("%+v, want it to be able to %q", c.got, c.want)
		}
	}
	if library.Engines["llamacpp"].Cannot == "" {
		t.Error("llama.cpp runs what is no GGUF")
	}
	put(t, dir, "webllm/another.wasm", "\x00asm")
	can := infoOf(t, filepath.Join(dir, "webllm")).Engines["webllm"].Can
	mentions(t, can, "another.wasm (does not fit), lib.wasm (fits)")
	mentions(t, good(t, "model", "info", filepath.Join(dir, "webllm", "lib.wasm")), "  prefill ",
		"model library for WebLLM")
}

// A model of the catalogue is described by its id, without a download.
func TestInfoTakesCatalogueIDs(t *testing.T) {
	lightTest(t)
	t.Setenv("LLMPARITY_CACHE", t.TempDir())
	i := infoOf(t, "Llama-3.2-1B-Instruct-q4f16_1-MLC")
	if i.Name != "Llama-3.2-1B-Instruct-q4f16_1-MLC" || i.Context != 4096 || len(i.Notes) == 0 {
		t.Errorf("%+v", i)
	}
	mentions(t, i.Engines["webllm"].Can, "downloads and runs it", "shader-f16")
	if cannot := infoOf(t, "snowflake-arctic-embed-s-q0f32-MLC-b4").Engines["webllm"].Cannot; cannot == "" {
		t.Error("an embedding model is said to run")
	}
}

// Ollama refuses or crashes on some files of these architectures, so only a run tells.
func TestInfoLeavesToOllamaWhatOnlyItKnows(t *testing.T) {
	lightTest(t)
	for arch, known := range map[string]bool{"llama": true, gguf.Phi3: false, gguf.Gemma3: false} {
		path := filepath.Join(t.TempDir(), arch+".gguf")
		check(t, tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Architecture: arch}))
		e := infoOf(t, path).Engines["ollama"]
		if (e.Can != "") != known || (e.Unknown != "") == known || e.Cannot != "" {
			t.Errorf("%s: %+v", arch, e)
		}
	}
}
