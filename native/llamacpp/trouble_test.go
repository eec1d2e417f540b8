package llamacpp

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

const (
	oneToken = `data: {"content":"a","tokens":[7],"tokens_predicted":1,"stop":false}` + "\n\n"
	lastOne  = `data: {"content":"","tokens":[],"tokens_predicted":1,"stop":true,"stop_type":"limit","timings":{"predicted_n":1}}` + "\n\n"
)

// sends runs a generation against a server that answers with these bytes.
func sends(t *testing.T, status int, body string) (*generation, error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have gone
	}))
	defer srv.Close()
	c := newClient(0, "")
	c.Base = srv.URL
	g := &generation{client: c, token: func(record.Token) {}, body: newCompletion([]int{1}, 4, 0, 0),
		usage: record.Usage{PromptIDs: []int{1}}}
	return g, g.run(t.Context())
}

// An invalid answer is an error of one line; tokens received before it are kept.
func TestServerErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		tokens int
		want   string
		class  record.Class
	}{
		{"refuses", 401, `{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}`,
			0, "Invalid API Key", record.Other},
		{"fails without JSON", 500, "<html>\nno\n</html>", 0, "500 Internal Server Error", record.Other},
		{"fails in mid-stream", 200, oneToken +
			`data: {"error":{"code":500,"message":"compute error","type":"server_error"}}` + "\n\n", 1, "compute error",
			record.Other},
		{"stops in mid-stream", 200, oneToken, 1, "unexpected EOF", record.Other},
		{"stops in mid-line", 200, oneToken + `data: {"content":"b`, 1, "unexpected EOF", record.Other},
		{"sends no JSON", 200, oneToken + "data: {]\n\n", 1, "invalid event", record.Other},
		{"sends no token", 200, `data: {"content":"","tokens":[],"stop":true,"stop_type":"limit"}` + "\n\n",
			0, "generated no token", record.BadOutput},
		{"counts fewer than it sent", 200, oneToken + oneToken, 1, "counts 1 tokens, but its events had 2",
			record.BadOutput},
		{"counts more than were requested", 200, `data: {"content":"a","tokens":[7],"tokens_predicted":9}` + "\n\n",
			0, "counts 9 tokens", record.BadOutput},
		{"sends invalid timings", 200, `data: {"tokens":[7],"tokens_predicted":1,"stop":true,"timings":[]}` +
			"\n\n", 1, "timings", record.BadOutput},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := sends(t, c.status, c.body)
			enginetest.OneLine(t, err, fault.Run, c.class, c.want)
			if len(g.ids) != c.tokens {
				t.Errorf("%d tokens, want %d", len(g.ids), c.tokens)
			}
		})
	}
}

// Wrong counts of the server are recorded, with a warning.
func TestCountsThatDiffer(t *testing.T) {
	g, err := sends(t, 200, oneToken+strings.Replace(lastOne, `{"predicted_n":1}`, `{"predicted_n":3,"prompt_n":5}`, 1))
	check.Err(t, err)
	p := &enginetest.Probe{}
	g.counted(p)
	w := p.Warnings()
	if len(w) != 2 || w[0].Code != "counts-differ" || !strings.Contains(w[0].Text, "counts 3") ||
		!strings.Contains(w[1].Text, "counts 5") {
		t.Errorf("%+v", w)
	}
	if g.usage.Reported["predicted_n"] != 3 || len(g.ids) != 1 {
		t.Errorf("reported %v, received %d", g.usage.Reported, len(g.ids))
	}
}

// standIn is a script that acts as an old program: it prints a version and a help text, and refuses to run.
func standIn(t *testing.T, help, refusal string) string {
	t.Helper()
	quote := func(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }
	text := fmt.Sprintf("case $1 in\n--version) echo 'version: 3000 (0a0a0a0a)' ;;\n--help) echo '%s' ;;\n*) echo '%s' >&2; exit 1 ;;\nesac", quote(help), quote(refusal))
	return check.Script(t, text, t.TempDir(), "llama-server")
}

const oldHelp = `-h,    --help            print usage
-m,    --model FNAME     model path
-c,    --ctx-size N      size of the context
-t,    --threads N       threads
-tb,   --threads-batch N threads in prefill
-ngl,  --gpu-layers N    layers
-fa,   --flash-attn      enable Flash Attention (default: disabled)
-np,   --parallel N      slots
--host HOST              address
--port PORT              port
`

