package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
)

// barePage is the least that a page must have to load a model by WebLLM: it gives the time of the first progress event.
const barePage = `<!doctype html><meta charset=utf-8><script type=module>
import * as webllm from "./web-llm.js";
globalThis.first = new Promise((resolve, reject) => {
  const engine = new webllm.MLCEngine({
    appConfig: { model_list: [{ model: new URL("model/", location.href).href, model_id: %[1]q, model_lib: new URL("library.wasm", location.href).href }] },
    initProgressCallback: () => resolve(performance.timeOrigin + performance.now()),
    logLevel: "WARN",
  });
  engine.reload(%[1]q).catch(reject);
});
</script>`

// BenchmarkStart holds how long it takes from nothing until WebLLM's first progress event, through the engine, against a bare script
// that does the same with chromedp's own defaults: interleaved pairs, the median of their ratios and its 95 % interval. What
// the runner waits for on purpose in between, the baseline, is not in it.
func BenchmarkStart(b *testing.B) {
	const pairs, atMost = 20, 1.1
	c, m := tinyModel(b)
	plain := bareServer(b, c)
	for range b.N {
		var ratios, ours, theirs []float64
		for i := range pairs {
			var o, t time.Duration
			if i%2 == 0 {
				o, t = startOurs(b, c, m), startBare(b, plain.URL)
			} else {
				t, o = startBare(b, plain.URL), startOurs(b, c, m)
			}
			ours, theirs, ratios = append(ours, o.Seconds()), append(theirs, t.Seconds()), append(ratios, o.Seconds()/t.Seconds())
		}
		for _, s := range [][]float64{ratios, ours, theirs} {
			slices.Sort(s)
		}
		ratio := (ratios[pairs/2-1] + ratios[pairs/2]) / 2
		b.ReportMetric(ratio, "ratio")
		b.ReportMetric(ours[pairs/2]*1000, "ms-ours")
		b.ReportMetric(theirs[pairs/2]*1000, "ms-bare")
		// The 6th and the 15th of 20 hold the median at 95.9 %.
		b.Logf("ratio %.3f (95 %%: %.3f to %.3f), ours %.0f ms, bare %.0f ms", ratio, ratios[5], ratios[14], ours[pairs/2]*1000, theirs[pairs/2]*1000)
		if ratio > atMost {
			b.Errorf("it takes %.3f times as long as a bare script, want at most %.1f", ratio, atMost)
		}
	}
}

// startOurs opens an engine and loads the model; the stage that WebLLM's first progress event begins tells when that was.
func startOurs(b *testing.B, c Config, m engine.Model) time.Duration {
	b.Helper()
	probe := &enginetest.Probe{}
	begin := time.Now()
	s, err := New(c).Open(b.Context(), probe)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Load(b.Context(), m); err != nil {
		b.Error(err)
	}
	if err := s.Close(); err != nil {
		b.Error(err)
	}
	for _, span := range probe.Spans() {
		if span.Name == "download" {
			return span.Begin.Sub(begin)
		}
	}
	b.Fatal("the load has no stage that WebLLM's progress begins")
	return 0
}

func startBare(b *testing.B, address string) time.Duration {
	b.Helper()
	path, err := FindChrome("")
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	alloc, cancel := chromedp.NewExecAllocator(b.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("enable-unsafe-webgpu", true), chromedp.Flag("use-webgpu-adapter", "swiftshader"), chromedp.Env("TMPDIR="+shortDir(b)))...)
	defer cancel()
	tab, cancel := chromedp.NewContext(alloc)
	defer cancel()
	if err := chromedp.Do(tab, chromedp.Navigate(address)); err != nil {
		b.Fatal(err)
	}
	first, err := chromedp.Run(tab, chromedp.Evaluate[float64]("first", chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return time.UnixMicro(int64(first * 1000)).Sub(begin)
}

func bareServer(b *testing.B, c Config) *httptest.Server {
	b.Helper()
	code, err := c.Bundle.read()
	if err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, barePage, files.pack.ID)
	})
	mux.HandleFunc("GET /web-llm.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Write(code)
	})
	mux.HandleFunc("GET /library.wasm", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, files.pack.Library.Path) })
	mux.Handle("GET /model/resolve/main/", http.StripPrefix("/model/resolve/main", http.FileServerFS(os.DirFS(files.pack.Dir))))
	s := httptest.NewServer(mux)
	b.Cleanup(s.Close)
	return s
}
