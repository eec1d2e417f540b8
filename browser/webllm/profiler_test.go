package webllm

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/assets/profiler"
	"llmparity/browser"
	"llmparity/browser/chrome"
	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/serve"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/record/foreign"
)

// app is the example app in a browser of its own: the files that `llmparity profiler` writes, but for the
// configuration.
type app struct {
	driver.Tab
	model string // the path of the tiny model's files
}

// openApp serves the example with the tiny model, and opens it.
func openApp(t testing.TB, flags ...string) *app {
	t.Helper()
	tinyModel(t)
	site, err := newSite(Bundle{})
	check.Err(t, err)
	offer, err := site.offer(files.pack)
	check.Err(t, err)
	dir := t.TempDir()
	written, err := profiler.Files(Scripts())
	check.Err(t, err)
	for _, f := range written {
		check.Err(t, os.WriteFile(filepath.Join(dir, f.Name), f.Text, 0o644))
	}
	a := &app{model: offer}
	check.Tree(t, dir, map[string]string{"config.js": fmt.Sprintf(`const at = (path) => new URL(path, import.meta.url).href;
export const model = %q;
export const maxTokens = 9;
const list = [{ model_id: model, model: at("%[2]s/model/"), model_lib: at("%[2]s/library.wasm") }];
export const options = { webllm: at("engine/web-llm.js"), engineConfig: { appConfig: { model_list: list }, logLevel: "WARN" } };`,
		files.pack.ID, offer),
		"worker.js": `import { WebWorkerMLCEngineHandler } from "./engine/web-llm.js";
const handler = new WebWorkerMLCEngineHandler();
onmessage = (message) => handler.onmessage(message);`})
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.Folder(os.DirFS(dir)))
	for _, below := range []string{"/engine/web-llm.js", "/{offer}/model/", "/{offer}/library.wasm"} {
		mux.Handle("GET "+below, site)
	}
	server, err := serve.Loopback(mux)
	check.Err(t, err)
	path, err := find.Chrome("")
	check.Err(t, err)
	a.Tab, err = chrome.Launch(watched(t), path, driver.Options{Launch: driver.Launch{Flags: flags},
		Adapter: browser.SwiftShader})
	check.Err(t, err)
	t.Cleanup(func() {
		check.Also(t, a.Close())
		check.Also(t, server.Close())
		check.Also(t, site.close())
	})
	check.Err(t, a.Open(watched(t), server.Base+"/", server.Base+"/"))
	return a
}

// evaluate returns what an expression becomes in the app's page, into which a result is decoded.
func (a *app) evaluate(t testing.TB, expression string, into any) {
	t.Helper()
	text, err := a.Evaluate(watched(t), driver.PageThread, expression)
	check.Err(t, err)
	if into != nil {
		check.Err(t, json.Unmarshal(text, into))
	}
}

// profiled is what the module's summary has, as far as tests look.
type profiled struct {
	Load        struct{ Duration float64 }
	Completions []struct {
		Tokens  int       `json:"tokens"`
		Prompt  int       `json:"prompt_tokens"`
		IDs     []int     `json:"token_ids"`
		Times   []float64 `json:"token_times_ms"`
		TTFT    float64   `json:"ttft_ms"`
		TPS     float64   `json:"decode_tps"`
		Block   float64   `json:"longest_block_ms"`
		Length  float64   `json:"duration_ms"`
		Aborted bool      `json:"aborted"`
	}
	Heap     struct{ Baseline, Peak float64 }
	Ledger   map[string]float64
	Sampling struct {
		Samples, Share float64
	}
	Cannot []string
}

// pressed presses Generate, and returns the summary that the app then shows.
func (a *app) pressed(t *testing.T, text string) profiled {
	t.Helper()
	var shown string
	a.evaluate(t, fmt.Sprintf(`new Promise((done) => {
		document.getElementById("prompt").value = %q;
		document.getElementById("generate").click();
		const look = () => {
			const { textContent } = document.getElementById("shown");
			if (/^(\{|\w*Error)/.test(textContent)) done(textContent);
			else setTimeout(look, 20);
		};
		look();
	})`, text), &shown)
	var p profiled
	if err := json.Unmarshal([]byte(shown), &p); err != nil {
		t.Fatalf("the app shows %s", shown)
	}
	return p
}