// An old server lacks an option according to its help, or refuses it.
func TestOldServer(t *testing.T) {
	m := randomModel(t, ascii())
	err := New(Config{Path: standIn(t, oldHelp, "")}).Check(t.Context(), m)
	enginetest.OneLine(t, err, fault.NoLlamaServer, record.SetUp, "it does not support -ctk f32", "make setup")
	s, _ := opened(t, New(Config{Path: standIn(t, "nothing to be read", "error: invalid argument: -cram")}))
	if err := s.Load(t.Context(), m); err == nil || !strings.Contains(err.Error(), "invalid argument: -cram") {
		t.Errorf("a refused option: %v", err)
	}
}

// Newer versions renamed options, and older ones lack some.
func TestOptionsOfOtherVersions(t *testing.T) {
	flags := []flag{{"-m", "x"}, {"-fa", "off"}, {noMmap}, {"-cram", "0"}, {"-fit", "off"}}
	for name, c := range map[string]struct {
		known options
		want  string
	}{
		"unreadable": {nil, "-m x -fa off --no-mmap -cram 0 -fit off"},
		"old":        {listed(strings.Split(oldHelp+"--no-mmap  do not map", "\n")), "-m x --no-mmap"},
		"new": {listed([]string{"-m, --model FNAME  model", "-fa, --flash-attn [on|off|auto]  attention",
			"-lm,   --load-mode MODE  loading",
			"-cram, --cache-ram N  cache", "-fit, --fit [on|off]  fit"}),
			"-m x -fa off --load-mode none -cram 0 -fit off"},
	} {
		got, err := identity{options: c.known}.fitted(flags)
		if s := strings.Join(arguments(got), " "); err != nil || s != c.want {
			t.Errorf("%s: %s, %v; want %s", name, s, err, c.want)
		}
	}
	// The real programs know every option, possibly by another name.
	one := newOneShot()
	for e, flags := range map[*Engine][]flag{
		newEngine(t): newEngine(t).config.server(models.Model{Path: "m"}, 1),
		one:          one.config.oneShot(models.Model{Path: "m"}, "f", "x", engine.Request{MaxTokens: 1}),
	} {
		b, err := e.identify(t.Context())
		check.Err(t, err)
		if got, err := b.fitted(flags); err != nil || b.options == nil || len(got) != len(flags) {
			t.Errorf("%s: %s of %s, %v", b.path, got, flags, err)
		}
	}
}

// A server that dies or hangs before it is ready is started again, and its output is kept.
func TestStartIsRepeated(t *testing.T) {
	path, err := Find(newEngine(t).config)
	check.Err(t, err)
	m := randomModel(t, ascii())
	for _, x := range []struct {
		instead string
		times   int
		say     string
		class   record.Class // of the load's error; empty: it succeeds
	}{
		{"kill -SEGV $$", 2, "segmentation fault", ""},
		{"echo no luck >&2; exit 1", 9, "no luck", record.Start},
	} {
		t.Run(x.say[:6], func(t *testing.T) {
			dir := t.TempDir()
			script := fmt.Sprintf("case $1 in --*) exec %[1]s \"$@\" ;; esac\necho x >>%[2]s/starts\n"+
				"if [ $(wc -l <%[2]s/starts) -le %[3]d ]; then %[4]s; fi\nexec %[1]s \"$@\"", path, dir, x.times,
				x.instead)
			s, probe := opened(t, New(Config{Path: check.Script(t, script, dir, "llama-server")}))
			err := s.Load(t.Context(), m)
			if x.class == "" && err != nil || x.class != "" &&
				(engine.ClassOf(err) != x.class || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("%v of class %s, want %q", err, engine.ClassOf(err), x.class)
			}
			repeated := 0
			for _, w := range probe.Warnings() {
				if w.Code == "start-repeated" && strings.Contains(w.Text, x.say) {
					repeated++
				}
			}
			if want := min(x.times, engine.Starts-1); repeated != want {
				t.Errorf("%d repeated starts, want %d: %+v", repeated, want, probe.Warnings())
			}
			if report, closed := probe.Logged("llama-server-start1"); !closed || !strings.Contains(report, x.say[:6]) {
				t.Errorf("the first start's log: %s", report)
			}
		})
	}
}

