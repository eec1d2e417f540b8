package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"llmparity/internal/fit"
	"llmparity/internal/mlc"
	"llmparity/internal/schematest"
	"llmparity/internal/tiny"
)

// answerTo returns the first line of an estimate.
func answerTo(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := called(append([]string{"estimate"}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("%v: exit code %d, %s", args, code, errs)
	}
	line, _, _ := strings.Cut(out, "\n")
	return line
}

// ~ stands for a size that follows from fitted rules, which change now and then.
func TestEstimateAnswersFirst(t *testing.T) {
	t.Setenv("LLMPARITY_CACHE", t.TempDir())
	llama := filepath.Join(configs, "llama-3.1-8b.json")
	const small, half = "Llama-3.2-1B-Instruct-q4f32_1-MLC", "Llama-3.2-1B-Instruct-q4f16_1-MLC"
	const byHand = "--model-params 8e9 --num-layers 32 --num-heads 32 --num-kv-heads 8 --hidden-size 4096 --head-dim 128 --engine webllm"
	for _, c := range []struct{ args, want string }{
		// A model by name, in every engine.
		{"tiny --ram-gb 1", "fits: needs about 22.7 MiB, 1 GiB available"},
		{"tiny --engine webllm --adapter swiftshader --ram-gb 1", "fits: needs about ~, 1 GiB available"},
		{"tiny --engine webllm --adapter swiftshader --ram-gb 0.25",
			"does not fit: needs about 4~, 256 MiB available"},
		{"tiny --engine ollama --ram-gb 1", "fits: needs about 72.1 MiB, 1 GiB available"},
		{"tiny --engine transformers --ram-gb 1",
			"fits: needs about 621 MiB, 1 GiB available; tight: may need up to 1.21 GiB"},
		{"tiny --engine transformers --ram-gb 4", "fits: needs about 621 MiB, 4 GiB available"},
		{"tiny --engine vllm --gpu-memory-gb 2",
			"fits: needs about 940.7 MiB, 1.8 GiB of GPU memory available; tight: may need up to 2.29 GiB"},
		// 8 billion parameters, 4 bits.
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 8", "fits: needs about 5 GiB, 8 GiB available"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 4",
			"does not fit: needs about 5 GiB, 4 GiB available"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 5.1",
			"does not fit: needs about 5 GiB, 5.1 GiB available; a run keeps 5% free"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 4 --gpu-layers 32 --gpu-memory-gb 8",
			"fits: needs about 5 GiB, 8 GiB of GPU memory available"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 4 --gpu-layers 32 --gpu-memory-gb 4",
			"does not fit: needs about 5 GiB, 4 GiB of GPU memory available"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 1 --gpu-layers 16 --gpu-memory-gb 4",
			"does not fit: needs about 2.5 GiB, 1 GiB available"},
		{llama + " --engine ollama --quantization q4_0 --ram-gb 4 --gpu-memory-gb 4",
			"fits: needs about 3.1 GiB, 4 GiB of GPU memory available"},
		{llama + " --engine ollama --quantization q4_0 --ram-gb 1 --gpu-memory-gb 4",
			"does not fit: needs about 1.9 GiB, 1 GiB available"},
		{llama + " --engine ollama --quantization q4_0 --ram-gb 8 --gpu-memory-gb 0.1",
			"fits: needs about 5.1 GiB, 8 GiB available"},
		{llama + " --engine transformers --quantization nf4 --gpu-memory-gb 24",
			"fits: needs about 7.1 GiB, 24 GiB of GPU memory available"},
		{llama + " --engine vllm --gpu-memory-gb 24",
			"fits: needs about 17.4 GiB, 21.6 GiB of GPU memory available"},
		{llama + " --engine vllm --gpu-memory-gb 16",
			"does not fit: needs about 17.4 GiB, 14.4 GiB of GPU memory available"},
		{llama + " --engine vllm --gpu-memory-gb 16 --tensor-parallel-size 2",
			"fits: needs about 19 GiB, 28.8 GiB of GPU memory available"},
		// WebLLM dequantises a GGUF and keeps an MLC package. The embedding is 128256 × 4096.
		{llama + " --engine webllm --quantization q4_0 --adapter swiftshader --ram-gb 16",
			"does not fit: needs about 3~, 16 GiB available"},
		{llama + " --engine webllm --quantization q4_0 --adapter swiftshader --ram-gb 64",
			"does not fit: the largest tensor needs a WebGPU buffer of 2 GiB; the limit is 1 GiB"},
		{llama + " --engine webllm --quantization q4_0 --dtype f16 --gpu-memory-gb 24",
			"fits: needs about 15.5 GiB, 24 GiB of GPU memory available"},
		{llama + " --engine webllm --quantization q4_0 --dtype f16 --adapter swiftshader --ram-gb 64",
			"cannot run here: needs f16, and SwiftShader has no shader-f16"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8",
			"fits: needs about 4.7 GiB, 8 GiB of GPU memory available"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --ram-gb 0.5",
			"does not fit: needs about ~, ~ available"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --no-shader-f16",
			"cannot run here: needs f16, and the adapter has no shader-f16"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --max-binding-mb 256",
			"does not fit: the largest tensor needs a WebGPU buffer of 281.8 MiB; the limit is 128 MiB"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --max-buffer-mb 512",
			"does not fit: the largest tensor needs a WebGPU buffer of 281.8 MiB; the limit is 256 MiB"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --max-buffer-mb 100",
			"does not fit: with --max-buffer-mb and --max-binding-mb: maxBufferSize is 104857600 and " +
				"maxStorageBufferBindingSize is 1073741824; WebLLM does not start with these limits"},
		// The same from sizes only.
		{byHand + " --quantization q4_0 --adapter swiftshader --ram-gb 16",
			"does not fit: needs about 3~, 16 GiB available"},
		{byHand + " --quantization q4f32_1 --adapter swiftshader --ram-gb 16",
			"fits: needs about ~, 16 GiB available"},
		{byHand + " --quantization q4f32_1 --gpu-memory-gb 8",
			"fits: needs about 5.7 GiB, 8 GiB of GPU memory available"},
		// The catalogue states 1128.82 and 879.04 MB for 4096 tokens.
		{small + " --adapter swiftshader --ram-gb 4", "fits: needs about ~, 4 GiB available"},
		{small + " --adapter swiftshader --ram-gb 1", "does not fit: needs about ~, 1 GiB available"},
		{small + " --adapter swiftshader --ram-gb 4 --context 8192",
			"unknown: WebLLM's catalogue states 1.10 GiB for a context of 4096 tokens; 8192 need more"},
		{half + " --adapter swiftshader --ram-gb 4",
			"cannot run here: needs f16, and SwiftShader has no shader-f16"},
		{half + " --gpu-memory-gb 4", "fits: needs about 879 MiB, 4 GiB of GPU memory available"},
		{half + " --gpu-memory-gb 0.5", "does not fit: needs about 879 MiB, 512 MiB of GPU memory available"},
	} {
		like := strings.ReplaceAll(regexp.QuoteMeta(c.want), "~", "[0-9.]+( [MG]iB)?")
		if got := answerTo(t, strings.Fields(c.args)...); !regexp.MustCompile("^" + like + "$").MatchString(got) {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}

func TestEstimateOfUnconvertibleGGUF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strange.gguf")
	check(t, tiny.WriteFile(path))
	text, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "llama", "alpac")), 0o600))
	args := []string{path, "--engine", "webllm", "--adapter", "swiftshader", "--ram-gb", "4"}
	if line := answerTo(t, args...); !strings.HasPrefix(line, "cannot run here: WebLLM cannot run it: ") ||
		!strings.Contains(line, "alpac") {
		t.Error(line)
	}
}

