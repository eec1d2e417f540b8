//go:build slow

package webllm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/assets/profiler"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// BenchmarkProfiler compares the browser's CPU time with and without the profiler, in alternating pairs: while the tiny
// model generates, and while an engine only waits, which a busy machine disturbs less. What sampling adds to waiting
// must be at most 2% of what generating takes in the same time. The watch over blocks, which wakes an idle page 50
// times a second, is counted apart.
func BenchmarkProfiler(b *testing.B) {
	const tokens, wait = 200, 3 // seconds
	a := openApp(b)
	a.evaluate(b, fmt.Sprintf(`(async () => {
		const { WebLLMProfiler } = await import("./webllm-profiler.js");
		const { model, options } = await import("./config.js");
		const { MLCEngine } = await import(options.webllm);
		const engine = new MLCEngine(options.engineConfig);
		await engine.reload(model);
		const request = { ignore_eos: true, temperature: 0 }, prompt = "the quick brown fox";
		globalThis.plain = async () => {
			const stream = await engine.completions.create({ ...request, prompt, max_tokens: %d, stream: true });
			for await (const chunk of stream);
		};
		const p = new WebLLMProfiler(engine);
		await p.initialize();
		globalThis.profiled = () => p.complete(prompt, { ...request, max_gen_len: %[1]d });
		globalThis.wait = () => new Promise((done) => setTimeout(done, %d000));
		const waits = (samplingInterval) => new WebLLMProfiler({ modelId: ["none"], worker: true, interruptGenerate() {},
			completions: { create: async () => (async function* () { await wait(); })() } }, { samplingInterval });
		const sampling = waits(100), watching = waits(1e6);
		await sampling.initialize();
		await watching.initialize();
		Object.assign(globalThis, { sampled: () => sampling.complete(""), watched: () => watching.complete("") });
		await plain();
	})()`, tokens, wait), nil)
	pairs := func(n int, without, with string) (base, ratios, more []float64, took time.Duration) {
		for pair := range n {
			order, cpu := []string{without, with}, map[string]float64{}
			if pair%2 == 1 {
				slices.Reverse(order)
			}
			for _, call := range order {
				begin, at := cpuTime(b, a.Members()), time.Now()
				a.evaluate(b, call+"()", nil)
				cpu[call] = (cpuTime(b, a.Members()) - begin).Seconds()
				if call == without {
					took += time.Since(at)
				}
			}
			base, more = append(base, cpu[without]), append(more, cpu[with]-cpu[without])
			ratios = append(ratios, cpu[with]/cpu[without])
		}
		return base, ratios, more, took / time.Duration(n)
	}
	base, ratios, _, took := pairs(10, "plain", "profiled")
	i := stats.MedianInterval(ratios, 0.95)
	b.Logf("CPU time a token: %.3f ms without; ratio %.4f (95%% CI %.4f to %.4f)", stats.Median(base)*1000/tokens,
		stats.Median(ratios), i.Lo, i.Hi)
	working := stats.Median(base) / took.Seconds() // cores
	_, _, watch, _ := pairs(7, "wait", "watched")
	_, _, more, _ := pairs(7, "watched", "sampled")
	share := stats.Median(more) / wait / working
	b.Logf("waiting: the watch takes %.2f ms a second, sampling %.2f; generating takes %.0f: %.2f%% of it",
		stats.Median(watch)*1000/wait, stats.Median(more)*1000/wait, working*1000, 100*share)
	if i.Lo > 1.02 || share > 0.02 {
		b.Error("sampling costs more than 2% of the CPU time a token")
	}
	b.ReportMetric(share, "share")
	b.ReportMetric(0, "ns/op")
}

// What the app saves is read by pandas, and by report and compare, with the same figures.
func TestProfilerCSVIsRead(t *testing.T) {
	a := openApp(t)
	shown := a.pressed(t, prompt)
	_, text := a.saved(t)
	dir := t.TempDir()
	check.Tree(t, dir, map[string]string{"app.csv": text})
	requirements := check.Read(t, filepath.Join("..", "..", "scripts", "recompute", "requirements.txt"))
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(requirements)))[:12]
	python := filepath.Join(cache.Dir(os.Getenv), "python", key, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("there is no %s: run `scripts/setup pandas`", python)
	}
	says := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", filepath.Base(program), args, err)
		}
		return string(out)
	}
	var got struct {
		Rows, Tokens int
		GPU, Heap    float64
		Sorted       bool
	}
	check.Err(t, json.Unmarshal([]byte(says(python, "-B", "-c", `import json, pandas
d = pandas.read_csv("app.csv", parse_dates=["timestamp"])
print(json.dumps({"rows": len(d), "tokens": int(d.tokens.max()), "gpu": float(d.gpu_peak_mb.max()), "heap": float(d.heap_used_mb.max()),
    "sorted": bool(d.timestamp.is_monotonic_increasing and str(d.timestamp.dt.tz) == "UTC" and d.pid.isna().all())}))`)), &got))
	want := shown.Ledger["page_peak_bytes"] / record.MiB
	if got.Rows != int(shown.Sampling.Samples) || got.Tokens != shown.Completions[0].Tokens ||
		!got.Sorted || math.Abs(got.GPU-want) > 1e-5 {
		t.Errorf("pandas reads %+v; the app has %+v and %g MiB", got, shown.Sampling, want)
	}
	program := filepath.Join(dir, "llmparity")
	build, err := exec.Command("go", "build", "-o", program, "../../cmd/llmparity").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, build)
	}
	check.Has(t, says(program, "report", "app.csv"), "peak WebGPU")
	for _, command := range [][]string{{"report", "app.csv"}, {"compare", "app.csv", "app.csv"}} {
		var peak float64
		said := says(program, append(command, "--columns", "peak_webgpu_mb")...)
		_, err := fmt.Sscanf(said, "peak_webgpu_mb\n%g", &peak)
		check.Err(t, err)
		if math.Abs(peak-want) > 1e-3*want {
			t.Errorf("%s reads a peak of %g MiB, want %g", command[0], peak, want)
		}
	}
}

