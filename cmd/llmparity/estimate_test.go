package main

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/models"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/predict/fit"
	"llmparity/native/huggingface"
)

const configs = "../../internal/models/hfconfig/testdata"

func TestEstimateTable(t *testing.T) {
	lightTest(t)
	llama, llama3 := filepath.Join(configs, "llama-2-7b.json"), filepath.Join(configs, "llama-3.1-8b.json")
	for _, c := range []struct {
		args string
		want []string
	}{
		{llama + " --input-len 512 --output-len 512 --batch-size 8", []string{"llama-2-7b in transformers: context 1024"}},
		{filepath.Join(configs, "deepseek-v3.json") + " --engine vllm --gpu-memory-gb 141 --tensor-parallel-size 8 " +
			"--concurrency 64 --context 8192", []string{"8 devices", "several devices"}},
		{filepath.Join(configs, "gemma-2-9b.json") + " --quantization q4f16_1 --engine webllm", []string{"q4f16_1"}},
		{"tiny --context 2048 --ram-gb 8", []string{"maximum of 1024, context_length in the GGUF"}},
		{"--model-params 6.7e9 --num-layers 32 --num-heads 32 --hidden-size 4096 --head-dim 128", []string{"6.7 B"}},
		{llama + " --engine llamacpp --context 4096 --ram-gb 64 --details",
			[]string{"limit of each kind of memory:\n- ram: needs", "of 64.00 GiB (--ram-gb)", "KV cache, filled", "growth of"}},
		{llama + " --engine llamacpp --context 4096 --ram-gb 8", []string{"To need less memory:", "- weights in q4_k_m"}},
		{llama + " --engine vllm --context 4096 --gpu-memory-gb 80 --details",
			[]string{"vram: needs 16.14 GiB of 72.00 GiB (90% of --gpu-memory-gb"}},
		{llama3 + " --engine webllm --context 4096 --details",
			[]string{"wasm: needs 57.8 MiB of 4.00 GiB", "WebLLM before the load"}},
	} {
		out := good(t, append([]string{"estimate"}, strings.Fields(c.args)...)...)
		mentions(t, out, append(c.want, "weights", "KV cache", "activations", "engine itself", "total")...)
		for line := range strings.Lines(out) {
			if n := len([]rune(line)); n > 101 && !strings.Contains(line, "heads") {
				t.Errorf("%s: a line of %d columns: %s", c.args, n, line)
			}
		}
	}
	if browser.Auto.Software() {
		mentions(t, good(t, "estimate", "tiny", "--engine", "webllm"), "this machine has no GPU", "--gpu-memory-gb")
	}
}

// Several contexts give a row each, and nothing of one remains in the next.
func TestEstimateOfContexts(t *testing.T) {
	lightTest(t)
	config := filepath.Join(configs, "llama-2-7b.json")
	both := good(t, "estimate", config, config, "--engine", "webllm,llamacpp", "--context", "2048,512")
	if n := strings.Count(both, " in WebLLM, KV cache in f"); n != 2 {
		t.Errorf("%d blocks for two models in WebLLM:\n%s", n, both)
	}
	for _, engine := range []string{"webllm", "llamacpp"} {
		rows := good(t, "estimate", config, "--engine", engine, "--context", "2048,512")
		if head, _, _ := strings.Cut(rows, "\n"); strings.Count(both, head) != 2 {
			t.Errorf("%s: no %q among several engines:\n%s", engine, head, both)
		}
		for _, context := range []string{"2048", "512"} {
			alone, _, _ := strings.Cut(good(t, "estimate", config, "--engine", engine, "--context", context), "\n")
			answer, _, _ := strings.Cut(alone, ",") // what is free changes
			_, rest, _ := strings.Cut(rows, "\n"+context+" ")
			if row, _, _ := strings.Cut(rest, "\n"); !strings.Contains(row, answer) {
				t.Errorf("%s, %s: want %q in\n%s", engine, context, answer, rows)
			}
		}
	}
}

// Names follow memory profiles, and the components add up to the total.
func TestEstimateJSON(t *testing.T) {
	lightTest(t)
	for _, engine := range []string{"webllm", "llamacpp", "ollama", "vllm", "huggingface"} {
		out := good(t, "estimate", "tiny", "--engine", engine, "--json")
		schematest.Valid(t, "estimate", []byte(out))
		j := decoded[fit.Document](t, out)
		sum := 0.0
		for _, name := range []string{"model_weights_gb", "kv_cache_gb", "activations_gb", "framework_overhead_gb"} {
			v, ok := j.Breakdown[name].(float64)
			if !ok || v <= 0 {
				t.Errorf("%s: %s is %v", engine, name, j.Breakdown[name])
			}
			sum += v
		}
		if total, _ := j.Breakdown["total_gb"].(float64); total < sum-5e-6 || total > sum+5e-6 {
			t.Errorf("%s: parts of %g GiB, a total of %g", engine, sum, total)
		}
		if j.Schema != "2.0" || j.Model.Parameters != 426624 || j.Engine["engine_type"] != engine ||
			j.DTypes.Weights == "" || len(j.Components) < 6 {
			t.Errorf("%s: %s", engine, out)
		}
		levels, _ := j.Breakdown["confidence_levels"].(map[string]any)
		for _, part := range []string{"overall", "weights", "kv_cache", "activations", "overhead"} {
			if levels[part] == nil {
				t.Errorf("%s: no confidence for %s: %v", engine, part, levels)
			}
		}
	}
}

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

