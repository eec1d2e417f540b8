package wllama

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(fills); path != "" {
		fill(path)
		return
	}
	childtest.Browsers(m, func() error { return nil })
}

// with returns an engine with a backend and a number of threads.
func with(backend string, threads int) *Engine {
	return &Engine{config: Config{Settings: browser.Defaults(), Backend: backend},
		settings: engine.Settings{Threads: threads}}
}

func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 24)[1]
	for name, threads := range map[string]int{"one thread": 1, "two threads": 2} {
		if threads > 1 && !check.Slow { // threads that wait for one another are slow on a busy machine
			continue
		}
		t.Run(name, func(t *testing.T) {
			c.New = func(*testing.T) engine.Engine { return with(WASM, threads) }
			enginetest.Run(t, c)
		})
	}
}

// open opens a session of a browser.
func open(t *testing.T, e *Engine) (*browser.Session, *enginetest.Probe) {
	t.Helper()
	s, probe := enginetest.Open(t, e)
	return s.(*browser.Session), probe
}

// says checks greedy ids, and returns the generation.
func says(t *testing.T, s engine.Session, prompt string, want []int) enginetest.Generation {
	t.Helper()
	g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: prompt, MaxTokens: len(want), IgnoreEOS: true})
	check.Err(t, err)
	if !slices.Equal(g.IDs(), want) {
		t.Errorf("%.40q: ids  %v,\nwant %v", prompt, g.IDs(), want)
	}
	return g
}