// The types are those of the module: the examples are TypeScript, too, and wrong calls are refused.
func TestProfilerTypes(t *testing.T) {
	const version = "5.9.3" // of TypeScript, which nothing else needs
	dir := t.TempDir()
	written, err := profiler.Files(Scripts())
	check.Err(t, err)
	files := map[string]string{"package.json": `{"private": true, "type": "module"}`}
	for _, f := range written {
		files[f.Name] = string(f.Text)
	}
	for name, text := range map[string]string{"readme": files["README.md"],
		"howto": string(check.Read(t, filepath.Join("..", "..", "docs", "howto", "profile-your-app.md")))} {
		_, code, ok := strings.Cut(text, "```js\n")
		code, _, _ = strings.Cut(code, "```")
		if !ok || !strings.Contains(code, "profiler.complete(") {
			t.Fatalf("%s has no example", name)
		}
		files[name+".ts"] = code
	}
	files["own.ts"] = `import { WebLLMProfiler, type Sample, type Summary, type Completion } from "./webllm-profiler.js";
import * as module from "./webllm-profiler.js";
const stop = new AbortController();
const p = new WebLLMProfiler("id", { samplingInterval: 50, onSample: (s: Sample) => s.gpu_mb?.toFixed(1), onToken: (n: number) => n,
  label: "a", webllm: "./web-llm.js", engineConfig: { logLevel: "WARN" } });
await p.initialize({ signal: stop.signal });
const c: Completion = await p.complete("the", { max_gen_len: 5, ignore_eos: true, signal: stop.signal });
const s: Summary = p.summary(), n: number = c.tokens, all: Sample[] = p.getSamples(), csv: string = p.toCSV();
p.downloadCSV();
p.downloadCSV("a.csv");
await p.dispose();
new WebLLMProfiler({ completions: { create: async () => ({}) }, interruptGenerate() {} });
// @ts-expect-error
new WebLLMProfiler(1);
// @ts-expect-error
new WebLLMProfiler("id", { samplingIntervall: 5 });
// @ts-expect-error
p.complete(5);
// @ts-expect-error
const wrong: number = all[0].heap_used_mb;
export { s, n, csv, wrong, module };
`
	check.Tree(t, dir, files)
	runs := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", args[0], err, out)
		}
	}
	runs("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "typescript@"+version)
	runs(filepath.Join("node_modules", ".bin", "tsc"), "--noEmit", "--strict", "--target", "es2023",
		"--module", "nodenext",
		"--lib", "es2023,dom,dom.iterable",
		"own.ts", "readme.ts", "howto.ts")
}

// cpuTime is the CPU time of processes so far.
func cpuTime(t testing.TB, pids []int) (sum time.Duration) {
	t.Helper()
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			check.Err(t, err)
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}

// A load that is aborted rejects at once, and leaves no WebGPU memory; the next one works. An engine in a worker is
// measured as far as it can be.
func TestProfilerAbortsLoads(t *testing.T) {
	a := openApp(t)
	var got struct {
		Error    string
		MS, Left float64
		Tokens   int
		Cannot   []string
		InWorker int
		NoLedger bool
	}
	a.evaluate(t, `(async () => {
		const { WebLLMProfiler } = await import("./webllm-profiler.js");
		const { model, options } = await import("./config.js");
		const p = new WebLLMProfiler(model, options), stop = new AbortController(), result = {};
		const loading = p.initialize({ signal: stop.signal });
		while (p.summary().ledger.live_bytes === 0) await new Promise((done) => setTimeout(done, 1));
		const at = performance.now();
		stop.abort();
		try { await loading; } catch (e) { result.error = e.name; }
		result.ms = performance.now() - at;
		for (let i = 0; i < 1000 && p.summary().ledger.live_bytes > 0; i++) await new Promise((done) => setTimeout(done, 20));
		result.left = p.summary().ledger.live_bytes;
		await p.initialize();
		result.tokens = (await p.complete("the quick", { max_gen_len: 7, ignore_eos: true })).tokens;
		await p.dispose();
		const { CreateWebWorkerMLCEngine } = await import(options.webllm);
		const engine = await CreateWebWorkerMLCEngine(new Worker("worker.js", { type: "module" }), model, options.engineConfig);
		const q = new WebLLMProfiler(engine);
		await q.initialize();
		result.inWorker = (await q.complete("the quick", { max_gen_len: 7, ignore_eos: true })).tokens;
		const { ledger, cannot } = q.summary();
		await engine.unload();
		return Object.assign(result, { noLedger: ledger === undefined, cannot });
	})()`, &got)
	t.Logf("%+v", got)
	if got.Error != "AbortError" || got.MS > 200 || got.Left != 0 || got.Tokens != 7 {
		t.Errorf("%+v", got)
	}
	// WebLLM's count lacks the token that the prompt yields.
	check.Has(t, strings.Join(got.Cannot, "; "), "runs in a worker")
	if got.InWorker < 6 || !got.NoLedger {
		t.Errorf("in a worker: %+v", got)
	}
}
