package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/fit"
	"llmparity/internal/mlc"
	"llmparity/internal/schematest"
	"llmparity/internal/tiny"
)

// answerTo is what estimate says first, of a call that must succeed.
func answerTo(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := called(append([]string{"estimate"}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("%v: exit code %d, %s", args, code, errs)
	}
	line, _, _ := strings.Cut(out, "\n")
	return line
}

// What WebLLM takes of the machine's memory is a rule that is fitted anew now and then: ~ stands for its digits.
func TestEstimateAnswersFirst(t *testing.T) {
	t.Setenv("LLMPARITY_CACHE", t.TempDir())
	llama := filepath.Join(configs, "llama-3.1-8b.json")
	const small, half = "Llama-3.2-1B-Instruct-q4f32_1-MLC", "Llama-3.2-1B-Instruct-q4f16_1-MLC"
	const byHand = "--model-params 8e9 --num-layers 32 --num-heads 32 --num-kv-heads 8 --hidden-size 4096 --head-dim 128 --engine webllm"
	for _, c := range []struct{ args, want string }{
		// A model's name, in every engine.
		{"tiny --ram-gb 1", "fits: yes, 0.98 GiB spare of 1"},
		{"tiny --engine webllm --adapter swiftshader --ram-gb 1", "fits: yes, ~ GiB spare of 1"},
		{"tiny --engine webllm --adapter swiftshader --ram-gb 0.25", "no: needs about 4~ MiB, 256 available"},
		{"tiny --engine ollama --ram-gb 1", "fits: yes, 0.9 GiB spare of 1"},
		{"tiny --engine transformers --ram-gb 1", "fits: yes, 0.4 GiB spare of 1; tight: it may take up to 1.21 GiB"},
		{"tiny --engine transformers --ram-gb 4", "fits: yes, 3.4 GiB spare of 4"},
		{"tiny --engine vllm --gpu-memory-gb 2",
			"fits: yes, 0.9 GiB spare of 1.8 (GPU memory); tight: it may take up to 2.29 GiB"},
		// 8 billion parameters in four bits.
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 8", "fits: yes, 3 GiB spare of 8"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 4", "no: needs about 5 GiB, 4 available"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 5.1",
			"no: needs about 5 GiB of 5.1, and a run leaves 5% free"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 4 --gpu-layers 32 --gpu-memory-gb 8",
			"fits: yes, 3 GiB spare of 8 (GPU memory)"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 4 --gpu-layers 32 --gpu-memory-gb 4",
			"no: needs about 5 GiB of GPU memory, 4 available"},
		{llama + " --engine llamacpp --quantization q4_0 --ram-gb 1 --gpu-layers 16 --gpu-memory-gb 4",
			"no: needs about 2.5 GiB, 1 available"},
		{llama + " --engine ollama --quantization q4_0 --ram-gb 4 --gpu-memory-gb 4",
			"fits: yes, 0.9 GiB spare of 4 (GPU memory)"},
		{llama + " --engine ollama --quantization q4_0 --ram-gb 1 --gpu-memory-gb 4",
			"no: needs about 1.9 GiB, 1 available"},
		{llama + " --engine ollama --quantization q4_0 --ram-gb 8 --gpu-memory-gb 0.1",
			"fits: yes, 2.9 GiB spare of 8"},
		{llama + " --engine transformers --quantization nf4 --gpu-memory-gb 24",
			"fits: yes, 16.9 GiB spare of 24 (GPU memory)"},
		{llama + " --engine vllm --gpu-memory-gb 24", "fits: yes, 4.2 GiB spare of 21.6 (GPU memory)"},
		{llama + " --engine vllm --gpu-memory-gb 16", "no: needs about 17.4 GiB of GPU memory, 14.4 available"},
		{llama + " --engine vllm --gpu-memory-gb 16 --tensor-parallel-size 2",
			"fits: yes, 9.8 GiB spare of 28.8 (GPU memory)"},
		// WebLLM dequantises a GGUF; an MLC package stays as it is. The embedding is 128256 × 4096.
		{llama + " --engine webllm --quantization q4_0 --adapter swiftshader --ram-gb 16",
			"no: needs about 3~ GiB, 16 available"},
		{llama + " --engine webllm --quantization q4_0 --adapter swiftshader --ram-gb 64",
			"no: the largest tensor needs a WebGPU buffer of 2 GiB, the largest is 1"},
		{llama + " --engine webllm --quantization q4_0 --dtype f16 --gpu-memory-gb 24",
			"fits: yes, 8.5 GiB spare of 24 (GPU memory)"},
		{llama + " --engine webllm --quantization q4_0 --dtype f16 --adapter swiftshader --ram-gb 64",
			"no: needs f16, and SwiftShader has no shader-f16"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8",
			"fits: yes, 3.3 GiB spare of 8 (GPU memory)"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --ram-gb 0.5",
			"no: needs about ~, ~ available"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --no-shader-f16",
			"no: needs f16, and the adapter has no shader-f16"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --max-binding-mb 256",
			"no: the largest tensor needs a WebGPU buffer of 281.8 MiB, the largest is 128"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --max-buffer-mb 512",
			"no: the largest tensor needs a WebGPU buffer of 281.8 MiB, the largest is 256"},
		{llama + " --engine webllm --quantization q4f16_1 --gpu-memory-gb 8 --max-buffer-mb 100",
			"no: by --max-buffer-mb and --max-binding-mb: the adapter's maxBufferSize is 104857600 and its " +
				"maxStorageBufferBindingSize 1073741824, with which WebLLM does not start"},
		// The same by numbers alone, of which no table is known.
		{byHand + " --quantization q4_0 --adapter swiftshader --ram-gb 16", "no: needs about 3~ GiB, 16 available"},
		{byHand + " --quantization q4f32_1 --adapter swiftshader --ram-gb 16", "fits: yes, ~ GiB spare of 16"},
		{byHand + " --quantization q4f32_1 --gpu-memory-gb 8", "fits: yes, 2.3 GiB spare of 8 (GPU memory)"},
		// The catalogue, by what it states: 1128.82 and 879.04 MB for 4096 tokens.
		{small + " --adapter swiftshader --ram-gb 4", "fits: yes, ~ GiB spare of 4"},
		{small + " --adapter swiftshader --ram-gb 1", "no: needs about ~ GiB, 1 available"},
		{small + " --adapter swiftshader --ram-gb 4 --context 8192",
			"unknown: WebLLM's catalogue states 1.10 GiB for a context of 4096 tokens, and 8192 need more"},
		{half + " --adapter swiftshader --ram-gb 4", "no: needs f16, and SwiftShader has no shader-f16"},
		{half + " --gpu-memory-gb 4", "fits: yes, 3.1 GiB spare of 4 (GPU memory)"},
		{half + " --gpu-memory-gb 0.5", "no: needs about 879 MiB of GPU memory, 512 available"},
	} {
		like := strings.ReplaceAll(regexp.QuoteMeta(c.want), "~", "[0-9.]+( [MG]iB)?")
		if got := answerTo(t, strings.Fields(c.args)...); !regexp.MustCompile("^" + like + "$").MatchString(got) {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}

// A flag that would change nothing in an engine is refused.
func TestEstimateRefusesFlagsThatChangeNothing(t *testing.T) {
	model := filepath.Join(configs, "llama-3.1-8b.json")
	for args, says := range map[string]string{
		"--engine llamacpp --gpu-memory-gb 8":                       "llama.cpp puts no layers on a GPU; give --gpu-layers",
		"--engine webllm --gpu-memory-gb 8 --adapter swiftshader":   "everything lies in the machine's memory",
		"--engine vllm --ram-gb 8":                                  "--ram-gb changes nothing here: vllm",
		"--engine transformers --ram-gb 8 --gpu-memory-gb 8":        "--ram-gb changes nothing here: with --gpu-memory-gb",
		"--engine llamacpp --max-buffer-mb 128":                     "llamacpp has no WebGPU buffers",
		"--engine ollama --max-binding-mb 128":                      "ollama has no WebGPU buffers",
		"--engine vllm --adapter gpu":                               "vllm has no WebGPU",
		"--engine transformers --no-shader-f16":                     "transformers has no WebGPU",
		"--engine webllm --gpu-layers 8":                            "webllm does not divide a model",
		"--engine webllm --adapter radeon":                          "adapter \"radeon\"",
		"--engine webllm --quantization awq":                        "WebLLM runs no weights in awq",
		"--engine llamacpp --ram-gb nan":                            "--ram-gb is NaN",
		"--engine webllm --max-buffer-mb -1":                        "--max-buffer-mb is -1",
		"--engine llamacpp --gpu-layers -1":                         "--gpu-layers is -1",
		"--engine llamacpp --mirror .":                              "--mirror says where a model of WebLLM's catalogue",
		"--engine llamacpp --free-gb 8 --ram-gb 8":                  "give --ram-gb and --gpu-memory-gb",
		"--engine webllm --max-binding-mb 0":                        "--max-binding-mb is 0",
		"--engine llamacpp --gpu-memory-gb 8 --gpu-layers 0 --json": "--gpu-layers is 0",
	} {
		out, errs, code := called(append([]string{"estimate", model}, strings.Fields(args)...)...)
		if code != fault.Usage.ExitCode() || !strings.Contains(errs, says) || out != "" {
			t.Errorf("%s: exit code %d, %q, %q", args, code, out, errs)
		}
	}
	for args, says := range map[string]string{
		"served:llama3": "on a server", "Llama-3.2-1B-Instruct-q4f32_1-MLC --engine llamacpp": "runs no WebLLM packages",
		"Llama-3.2-1B-Instruct-q4f32_1-MLC --kv-cache-dtype f16": "dtypes of its own",
		"--model-params 1e9 --mirror . x":                        "leave one of them out",
	} {
		_, errs, code := called(append([]string{"estimate"}, strings.Fields(args)...)...)
		if code != fault.Usage.ExitCode() || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d, %q", args, code, errs)
		}
	}
	for _, id := range []string{"snowflake-arctic-embed-s-q0f32-MLC-b4", "Llama-3.2-1B-Instruct-q4f32"} {
		if _, errs, code := called("estimate", id); code != fault.UnknownModel.ExitCode() {
			t.Errorf("%s: exit code %d, %q", id, code, errs)
		}
	}
}

// A GGUF that WebLLM cannot convert is refused by a run, however small it is.
func TestEstimateOfGGUFWithoutWebLLM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strange.gguf")
	check(t, tiny.WriteFile(path))
	text, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "llama", "alpac")), 0o600))
	args := []string{path, "--engine", "webllm", "--adapter", "swiftshader", "--ram-gb", "4"}
	if line := answerTo(t, args...); !strings.HasPrefix(line, "no: WebLLM does not run it: ") ||
		!strings.Contains(line, "alpac") {
		t.Error(line)
	}
}