func TestDeviceOfGPULayers(t *testing.T) {
	c := newEngine(t).config
	c.GPULayers = 3
	for _, e := range []engine.Engine{New(c), NewOneShot(c)} {
		enginetest.OneLine(t, e.Check(t.Context(), randomModel(t, ascii())), fault.Fallback, record.Fallback,
			"no GPU for 3 layers", "--llamacpp-gpu-layers")
	}
	c.Fallback = true
	check.Err(t, New(c).Check(t.Context(), randomModel(t, ascii())))
	inRAM := map[string]map[string]float64{"model": {"CPU_Mapped": 9, "CUDA_Host": 1}}
	split := map[string]map[string]float64{"model": {"CPU_Mapped": 9, "CUDA0": 1}}
	h200, mesa := []string{"CUDA0 (NVIDIA H200)"}, []string{"Vulkan0 (llvmpipe (LLVM 19.1.7, 256 bits))"}
	for name, of := range map[string]struct {
		said   logs.Load
		class  record.DeviceClass
		missed bool
	}{
		"layers on a GPU":             {logs.Load{Offloaded: 2, All: 9, Devices: h200}, record.GPU, false},
		"weights on a GPU":            {logs.Load{Offloaded: 2, All: 9, Devices: h200, Buffers: split}, record.GPU, false},
		"a log without devices":       {logs.Load{Offloaded: -1}, "unknown", false},
		"no GPU was found":            {logs.Load{Offloaded: -1, NoGPU: true}, record.CPU, true},
		"no layer on a GPU":           {logs.Load{Offloaded: 0, All: 9}, record.CPU, true},
		"layers counted, not on one":  {logs.Load{Offloaded: 9, All: 9, Buffers: inRAM}, record.CPU, true},
		"Vulkan that runs on the CPU": {logs.Load{Offloaded: 9, All: 9, Devices: mesa}, record.SoftwareAdapter, true},
	} {
		if d := c.device(of.said); d.Class != of.class || d.Missed() != of.missed || d.Asked != "gpu" || d.Name == "" {
			t.Errorf("%s: %+v, missed: %v", name, d, d.Missed())
		}
	}
	if n := (logs.Load{Offloaded: 2, All: 9}).Layers(2); n == nil || *n != (record.Layers{GPU: 2, All: 9}) {
		t.Errorf("%+v", n)
	}
	d := c.device(logs.Load{Offloaded: 2, All: 9, Devices: h200})
	if d.Name != h200[0] || d.Detail["gpu_layers"] != "2 of 9" {
		t.Errorf("%+v", d)
	}
}

// The sizes from the log and the used part of the KV cache can be sampled, as those of a server with slots.
func TestSizesOfOneShotAreSampled(t *testing.T) {
	s, p := loadedOneShot(t, randomModel(t, ascii()))
	for _, tokens := range []int{0, 12} {
		if tokens > 0 {
			r := engine.Request{Prompt: "once", MaxTokens: tokens - 3, IgnoreEOS: true}
			_, err := enginetest.Generate(t.Context(), s, r)
			check.Err(t, err)
		}
		v := p.Values(t, logs.Method)
		// 1 layer × 2 heads × 32 × (4 + 4) bytes × 256 cells; the log rounds to 0.01 MiB.
		if v["kv_reserved_bytes"] != math.Round(.12*record.MiB) || v["kv_cells_count"] != 256 ||
			v["weights_bytes"] <= 0 || v["compute_bytes"] <= 0 {
			t.Errorf("%v", v)
		}
		if want := v["kv_reserved_bytes"] / 256 * float64(tokens); math.Abs(v["kv_used_bytes"]-want) > 1 {
			t.Errorf("%d tokens use %v bytes, want %v", tokens, v["kv_used_bytes"], want)
		}
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	c := newEngine(t).config
	c.Batch, c.UBatch, c.CacheK, c.KVType, c.FlashAttention, c.Mmap, c.BatchThreads = 64, 32, "q8_0", "f16", "auto",
		"off", 2
	s, p := opened(t, New(c))
	check.Err(t, s.Load(t.Context(), randomModel(t, ascii())))
	policy := p.Engine().Policy
	for name, want := range map[string]string{"batch": "64", "ubatch": "32", "kv_dtype": "K q8_0, V f16",
		"flash_attention": "auto: enabled", "mmap": "off",
		"threads": "1", "threads_batch": "2", "gpu_layers": "0", "context": "256"} {
		if policy[name] != want {
			t.Errorf("%s is %q, want %q", name, policy[name], want)
		}
	}
	if v := p.Values(t, logs.Method); v["weights.CPU_bytes"] <= 0 || v["weights.CPU_Mapped_bytes"] != 0 {
		t.Errorf("without mmap: %v", v)
	}
}

// The lines are llama-server 11434's. After a failed assertion, a debugger prints more.
func TestWhyAModelIsNotLoaded(t *testing.T) {
	const failed = "error loading model: llama_model_loader: failed to load model from m.gguf"
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"E gguf_init_from_reader: tensor 'output_norm.weight' has invalid ggml type 200. should be in [0, 43)",
			"E gguf_init_from_reader: failed to read tensor info", "E llama_model_load: " + failed},
			"cannot load m.gguf: tensor 'output_norm.weight' has invalid ggml type 200"},
		{[]string{"/src/ggml.c:4014: GGML_ASSERT(a->ne[0] == b->ne[0]) failed", "[New LWP 7]", "#22 0x1 in _start ()"},
			"cannot load m.gguf: GGML_ASSERT(a->ne[0] == b->ne[0]) failed"},
		{[]string{"llama_model_load: error loading model: unknown model architecture: 'x'", "failed to load model"},
			"cannot load m.gguf: unknown model architecture: 'x'"},
		{[]string{"failed to load model, 'm.gguf'"}, "cannot load m.gguf: failed to load model"},
		{[]string{"exiting"}, ""},
	} {
		err := notLoaded("llama-server", models.Model{Path: "m.gguf"}, c.words, "exit status 1")
		if (err == nil) != (c.want == "") || err != nil && (engine.ClassOf(err) != record.BadModel ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.words, err, c.want)
		}
	}
}

