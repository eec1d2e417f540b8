package ollama

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:11434": "http://localhost:11434", "http://localhost:11434/": "http://localhost:11434",
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"box":            "http://box:11434", " https://host/ollama/ ": "https://host/ollama",
		"http://[::1]:11434": "http://[::1]:11434", "https://host": "https://host",
		"": "", "http://": "", "ftp://host": "", "http://host?x=1": "", "http://a b": "", "http://me:secret@host": "",
	} {
		u, err := ParseURL(text)
		switch {
		case want == "" && (fault.Of(err) != fault.Usage || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q: %v, %v", text, u, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: %v, %v; want %s", text, u, err, want)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	for _, c := range []struct {
		Config
		words string // of the error; empty: none
	}{
		{Config{}, ""}, {Config{KVType: "q8_0", GPU: true, KeepAlive: "-1", Threads: 4}, ""},
		{Config{URL: "box", KeepAlive: "1h30m"}, ""},
		{Config{URL: "ftp://x"}, "--ollama-url: must begin"}, {Config{URL: "box", KVType: "f16"}, "--ollama-kv-type"},
		{Config{URL: "box", Path: "ollama"}, "--ollama applies to"},
		{Config{KeepAlive: "0"}, "--ollama-keep-alive"},
		{Config{KeepAlive: "soon"}, "--ollama-keep-alive"},
	} {
		err := c.Config.Check()
		if (c.words == "") != (err == nil) || err != nil &&
			(!strings.Contains(err.Error(), c.words) || fault.Of(err) != fault.Usage) {
			t.Errorf("%+v: %v, want %q", c.Config, err, c.words)
		}
	}
}

func TestParseRunner(t *testing.T) {
	line := strings.Fields("/x/ollama runner --model /secret/place --ctx-size 8192 --batch-size 512 --flash-attn --kv-cache-type q8_0 --threads 2 --parallel 4 --port 43055")
	r := parseRunner(7, line)
	if r.context != 8192 || r.parallel != 4 || r.threads != 2 || r.kv != "q8_0" || r.flash != "on" || r.mmap != "on" ||
		r.pid != 7 {
		t.Errorf("%+v", r)
	}
	if all := strings.Join(r.args, " "); strings.Contains(all, "secret") || strings.Contains(all, "43055") ||
		!strings.HasPrefix(all, "--ctx-size 8192") {
		t.Errorf("arguments %q", all)
	}
	for _, line := range [][]string{nil, {"ollama"}, {"ollama", "runner", "--ollama-engine", "--port", "5"},
		{"ollama", "runner", "--ctx-size"}} {
		if r := parseRunner(7, line); r.context != 0 || r.parallel != 0 || r.threads != 0 {
			t.Errorf("%q: %+v", line, r)
		}
	}
}

// Output of Ollama 0.6.5.
const realLog = `time=2025-05-01T10:00:00.000Z level=INFO source=routes.go:1298 msg="Listening on 127.0.0.1:18434 (version 0.6.5)"
load_tensors: loading model tensors, this can take a while... (mmap = false)
load_tensors:          CPU model buffer size =     1.63 MiB
llama_init_from_model: flash_attn    = 0
llama_kv_cache_init: kv_size = 512, offload = 1, type_k = 'f16', type_v = 'f16', n_layer = 2, can_shift = 1
llama_kv_cache_init:        CPU KV buffer size =     0.25 MiB
llama_init_from_model: KV self size  =    0.25 MiB, K (f16):    0.12 MiB, V (f16):    0.12 MiB
llama_init_from_model:        CPU  output buffer size =     0.50 MiB
llama_init_from_model:        CPU compute buffer size =     5.00 MiB
llama_init_from_model:        CPU compute buffer size =     6.01 MiB
time=2025-05-01T10:00:01.000Z level=DEBUG source=routes.go:297 msg="generate request" images=0 prompt="msg=\"loading cache slot\" prompt=1 used=1 "
time=2025-05-01T10:00:01.000Z level=DEBUG source=cache.go:104 msg="loading cache slot" id=0 cache=15 prompt=10 used=9 remaining=1
[GIN] 2025/05/01 - 10:00:01 | 200 |   13.3ms |       127.0.0.1 | POST     "/api/generate"
`

func TestLog(t *testing.T) {
	r := newLogReader()
	for range 2 { // a second load replaces the first
		_, _ = io.WriteString(r, realLog) // it never fails
	}
	l := r.Said()
	want := map[string]float64{"weights_bytes": 1709179, "kv_reserved_bytes": record.MiB / 4,
		"compute_bytes": 6301942, "output_bytes": record.MiB / 2,
		"workspaces_bytes": 6301942 + record.MiB/2}
	if used := l.Totals(128)["kv_used_bytes"]; used != record.MiB/16 {
		t.Errorf("128 of 512 cells use %g bytes", used)
	}
	if !maps.Equal(l.Totals(-1), want) || l.KV != "f16" || l.Flash != "disabled" || l.Cells != 512 {
		t.Errorf("%+v; want %v", l, want)
	}
	if n := len(r.slots); n != 2 {
		t.Fatalf("%d requests, want 2", n)
	}
	if reported, ok := r.await(10); !ok || reported != (slot{10, 9}) || len(r.slots) != 1 || r.wasCut() {
		t.Errorf("%+v, cut %v", reported, r.wasCut())
	}
	for _, said := range []string{`"truncating input prompt" limit=4`, `"context limit hit - shifting" id=0`} {
		_, _ = fmt.Fprintf(r, "time=x level=WARN source=r.go:1 msg=%s\n", said)
		if !r.wasCut() {
			t.Errorf("%s is not recognised", said)
		}
		if r.forget(); r.wasCut() || len(r.slots) != 0 {
			t.Error("forget has no effect")
		}
	}
}

// What the runner's log says counts more than the estimate of /api/ps.
func TestDevice(t *testing.T) {
	const slog = `time=2025-01-01T00:00:00Z level=INFO source=ggml.go:489 msg="offloaded %d/29 layers to GPU"` + "\n"
	for name, c := range map[string]struct {
		log   string
		vram  float64
		class record.DeviceClass
	}{
		"nothing on a GPU":         {"", 0, record.CPU},
		"an estimate":              {"", 5, record.GPU},
		"layers":                   {fmt.Sprintf(slog, 29), 5, record.GPU},
		"an estimate, but no GPU":  {fmt.Sprintf(slog, 0), 5, record.CPU},
		"llama.cpp's line":         {"load_tensors: offloaded 0/3 layers to GPU\n", 5, record.CPU},
		"a GPU that is a program":  {"x: using device Vulkan0 (llvmpipe (LLVM 19)) \n", 5, record.SoftwareAdapter},
		"Vulkan0, a GPU of a kind": {"x: using device Vulkan0 (NVIDIA H200) \n", 5, record.GPU},
	} {
		r := newLogReader()
		_, _ = io.WriteString(r, c.log) // it never fails
		if d := deviceOf(listed{VRAM: c.vram, Size: 9}, r.Said()); d.Class != c.class || d.Name == "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Lines of concurrent requests come in any order. Those of equal length cannot be distinguished.
func TestLogOfConcurrentRequests(t *testing.T) {
	r := newLogReader()
	for _, s := range []slot{{10, 9}, {20, 5}, {20, 7}, {30, 0}, {3, 2}} {
		_, _ = fmt.Fprintf(r, "time=x level=DEBUG source=cache.go:104 msg=\"loading cache slot\" id=0 cache=15 prompt=%d used=%d remaining=1\n", s.prompt, s.used)
	}
	for _, want := range []slot{{30, 0}, {20, record.CacheUnknown}, {10, 9}, {20, 7}} {
		if reported, ok := r.await(want.prompt); !ok || reported != want {
			t.Errorf("%+v, want %+v", reported, want)
		}
	}
	if reported, ok := r.await(0); !ok || reported != (slot{3, 2}) {
		t.Errorf("a prompt of unknown length: %+v, %v", reported, ok)
	}
}

func TestSummaryOfOutput(t *testing.T) {
	tail := &child.Tail{Max: 32 << 10}
	fmt.Fprint(tail, `llama_model_load: error loading model: tensor 'output.weight' data is not within the file bounds
llama_model_load_from_file_impl: failed to load model
panic: unable to load model: /x

goroutine 50 [running]:
github.com/ollama/ollama/runner/llamarunner.(*Server).loadModel(0xc0001, {0x0, 0x0})
	/x/runner.go:773 +0x375
created by github.com/ollama/ollama/runner/llamarunner.Execute in goroutine 1
	/x/runner.go:848 +0xb57
goroutine 1 gp=0xc000002380 m=nil [IO wait]:
runtime.gopark(0x0, 0x0)
time=x level=DEBUG source=s.go:5 msg="no error"
time=x level=ERROR source=sched.go:456 msg="error loading llama server"
[GIN] 2025/05/01 - 10:00:01 | 500
`)
	s := &server{Program: &launch.Program{Tail: tail}}
	want := "llama_model_load_from_file_impl: failed to load model | panic: unable to load model: /x | \"error loading llama server\""
	if got := summary(s.words()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestShow(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		said            string
		longest, window int
	}{
		"long": {`{"model_info":{"general.architecture":"llama","llama.context_length":131072}}`, 131072,
			4096},
		"short":             {`{"model_info":{"qwen2.context_length":1024}}`, 1024, 1024},
		"set by its author": {`{"parameters":"temperature 1\nnum_ctx                        8192\nstop \"num_ctx 7\"","model_info":{"a.context_length":131072}}`, 131072, 8192},
		"nothing":           {`{}`, 0, 0},
		"nonsense":          {`{"parameters":"num_ctx x","model_info":{"a.context_length":"long"}}`, 0, 0},
		"negative":          {`{"model_info":{"a.context_length":-5}}`, 0, 0},
	} {
		k := shown{Modelfile: "# FROM m:latest\n\nFROM /x/blobs/sha256-" + sum + "\nTEMPLATE x\n"}
		check.Err(t, json.Unmarshal([]byte(c.said), &k))
		if k.longest() != c.longest || k.window() != c.window || !slices.Equal(k.blobs(), []string{sum}) {
			t.Errorf("%s: longest %d, window %d, files %q; want %d and %d", name, k.longest(), k.window(), k.blobs(),
				c.longest, c.window)
		}
	}
}

func TestOtherProgramIsRefused(t *testing.T) {
	path := check.Script(t, "echo something else 1.0", t.TempDir(), "ollama")
	enginetest.OneLine(t, New(Config{Path: path}).find(t.Context()).Err, fault.NoOllama, record.SetUp, "is not ollama",
		"scripts/setup ollama")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("OLLAMA_NUM_PARALLEL", "9")
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	if env := environment(false); slices.Contains(env, "OLLAMA_NUM_PARALLEL=9") ||
		slices.Contains(env, "CUDA_VISIBLE_DEVICES=0") || !slices.Contains(env, "CUDA_VISIBLE_DEVICES=-1") {
		t.Errorf("%q", env)
	}
	if env := environment(true); !slices.Contains(env, "CUDA_VISIBLE_DEVICES=0") {
		t.Errorf("the GPU is hidden: %q", env)
	}
}

func TestSettings(t *testing.T) {
	m := models.Model{Model: record.Model{DType: "q4_0", Context: 512}}
	plain := map[string]string{"weights_dtype": "q4_0", "kv_dtype": "f16", "parallel": "1", "flash_attention": "off",
		"mmap": "off", "context": "512"}
	if got := New(Config{}).Settings(m); !maps.Equal(got, plain) {
		t.Errorf("%v, want %v", got, plain)
	}
	if got := New(Config{KVType: "q8_0", GPU: true}).Settings(m); got["kv_dtype"] != "q8_0" ||
		got["flash_attention"] != "on" || got["gpu"] != "allowed" {
		t.Errorf("%v", got)
	}
	if got := New(Config{URL: DefaultURL}).Settings(m); len(got) != 1 { // it has its own settings
		t.Errorf("%v", got)
	}
}