// Of a model of the catalogue the package's own lists say more than the catalogue, wherever they are.
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
			t.Errorf("%q is not said: %q", text, j.Warnings)
		}
	}
	stated := estimated()
	if weights(stated) != 0 || stated.Fits == nil || !*stated.Fits || *stated.Available != 4<<30 ||
		*stated.Spare <= 0 || stated.Model.Context != 4096 {
		t.Errorf("%+v", stated)
	}
	says(stated, "what WebLLM's catalogue states")
	from := estimated("--mirror", mirror, "--context", "512")
	if weights(from) != 4*426624 || from.Model.Context != 512 || *from.Spare <= *stated.Spare {
		t.Errorf("%+v", from)
	}
	says(from, "the package's lists at "+mirror)
	if without := estimated("--mirror", t.TempDir()); *without.Spare != *stated.Spare {
		t.Errorf("a mirror that has nothing: %+v", without)
	}
	// A download that was cut has the lists, and perhaps the settings alone.
	work := filepath.Join(own, "models", "webllm", ".fetching-"+id)
	check(t, os.CopyFS(work, os.DirFS(place)))
	cut := estimated("--context", "512")
	if weights(cut) != 4*426624 {
		t.Errorf("%+v", cut)
	}
	says(cut, "lists in the store")
	check(t, os.Remove(filepath.Join(work, "tensor-cache.json")))
	if alone := estimated("--context", "512"); weights(alone) != 4*426624 {
		t.Errorf("by the settings alone: %d bytes", weights(alone))
	}
}

// The answer in JSON: true, false, or null with the reason.
func TestEstimateAnswersInJSON(t *testing.T) {
	model := filepath.Join(configs, "llama-3.1-8b.json")
	for args, want := range map[string]string{
		"--engine llamacpp --quantization q4_0 --ram-gb 8":             "true",
		"--engine llamacpp --quantization q4_0 --ram-gb 4":             "false needs about 5 GiB, 4 available",
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
