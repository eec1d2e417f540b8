package transformersjs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/onnx"
	"llmparity/internal/models/onnx/convert"
	"llmparity/internal/record"
)

// folder writes the tiny model as ONNX into Hugging Face's cache, as hf:me/tiny.
func folder(t *testing.T) (dir string, want enginetest.Case) {
	t.Helper()
	want = enginetest.Tiny(t, 16)[1]
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	dir = filepath.Join(os.Getenv("HF_HUB_CACHE"), "models--me--tiny", "snapshots", "1")
	_, err := convert.Write(t.Context(), want.Model.Path, dir, convert.Options{Context: 256})
	check.Err(t, err)
	return dir, want
}

// A folder as transformers.js publishes them runs as it is, and asks nobody but our server.
func TestFolderRunsAsItIs(t *testing.T) {
	_, want := folder(t)
	var finder models.Finder
	m, err := finder.Find(t.Context(), "hf:me/tiny", 0)
	check.Err(t, err)
	if m.Name != "tiny-fp32" || m.Format != models.ONNX ||
		m.DType != "f32" || m.Context != 256 || m.Layers != 2 || m.SHA256 == "" {
		t.Errorf("%+v", m)
	}
	e := made(t, Config{Settings: browser.Defaults()}, engine.Settings{Threads: 1})
	s, probe := loaded(t, e, m)
	if got, _ := ids(t, s, want.Prompt, 16); !slices.Equal(got, want.Expected) {
		t.Errorf("ids %v,\nwant %v", got, want.Expected)
	}
	page := s.(*browser.Session).Page
	names, err := browser.Call[[]string](limited(t), page,
		`performance.getEntriesByType("resource").map(({ name }) => name)`)
	check.Err(t, err)
	for _, name := range names {
		if !strings.HasPrefix(name, page.Base()) {
			t.Errorf("the page asked for %s", name)
		}
	}
	if d := probe.Device(); len(names) < 8 || d.Class != record.CPU || probe.Engine().Policy["threads"] != "1" {
		t.Errorf("%d files, device %+v, engine %+v", len(names), d, probe.Engine())
	}
}

// Broken models, and pages without what threads need, are refused in a line with its class.
func TestBadInput(t *testing.T) {
	dir, _ := folder(t)
	file := filepath.Join(dir, "onnx", "model.onnx")
	whole := check.Read(t, file)
	open := func() models.Model {
		m, err := models.Finder{}.Find(t.Context(), dir, 0)
		check.Err(t, err)
		return m
	}
	e := made(t, Config{Settings: browser.Defaults()}, engine.Settings{Threads: 2})
	s, _ := enginetest.Open(t, e)
	page := func(script string) func() {
		return func() {
			_, err := browser.Call[any](limited(t), s.(*browser.Session).Page, script)
			check.Err(t, err)
		}
	}
	isolated := func(is string) string {
		return "void Object.defineProperty(globalThis, 'crossOriginIsolated', { value: " + is + ", configurable: true })"
	}
	for _, c := range []struct {
		name    string
		damage  func()
		message string
		class   record.Class
	}{
		{"an operator that ONNX Runtime lacks", func() {
			other := bytes.ReplaceAll(whole, []byte("GroupQueryAttention"), []byte("GroupQueryAttentioM"))
			check.Err(t, os.WriteFile(file, other, 0o600))
		}, "GroupQueryAttentioM", record.SetUp},
		{"a configuration that does not name the files of data", func() {
			check.Err(t, os.WriteFile(file, whole, 0o600))
			config := filepath.Join(dir, "config.json")
			other := bytes.ReplaceAll(check.Read(t, config), []byte(`"transformers.js_config"`), []byte(`"other"`))
			check.Err(t, os.WriteFile(config, other, 0o600))
		}, "", ""}, // the model itself does
		{"a page that is not isolated", page(isolated("false")), "not cross-origin isolated", record.SetUp},
		{"no shared memory", page("globalThis.SharedArrayBuffer = " + isolated("true")), "no SharedArrayBuffer",
			record.SetUp},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.damage()
			m := open()
			err := s.Load(limited(t), m)
			if c.class == "" {
				check.Err(t, err)
				check.Err(t, s.Unload(limited(t)))
				return
			}
			if err == nil || engine.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.message) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("class %q of %v", engine.ClassOf(err), err)
			}
		})
	}
}

// large writes an ONNX folder whose weights of so many bytes are elsewhere, as its only file says.
func large(t *testing.T, bytes int64) models.Model {
	t.Helper()
	field := func(number int, parts ...string) string { // all are short
		text := strings.Join(parts, "")
		return string([]byte{byte(number<<3 | 2), byte(len(text))}) + text
	}
	entry := func(key, value string) string { return field(13, field(1, key), field(2, value)) }
	const float32s = "\x01"
	weights := field(5, "\x10"+float32s, field(8, "w"), entry("location", "model.onnx_data"),
		entry("length", strconv.FormatInt(bytes, 10)))
	cache := field(11, field(1, "past_key_values.0.key"), field(2, field(1, "\x08"+float32s)))
	dir := check.Tree(t, t.TempDir(), map[string]string{"config.json": "{}", "tokenizer.json": "{}",
		"tokenizer_config.json": "{}", "onnx/model.onnx_data": "", "onnx/model.onnx": field(7, weights, cache)})
	return models.Model{Path: dir, Model: record.Model{Name: "large", Format: models.ONNX}}
}