// The reference's ids are llama.cpp's, as its package tests. What runs follows from the log.
func TestGreedyIDs(t *testing.T) {
	s, probe := open(t, with(Auto, 1))
	cases := enginetest.Tiny(t, 64)
	enginetest.Load(t, s, cases[0].Model)
	for _, c := range cases {
		g := says(t, s, c.Prompt, c.Expected)
		if !slices.Equal(g.Usage.PromptIDs, c.PromptIDs) || g.Usage.Text != c.Text {
			t.Errorf("%.40q: prompt %v, text %q", c.Prompt, g.Usage.PromptIDs, g.Usage.Text)
		}
	}
	if w := probe.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %+v", w)
	}
	if d := probe.Device(); d.Class != record.CPU || d.Asked != "" {
		t.Errorf("the device is %+v", d)
	}
	for name, want := range map[string]string{"backend": WASM, "backend_asked": Auto, "threads": "1", "workers": "1",
		"kv_dtype": "f32", "flash_attention": "off", "context": "1024"} {
		if got := probe.Engine().Policy[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// Sizes follow from the log, and WebAssembly memory is measured in wllama's worker. Threads share it.
func TestThreadsAndMemory(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, probe := open(t, with(WASM, 2))
	enginetest.Load(t, s, c.Model)
	g := says(t, s, c.Prompt, c.Expected)
	wasm := probe.Figures(t, browser.MethodWasm, "page")
	if wasm["memory_bytes"] < 128<<20 || wasm["shared_bytes"] != wasm["memory_bytes"] || wasm["threads_count"] != 2 {
		t.Errorf("WebAssembly: %v", wasm)
	}
	if workers := probe.Engine().Policy["workers"]; workers != "3" {
		t.Errorf("%s workers", workers)
	}
	heaps := 0
	for _, s := range probe.Attached() {
		if d := s.Describe(); d.Method == browser.MethodHeap && d.Role == "worker" {
			heaps++
		}
	}
	if heap := probe.Figures(t, browser.MethodHeap, "worker"); heaps != 1 || heap["used_bytes"] < 1<<19 {
		t.Errorf("%d heaps of wllama's worker: %v", heaps, heap)
	}
	const kv = 2 * 2 * 64 * 4 // bytes a token
	sizes, held := probe.Values(t, logs.Method), float64(len(g.Usage.PromptIDs)+len(c.Expected)-1)
	if sizes["kv_used_bytes"] != held*kv || sizes["kv_reserved_bytes"] != 1024*kv ||
		sizes["weights_bytes"] < 4*426624-1<<14 || sizes["workspaces_bytes"] <= 0 {
		t.Errorf("sizes: %v", sizes)
	}
	check.Err(t, s.Unload(t.Context()))
	if wasm := probe.Figures(t, browser.MethodWasm, "page"); wasm["memory_bytes"] != 0 {
		t.Errorf("after Unload: %v", wasm)
	}
}

// wanted are the features of the usual tests. Slow ones have all.
var wanted = []string{"qwen3", "gemma3"}

// Random models of other architectures and vocabularies have tokens that end inside a character, and texts that end
// early.
func TestFeatures(t *testing.T) {
	var s *browser.Session
	for _, feature := range tinytest.Features() {
		named := slices.ContainsFunc(wanted, func(name string) bool { return strings.HasPrefix(feature.Name, name) })
		if feature.LlamaCppDiffers || !named && !check.Slow {
			continue
		}
		t.Run(feature.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			check.Err(t, tiny.WriteRandomFile(t.Context(), path, feature.Spec))
			if s == nil {
				opened, err := with(WASM, 1).Open(t.Context(), &enginetest.Probe{})
				check.Err(t, err)
				s = opened.(*browser.Session)
			}
			enginetest.Load(t, s, models.Model{Path: path, Model: record.Model{Context: 1024}})
			for _, a := range tinytest.Answers(t, tinytest.Random(t, feature.Spec), feature.Prompts(), 32) {
				if g := says(t, s, a.Text, a.Out); !slices.Equal(g.Usage.PromptIDs, a.In) {
					t.Errorf("%s: the prompt is %v, want %v", a.Name, g.Usage.PromptIDs, a.In)
				}
			}
			check.Err(t, s.Unload(t.Context()))
		})
	}
	if s != nil {
		check.Err(t, s.Close())
	}
}

// Without a fault scores differ by less than the tolerance, with one by more.
func TestScoresShowFaults(t *testing.T) {
	f := tinytest.Tiny(t)
	tokens, _ := tinytest.Oracle(t, f)
	in, err := damage.NewIntact(f, tokens.Encode(tinytest.Prompts()[1].Text))
	check.Err(t, err)
	s, _ := open(t, with(WASM, 1))
	enginetest.Load(t, s, enginetest.TinyModel(t))
	if apart := enginetest.ScoresApart(t, s, in); apart > damage.Tolerance {
		t.Errorf("without a fault scores are %.5f apart, at most %g are right", apart, damage.Tolerance)
	}
	check.Err(t, s.Unload(t.Context()))
	path := filepath.Join(t.TempDir(), "damaged.gguf")
	out, err := os.Create(path)
	check.Err(t, err)
	check.Err(t, damage.Write(out, f, in.All()[0]))
	check.Err(t, out.Close())
	enginetest.Load(t, s, models.Model{Path: path, Model: record.Model{Context: 1024}})
	if apart := enginetest.ScoresApart(t, s, in); apart < damage.Tolerance {
		t.Errorf("with a fault scores are %.5f apart", apart)
	}
}

// split writes the tiny model in two files.
func split(t *testing.T) models.Model {
	t.Helper()
	f := tinytest.Tiny(t)
	weights, dir := f.Unquantised(), t.TempDir()
	var paths []string
	for i, part := range [][]gguf.Weights{weights[:9], weights[9:]} {
		of := []gguf.Entry{{Key: "split.no", Value: uint16(i)}, {Key: "split.count", Value: uint16(2)},
			{Key: "split.tensors.count", Value: int32(len(weights))}}
		if i == 0 {
			of = append(f.Metadata, of...)
		}
		paths = append(paths, filepath.Join(dir, []string{"tiny-00001-of-00002.gguf", "tiny-00002-of-00002.gguf"}[i]))
		out, err := os.Create(paths[i])
		check.Err(t, err)
		check.Err(t, gguf.Write(out, of, part))
		check.Err(t, out.Close())
	}
	return models.Model{Path: paths[0], Parts: paths, Model: record.Model{Name: "split", Context: 1024}}
}

// A split model runs. A page that tries to reach another server is refused, in wllama's workers too.
func TestSplitModelAndNoOtherServer(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	s, _ := open(t, with(WASM, 1))
	enginetest.Load(t, s, split(t))
	says(t, s, c.Prompt, c.Expected)
	for _, js := range []string{
		"fetch('https://example.com/x').catch(() => 0)",
		"import('https://example.com/x').catch(() => 0)",
		"new Worker(URL.createObjectURL(new Blob([`fetch('https://example.com/x').catch(() => 0); " +
			"addEventListener('securitypolicyviolation', (e) => postMessage(e.blockedURI))`])))" +
			".onmessage = (e) => document.dispatchEvent(Object.assign(new Event('securitypolicyviolation'), { blockedURI: e.data }))",
	} {
		got, err := browser.Call[string](t.Context(), s.Page, "new Promise((done) => { "+
			"document.addEventListener('securitypolicyviolation', (e) => done(e.blockedURI), { once: true }); "+js+" })")
		if check.Err(t, err); !strings.HasPrefix(got, "https://example.com") {
			t.Errorf("%.30s: blocked %q", js, got)
		}
	}
}

// WebGPU that is asked for and not there is a fallback, which the runner judges by the device.
func TestSilentFallback(t *testing.T) {
	e := with(WebGPU, 1)
	e.config.Adapter = string(browser.SwiftShader) // without shader-f16
	s, probe := open(t, e)
	enginetest.Load(t, s, enginetest.TinyModel(t))
	d := probe.Device()
	_, err := engine.Asked(*d, false)
	enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for webgpu", "runs on cpu")
	if w, err := engine.Asked(*d, true); w == nil || err != nil {
		t.Errorf("allowed: %+v, %v", w, err)
	}
}

// Bad input is a line with its class.
func TestBadInput(t *testing.T) {
	s, _ := open(t, with(WASM, 2))
	m := enginetest.TinyModel(t)
	broken := m
	broken.Path = filepath.Join(t.TempDir(), "broken.gguf")
	text := check.Read(t, m.Path)
	at := strings.Index(string(text), "blk.0.ffn_down.weight") + len("blk.0.ffn_down.weight") + 4 + 2*8
	text[at] = 211 // the tensor's type
	check.Err(t, os.WriteFile(broken.Path, text, 0o600))
	isolated := func(is string) string {
		return "void Object.defineProperty(globalThis, 'crossOriginIsolated', { value: " + is + ", configurable: true })"
	}
	for _, c := range []struct {
		before string
		model  models.Model
		class  record.Class
		words  string
	}{
		{"0", broken, record.BadModel, "type 211"},
		{isolated("false"), m, record.SetUp, "not cross-origin isolated"},
		{"globalThis.SharedArrayBuffer = " + isolated("true"), m, record.SetUp, "no SharedArrayBuffer"},
	} {
		_, err := browser.Call[any](t.Context(), s.Page, c.before)
		check.Err(t, err)
		err = s.Load(t.Context(), c.model)
		if err == nil || engine.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.words) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v of class %s", c.words, err, engine.ClassOf(err))
		}
	}
	large := m
	large.Path = filepath.Join(t.TempDir(), "large.gguf")
	check.Err(t, os.WriteFile(large.Path, check.Read(t, m.Path), 0o600))
	check.Err(t, os.Truncate(large.Path, 5<<30)) // takes no room
	enginetest.OneLine(t, with(WASM, 1).Check(t.Context(), large), fault.WontFit, record.OOM, "5.0 GiB", "4 GiB")
}