// The lists of a package replace what the catalogue states.
func TestEstimateOfCatalogueModel(t *testing.T) {
	own := t.TempDir()
	t.Setenv("LLMPARITY_CACHE", own)
	const id = "SmolLM2-135M-Instruct-q0f32-MLC"
	gguf, mirror := filepath.Join(t.TempDir(), "tiny.gguf"), t.TempDir()
	check(t, tiny.WriteFile(gguf))
	place := filepath.Join(mirror, "mlc-ai", id, "resolve", "main")
	if _, err := mlc.Write(t.Context(), gguf, place, mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	estimated := func(args ...string) (j fit.Document) {
		t.Helper()
		out, errs, code := called(append(
			[]string{"estimate", id, "--adapter", "swiftshader", "--ram-gb", "4", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v, %s", code, err, errs)
		}
		schematest.Valid(t, "estimate", []byte(out))
		return j
	}
	weights := func(j fit.Document) int64 {
		for _, c := range j.Components {
			if c.Name == "model_weights" {
				return c.Best
			}
		}
		return 0
	}
	says := func(j fit.Document, text string) {
		t.Helper()
		if !strings.Contains(strings.Join(j.Warnings, "\n"), text) {
			t.Errorf("%q is missing: %q", text, j.Warnings)
		}
	}
	stated := estimated()
	if weights(stated) != 0 || stated.Fits == nil || !*stated.Fits || *stated.Available != 4<<30 ||
		*stated.Spare <= 0 || stated.Model.Context != 4096 {
		t.Errorf("%+v", stated)
	}
	says(stated, "WebLLM's catalogue")
	from := estimated("--mirror", mirror, "--context", "512")
	if weights(from) != 4*426624 || from.Model.Context != 512 || *from.Spare <= *stated.Spare {
		t.Errorf("%+v", from)
	}
	says(from, "the package's lists at "+mirror)
	if without := estimated("--mirror", t.TempDir()); *without.Spare != *stated.Spare {
		t.Errorf("empty mirror: %+v", without)
	}
	// An interrupted download has the lists, or only the configuration.
	work := filepath.Join(own, "models", "webllm", ".fetching-"+id)
	check(t, os.CopyFS(work, os.DirFS(place)))
	cut := estimated("--context", "512")
	if weights(cut) != 4*426624 {
		t.Errorf("%+v", cut)
	}
	says(cut, "lists in the store")
	check(t, os.Remove(filepath.Join(work, "tensor-cache.json")))
	if alone := estimated("--context", "512"); weights(alone) != 4*426624 {
		t.Errorf("from the configuration: %d bytes", weights(alone))
	}
}

func TestEstimateAnswersInJSON(t *testing.T) {
	model := filepath.Join(configs, "llama-3.1-8b.json")
	for args, want := range map[string]string{
		"--engine llamacpp --quantization q4_0 --ram-gb 8":             "true",
		"--engine llamacpp --quantization q4_0 --ram-gb 4":             "false needs about 5 GiB, 4 GiB available",
		"--engine webllm --quantization q4f16_1 --adapter swiftshader": "false needs f16, and SwiftShader has no shader-f16",
	} {
		out, errs, code := called(append([]string{"estimate", model, "--json"}, strings.Fields(args)...)...)
		var j struct {
			Fits      *bool
			Available int64 `json:"available_bytes"`
			Spare     int64 `json:"spare_bytes"`
			Reason    string
		}
		if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
			t.Fatalf("%s: exit code %d, %v, %s", args, code, err, errs)
		}
		fits, reason, _ := strings.Cut(want, " ")
		if j.Fits == nil || *j.Fits != (fits == "true") || j.Reason != reason || j.Available <= 0 ||
			(j.Spare > 0) != (fits == "true") &&
				!strings.Contains(reason, "f16") {
			t.Errorf("%s: %+v, want %s", args, j, want)
		}
	}
}