// What does not fit in WebAssembly is refused before a browser starts, and what the adapter cannot compute before a
// load.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	of := func(backend string) *Engine {
		return New(Config{Settings: browser.Defaults(), Backend: backend}, engine.Settings{})
	}
	enginetest.OneLine(t, of(Wasm).Check(t.Context(), large(t, 3<<30)), fault.WontFit, record.OOM, "3.0 GiB", "4 GiB")
	check.Err(t, of(Wasm).Check(t.Context(), large(t, 1<<30)))
	check.Err(t, of(WebGPU).Check(t.Context(), large(t, 3<<30)))
	half := prepared{Model: onnx.Model{KVDType: F16}}
	for backend, kind := range map[string]fault.Kind{Wasm: "", WebGPU: fault.NoF16} {
		if err := of(backend).runs(half, record.Device{Name: "adapter"}); fault.Of(err) != kind {
			t.Errorf("%s: %v", backend, err)
		}
	}
}

// The script's and ONNX Runtime's messages have the classes that a user can act on.
func TestClasses(t *testing.T) {
	for message, want := range map[string]record.Class{
		"Error: transformers.js was to compute on WebGPU, but computes in WebAssembly":                record.Fallback,
		"Error: no threads: the page is not cross-origin isolated":                                    record.SetUp,
		"Error: the browser has no WebGPU adapter for transformers.js":                                record.SetUp,
		"Error: Can't create a session. ERROR_CODE: 6, ERROR_MESSAGE: std::bad_alloc":                 record.OOM,
		"RangeError: WebAssembly.Memory.grow(): Maximum memory size exceeded":                         record.OOM,
		"Error: `local_files_only=true` and file was not found locally at \"/t/1/model/config.json\"": record.Download,
		"TypeError: x is not a function":                                                              "",
	} {
		if got := classify(message); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// Where nothing is dispatched, WebGPU was asked for in vain.
func TestFallbackIsFound(t *testing.T) {
	m := enginetest.TinyModel(t)
	e := made(t, Config{Settings: browser.Defaults(), Backend: WebGPU}, engine.Settings{Threads: 1})
	s, probe := loaded(t, e, m)
	if d := probe.Device(); d.Class != record.SoftwareAdapter || probe.Engine().Policy["subgroups"] != "off" {
		t.Errorf("device %+v, policy %v", d, probe.Engine().Policy)
	}
	parts := probe.Figures(t, browser.MethodLedger, "page")
	if parts["weights_bytes"] < 1.7e6 || parts["weights_bytes"] > 3e6 {
		t.Errorf("ledger: %v", parts)
	}
	got, u := ids(t, s, "The", 4)
	if len(got) != 4 || u.Reported["dispatches"] < 100 {
		t.Errorf("ids %v, reported %v", got, u.Reported)
	}
	// The script's count of dispatches is the evidence; take it away.
	_, err := browser.Call[any](limited(t), s.(*browser.Session).Page,
		`(() => { const f = document.createElement("iframe"); document.body.append(f);
		GPUComputePassEncoder.prototype.dispatchWorkgroups = f.contentWindow.GPUComputePassEncoder.prototype.dispatchWorkgroups; })()`)
	check.Err(t, err)
	_, err = s.Generate(limited(t), engine.Request{Prompt: "The", MaxTokens: 2, IgnoreEOS: true}, func(record.Token) {})
	if engine.ClassOf(err) != record.Fallback || strings.Contains(err.Error(), "\n") {
		t.Errorf("class %q of %v", engine.ClassOf(err), err)
	}
	check.Err(t, s.Unload(limited(t)))
	if parts := probe.Figures(t, browser.MethodLedger, "page"); parts["live_bytes"] != 0 {
		t.Errorf("after the unload: %v", parts)
	}
}

// A seed decides what is drawn, and f16 runs in WebAssembly.
func TestSampledAndHalf(t *testing.T) {
	m := enginetest.TinyModel(t)
	e := made(t, Config{Settings: browser.Defaults()}, engine.Settings{Threads: 1, DType: F16})
	s, probe := loaded(t, e, m)
	if p := probe.Engine(); p.Policy["kv_dtype"] != F16 || p.Weights != record.OtherValues {
		t.Errorf("%+v", p)
	}
	draw := func(seed int) (ids []int) {
		answer, err := browser.CallWith[json.RawMessage](limited(t), s.(*browser.Session).Page, "llmparity.generate",
			map[string]any{"prompt": "The", "maxTokens": 12, "temperature": 1, "seed": seed, "ignoreEOS": true})
		check.Err(t, err)
		var said struct{ Text string }
		check.Err(t, json.Unmarshal(answer, &said))
		for _, r := range said.Text {
			ids = append(ids, int(r))
		}
		return ids
	}
	if a, again, b := draw(1), draw(1), draw(2); !slices.Equal(a, again) || slices.Equal(a, b) {
		t.Errorf("seed 1: %v, %v; seed 2: %v", a, again, b)
	}
}