func TestProbabilities(t *testing.T) {
	const lowest = "-3.4028234663852886e+38" // stands for a probability of 0 in float32
	for name, c := range map[string]struct{ text, wrong string }{
		"complete": {`{"tokens":[7],"completion_probabilities":[{"id":7,"logprob":-3,"top_logprobs":[{"id":2,"logprob":-0.1},{"id":7,"logprob":-3}]}]}`, ""},
		"small ones": {`{"completion_probabilities":[{"id":7,"logprob":` + lowest +
			`,"top_logprobs":[{"id":2,"logprob":0},{"id":3,"logprob":-90},{"id":4,"logprob":` + lowest + `}]}]}`, ""},
		"before ids": {`{"completion_probabilities":[{"content":"a","probs":[{"tok_str":"a","prob":0.5}]}]}`,
			"use a newer one"},
		"none": {`{"tokens":[7]}`, "use a newer one"},
		"NaN": {`{"completion_probabilities":[{"id":7,"logprob":null,"top_logprobs":[{"id":0,"logprob":null}]}]}`,
			"logits are not numbers"},
		"another token": {`{"completion_probabilities":[{"id":8,"logprob":-3,"top_logprobs":[]}]}`, "instead of the forced 7"},
		"no candidate": {`{"completion_probabilities":[{"id":7,"logprob":-3,"top_logprobs":[{"id":7,"logprob":0}]}]}`,
			"1 candidates"},
	} {
		var p probabilities
		check.Err(t, json.Unmarshal([]byte(c.text), &p))
		s, err := p.score(7)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if err != nil || s.Forced != 7 || len(s.Top) != 2 || math.IsNaN(s.LogProb) != (name == "small ones") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if err := s.Sound(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The batch limits the micro-batch, and with it the workspaces.
func TestBatchLimitsUBatch(t *testing.T) {
	for _, c := range []struct {
		batch, ubatch int
		want          string
	}{{0, 0, ""}, {64, 0, "64"}, {64, 128, "64"}, {0, 128, "128"}, {1024, 0, "512"}, {0, 4096, "2048"},
		{4096, 4096, "4096"}} {
		s := New(Config{Batch: c.batch, UBatch: c.ubatch}).Settings(models.Model{})
		if s["ubatch"] != c.want {
			t.Errorf("ubatch %d, batch %d: %q, want %q", c.ubatch, c.batch, s["ubatch"],
				c.want)
		}
	}
}

func TestLibrariesSHA256(t *testing.T) {
	root := check.Tree(t, t.TempDir(), map[string]string{"bin/llama-server": "a program",
		"lib/libstdc++.so.6": "not llama.cpp's"})
	sum := func(files map[string]string) string {
		return LibrariesSHA256(filepath.Join(check.Tree(t, root, files), "bin", "llama-server"))
	}
	if got := sum(nil); got != "" {
		t.Errorf("%q without libraries", got)
	}
	before := sum(map[string]string{"lib/libggml-cpu.so.0": "one", "bin/libllama.so": "two"})
	if len(before) != 64 {
		t.Fatalf("%q", before)
	}
	if got := sum(map[string]string{"lib/libggml-cpu.so": "-> libggml-cpu.so.0"}); got != before {
		t.Errorf("with another name for a library: %q, was %q", got, before)
	}
	if got := sum(map[string]string{"lib/libggml-cpu.so.0": "another"}); got == before || got == "" {
		t.Errorf("with another library: %q, was %q", got, before)
	}
}