// saved presses Save CSV, and returns the name and the text of the file.
func (a *app) saved(t *testing.T) (name, text string) {
	t.Helper()
	var file [2]string
	a.evaluate(t, `new Promise((done) => {
		let blob;
		const { createObjectURL } = URL, { click } = HTMLAnchorElement.prototype;
		URL.createObjectURL = (b) => { blob = b; return "blob:nothing"; };
		HTMLAnchorElement.prototype.click = function () { blob.text().then((text) => done([this.download, text])); };
		document.getElementById("save").click();
		Object.assign(URL, { createObjectURL });
		HTMLAnchorElement.prototype.click = click;
	})`, &file)
	return file[0], file[1]
}

// The example app counts as a run counts: tokens, and WebGPU memory to the byte. Its CSV is a memory log.
func TestProfiler(t *testing.T) {
	m := tinyModel(t)
	s, probe := idle(t)
	loads(t, s, m)
	ids, usage := says(t, s, 9)
	want := probe.Figures(t, browser.MethodLedger, "page")
	inside := probe.Values(t, chrome.MethodHeap)
	unloaded(t, s, probe)

	a := openApp(t)
	got := a.pressed(t, prompt)
	c := got.Completions[0]
	if !slices.Equal(c.IDs, ids) || c.Tokens != len(ids) || c.Prompt != len(usage.PromptIDs) {
		t.Errorf("%d tokens %v of %d; a run has %v of %d", c.Tokens, c.IDs, c.Prompt, ids, len(usage.PromptIDs))
	}
	sameLedger(t, got.Ledger, want)
	if len(c.Times) != 9 || !slices.IsSorted(c.Times) || c.TTFT <= 0 || c.Length < c.Times[8] || c.Block <= 0 ||
		math.Abs(c.TPS-8000/(c.Times[8]-c.Times[0])) > 1e-6*c.TPS {
		t.Errorf("times %+v", c)
	}
	if len(got.Cannot) != 2 || !strings.Contains(got.Cannot[0], "memory of processes") {
		t.Errorf("not measured: %q", got.Cannot)
	}
	name, text := a.saved(t)
	r, err := foreign.Read("app.csv", []byte(text))
	check.Err(t, err)
	if name != files.pack.ID+".csv" || len(r.Cells) != 1 || r.Cells[0].Engine != files.pack.ID {
		t.Errorf("%s has %+v", name, r.Cells)
	}
	if peak := highest(r, foreign.GPUPeak); math.Abs(peak-want["page_peak_bytes"]) > 2 {
		t.Errorf("the CSV's peak is %.0f bytes, the ledger's %.0f", peak, want["page_peak_bytes"])
	}
	heap, ofRun := last(r, foreign.Heap), inside["used_bytes"]+inside["backing_storage_bytes"]
	t.Logf("heap: %.2f MiB, in a run %.2f MiB", heap/record.MiB, ofRun/record.MiB)
	if math.Abs(heap/ofRun-1) > 0.15 {
		t.Error("the heaps differ by more than garbage explains")
	}
	t.Run("handed in", func(t *testing.T) { handedIn(t, a) })
}

// sameLedger compares what the module's ledger has with that of a run.
func sameLedger(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, name := range []string{"live_bytes", "live_count", "page_peak_bytes", "buffer_bytes"} {
		if got[name] != want[name] || got[name] == 0 {
			t.Errorf("%s is %.0f, in a run %.0f", name, got[name], want[name])
		}
	}
}

// highest is the highest value of a name in a memory log.
func highest(r *record.Run, name string) (most float64) {
	for _, m := range r.Attempts[0].Metrics {
		if m.Name == name {
			most = max(most, m.Value)
		}
	}
	return most
}

// last is the last value of a name in a memory log.
func last(r *record.Run, name string) (v float64) {
	for _, m := range r.Attempts[0].Metrics {
		if m.Name == name {
			v = m.Value
		}
	}
	return v
}

