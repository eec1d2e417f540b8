//go:build slow

package webllm

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
	"llmparity/internal/stats"
)

// BenchmarkProfiler compares the browser's CPU time a token with and without the profiler, in alternating pairs.
func BenchmarkProfiler(b *testing.B) {
	const pairs, tokens = 24, 200
	a := openApp(b)
	a.evaluate(b, fmt.Sprintf(`(async () => {
		const { WebLLMProfiler } = await import("./webllm-profiler.js");
		const { model, options } = await import("./config.js");
		const { MLCEngine } = await import(options.webllm);
		const engine = new MLCEngine(options.engineConfig);
		await engine.reload(model);
		const request = { ignore_eos: true, temperature: 0 }, prompt = "the quick brown fox";
		globalThis.plain = async () => {
			const stream = await engine.completions.create({ ...request, prompt, max_tokens: %[1]d, stream: true, stream_options: { include_usage: true } });
			for await (const chunk of stream);
		};
		const p = new WebLLMProfiler(engine);
		await p.initialize();
		globalThis.profiled = () => p.complete(prompt, { ...request, max_gen_len: %[1]d }).then(() => p.summary().sampling.share);
		await plain();
	})()`, tokens), nil)
	var with, without []float64
	for pair := range pairs {
		order := []string{"plain()", "profiled()"}
		if pair%2 == 1 {
			slices.Reverse(order)
		}
		for _, call := range order {
			begin := cpuTime(b, a.Members())
			a.evaluate(b, call, nil)
			took := (cpuTime(b, a.Members()) - begin).Seconds() * 1000 / tokens
			if call == "plain()" {
				without = append(without, took)
			} else {
				with = append(with, took)
			}
		}
	}
	var ratios []float64
	for i := range with {
		ratios = append(ratios, with[i]/without[i])
	}
	i := stats.MedianInterval(ratios, 0.95)
	b.Logf("CPU time a token: %.3f ms without, ratio %.4f (95%% CI %.4f to %.4f)", stats.Median(without), stats.Median(ratios),
		i.Lo, i.Hi)
	if i.Lo > 1.02 {
		b.Errorf("the profiler costs more than 2%% of the CPU time a token")
	}
	b.ReportMetric(stats.Median(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
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