func TestEstimateAnswersFirst(t *testing.T) {
	lightTest(t)
	t.Setenv("LLMPARITY_CACHE", t.TempDir())
	for _, row := range tableOf(t, "estimates.txt", 2) {
		args := strings.ReplaceAll(row[0], "configs/", configs+"/")
		like := strings.ReplaceAll(regexp.QuoteMeta(row[1]), "~", "[0-9.]+( [MG]iB)?")
		if got := answerTo(t, strings.Fields(args)...); !regexp.MustCompile("^" + like + "$").MatchString(got) {
			t.Errorf("%s: %q, want %q", args, got, row[1])
		}
	}
}

// The lists of a package replace what the catalogue states.
func TestEstimateOfCatalogueModel(t *testing.T) {
	lightTest(t)
	own := t.TempDir()
	t.Setenv("LLMPARITY_CACHE", own)
	const id = "SmolLM2-135M-Instruct-q0f32-MLC"
	mirror := mirrored(t, id)
	estimated := func(args ...string) fit.Document {
		t.Helper()
		out := good(t, append([]string{"estimate", id, "--adapter", "swiftshader", "--ram-gb", "4", "--json"},
			args...)...)
		schematest.Valid(t, "estimate", []byte(out))
		return decoded[fit.Document](t, out)
	}
	weights := func(j fit.Document) (sum int64) {
		for _, c := range j.Components {
			if c.Name == "model_weights" {
				sum += c.Best
			}
		}
		return sum
	}
	stated := estimated()
	if weights(stated) != 0 || stated.Fits == nil || !*stated.Fits || *stated.Available != 4<<30 ||
		*stated.Spare <= 0 || stated.Model.Context != 4096 {
		t.Errorf("%+v", stated)
	}
	mentions(t, strings.Join(stated.Warnings, "\n"), "WebLLM's catalogue")
	from := estimated("--mirror", mirror, "--context", "512")
	if weights(from) != 4*426624 || from.Model.Context != 512 || *from.Spare <= *stated.Spare {
		t.Errorf("%+v", from)
	}
	mentions(t, strings.Join(from.Warnings, "\n"), "the package's lists at "+mirror)
	if without := estimated("--mirror", t.TempDir()); *without.Spare != *stated.Spare {
		t.Errorf("empty mirror: %+v", without)
	}
}

// An estimate without flags is of what a run starts, also if a KV cache dtype is asked for.
func TestEstimateIsOfWhatARunStarts(t *testing.T) {
	lightTest(t)
	known := 0
	for _, k := range kinds.All {
		if k.Memory == nil || k.Memory.Starts == nil {
			continue
		}
		for _, dtype := range []string{"", "f16", "q8_0"} {
			if dtype != "" && k.Name == huggingface.Name { // it has that of the weights
				continue
			}
			e := k.New(k.Name, k.Config(), engine.Settings{DType: "f32", KVDType: dtype})
			settler, ok := e.(engine.Settled)
			if !ok {
				t.Fatalf("%s does not say what it would be started with", k.Name)
			}
			run, estimated := estimate.Setup{Engine: k.Memory}, estimate.Setup{}
			run.Take(settler.Settings(models.Model{}))
			estimated.Engine, estimated.KVDType = k.Memory, dtype
			estimated.Started(func(string) bool { return false })
			off := estimate.Own[estimate.GGMLSettings](estimated).NoFlash
			runs := estimate.Own[estimate.GGMLSettings](run).NoFlash
			if known++; estimated.KVDType != run.KVDType || off != runs || run.KVDType == "" {
				t.Errorf("%s with KV cache dtype %q: an estimate has %s, flash attention off %v; a run %s, %v", k.Name, dtype,
					estimated.KVDType, off, run.KVDType, runs)
			}
		}
	}
	if known < 9 {
		t.Errorf("%d settings of engines are known", known)
	}
}

// The components of an estimate add up to its total as they are printed.
func TestEstimateAddsUp(t *testing.T) {
	lightTest(t)
	t.Setenv("LLMPARITY_CACHE", t.TempDir())
	for _, row := range tableOf(t, "estimates.txt", 2) {
		args := strings.Fields(strings.ReplaceAll(row[0], "configs/", configs+"/"))
		sum, total, parts := 0.0, math.NaN(), 0
		for line := range strings.Lines(good(t, append([]string{"estimate"}, args...)...)) {
			name := strings.TrimSpace(line[:min(30, len(line))])
			size := math.NaN()
			if fields := strings.Fields(line[min(30, len(line)):]); len(fields) > 0 {
				if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
					size = v
				}
			}
			switch name {
			case "weights", "KV cache", "activations", "engine itself", "several devices",
				"weights, KV cache, activations":
				sum, parts = sum+size, parts+1
			case "total":
				total = size
			}
		}
		if math.Abs(sum-total) > 1e-6 {
			t.Errorf("%s: %d parts of %v come to %v", row[0], parts, total, sum)
		}
	}
}