// handedIn profiles an engine that the app made, with a label that must be quoted, and aborts.
func handedIn(t *testing.T, a *app) {
	var got struct {
		Errors  []string
		CSV     string
		Summary profiled
		Again   int
		After   float64
	}
	a.evaluate(t, `(async () => {
		const { WebLLMProfiler } = await import("./webllm-profiler.js");
		const { model, options } = await import("./config.js");
		const { MLCEngine } = await import(options.webllm);
		const errors = [];
		const fails = async (run) => { try { await run(); errors.push("none"); } catch (e) { errors.push(e.name + ": " + e.message); } };
		const engine = new MLCEngine(options.engineConfig);
		let seen = 0, stop = new AbortController();
		const label = 'evil, "quoted"\n=cmd()\0é';
		const p = new WebLLMProfiler(engine, { label, samplingInterval: 10, onSample: () => { throw new Error("of the app's own"); },
			onToken: (count) => { seen = count; if (count === 3) stop.abort(); } });
		await fails(() => p.complete("too early"));
		await fails(() => p.initialize());
		await engine.reload(model);
		await p.initialize();
		await fails(() => p.complete("the quick", { max_gen_len: 400, signal: stop.signal, ignore_eos: true }));
		const both = [p.complete("the quick", { max_gen_len: 5, ignore_eos: true }), fails(() => p.complete("the quick"))];
		const again = (await both[0]).tokens;
		await both[1];
		await fails(() => new WebLLMProfiler(""));
		await fails(() => new WebLLMProfiler(model, { samplingInterval: -1 }));
		const result = { errors, CSV: p.toCSV(), summary: p.summary(), again, seen };
		await p.dispose();
		const own = engine.loadedModelIdToPipeline.size;
		await engine.unload();
		return { ...result, after: own };
	})()`, &got)
	want := []string{"Error: await initialize() first", "Error: the engine has not loaded a model: await its reload() first",
		"AbortError: signal is aborted without reason", "Error: a profiler of this page is measuring already",
		"TypeError: the first argument must be", "RangeError: samplingInterval is -1"}
	for i, text := range want {
		if i >= len(got.Errors) || !strings.HasPrefix(got.Errors[i], text) {
			t.Fatalf("errors %q, want %q", got.Errors, want)
		}
	}
	first := got.Summary.Completions[0]
	if !first.Aborted || first.Tokens < 3 || first.Tokens > 8 || got.Again != 5 || got.After != 1 {
		t.Errorf("aborted after %d tokens, then %d; %g models left", first.Tokens, got.Again, got.After)
	}
	if len(got.Summary.Completions) != 2 || len(got.Summary.Cannot) != 4 {
		t.Errorf("summary %+v", got.Summary)
	}
	r, err := foreign.Read("app.csv", []byte(got.CSV))
	check.Err(t, err)
	if label := "evil, \"quoted\"\n=cmd()\ufffdé"; len(r.Cells) != 1 || r.Cells[0].Engine != label {
		t.Errorf("cells %+v, want the label %q", r.Cells, label)
	}
}

// The module is one file that imports nothing, and every type's method exists.
func TestProfilerIsOneFile(t *testing.T) {
	written, err := profiler.Files(Scripts())
	check.Err(t, err)
	text := map[string]string{}
	for _, f := range written {
		text[f.Name] = string(f.Text)
	}
	for line := range strings.Lines(text[profiler.Module]) {
		if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "export ") &&
			!strings.HasPrefix(line, "export class WebLLMProfiler") {
			t.Errorf("the module has the line %q", line)
		}
	}
	_, class, _ := strings.Cut(text["webllm-profiler.d.ts"], "export declare class WebLLMProfiler {")
	for _, name := range []string{"constructor", "initialize", "complete", "getSamples", "summary", "toCSV",
		"downloadCSV", "dispose"} {
		check.Has(t, class, "  "+name+"(")
		check.Has(t, text[profiler.Module], name+"(")
	}
	if n := strings.Count(text["app.js"]+text["index.html"], "\n"); n > 38 {
		t.Errorf("the example has %d lines", n)
	}
	if strings.Contains(text["config.js"], "WEBLLM_VERSION") {
		t.Error("the example names no version of WebLLM")
	}
}
