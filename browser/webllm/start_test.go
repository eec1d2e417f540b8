package webllm

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/assets/page"
	"llmparity/browser/find"
	"llmparity/internal/record"
)

// barePage is a minimal page that loads a model with WebLLM and returns the time of the first progress event.
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

// BenchmarkStart compares the time from the program's start to WebLLM's first progress event with a bare chromedp
// script, also a separate process: interleaved pairs, the median of their ratios and its 95 % interval. Package and
// library are cached. The deliberate wait for a baseline does not count.
func BenchmarkStart(b *testing.B) {
	const pairs, atMost = 20, 1.1
	plain := bareServer(b)
	program := filepath.Join(b.TempDir(), "llmparity")
	if text, err := exec.Command("go", "build", "-o", program, "llmparity/cmd/llmparity").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	startOurs(b, program) // fill the caches
	for range b.N {
		var ratios, ours, theirs []float64
		for i := range pairs {
			var whole, baseline, t time.Duration
			if i%2 == 0 {
				whole, baseline = startOurs(b, program)
				t = startBare(b, plain.URL)
			} else {
				t = startBare(b, plain.URL)
				whole, baseline = startOurs(b, program)
			}
			ours, theirs = append(ours, 1000*whole.Seconds()), append(theirs, 1000*t.Seconds())
			ratios = append(ratios, (whole-baseline).Seconds()/t.Seconds())
		}
		ratio := medianOf(ratios)
		b.ReportMetric(ratio.median, "ratio")
		b.ReportMetric(medianOf(ours).median, "ms-ours")
		b.ReportMetric(medianOf(theirs).median, "ms-bare")
		b.Logf("ratio %v without the baseline", ratio)
		if ratio.median > atMost {
			b.Errorf("it takes %.3f times as long as a bare script, more than %.1f", ratio.median, atMost)
		}
	}
}

// startOurs runs the program, and returns the time until WebLLM's first progress event, which begins a load stage, and
// the part of it for the baseline.
func startOurs(b *testing.B, program string) (whole, baseline time.Duration) {
	b.Helper()
	dir := b.TempDir()
	begin := time.Now()
	text, err := exec.Command(program, "run", "--engines", Name, "--repetitions", "1", "--max-tokens", "1", "--quiet",
		"--out", dir).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	r, err := record.Open(filepath.Join(dir, "latest"))
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range r.Attempts[0].Phases {
		if p.Name == record.Baseline {
			baseline = time.Duration(p.EndNS - p.BeginNS)
		}
	}
	for _, stage := range r.Attempts[0].Stages {
		if stage.Name == "download" {
			return r.Meta.Started.Add(time.Duration(stage.BeginNS)).Sub(begin), baseline
		}
	}
	b.Fatal("the load has no stage that WebLLM's progress begins")
	return 0, 0
}

// bareAddress makes the test binary the bare script, for the page at this URL.
const bareAddress = "LLMPARITY_BARE_ADDRESS"

// startBare runs the bare script as a separate process.
func startBare(b *testing.B, address string) time.Duration {
	b.Helper()
	short, err := os.MkdirTemp("", "") // a browser's socket must fit below it
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(short)
	script := exec.Command(os.Args[0])
	script.Env = append(os.Environ(), bareAddress+"="+address, "TMPDIR="+short)
	script.Stderr = os.Stderr
	begin := time.Now()
	text, err := script.Output()
	if err != nil {
		b.Fatal(err)
	}
	first, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.UnixMicro(first).Sub(begin)
}

// bareScript is a typical script. It prints when WebLLM's first progress event came.
func bareScript(address string) error {
	path, err := find.Chrome("")
	if err != nil {
		return err
	}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(),
		append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
			chromedp.Flag("enable-unsafe-webgpu", true), chromedp.Flag("use-webgpu-adapter", "swiftshader"))...)
	defer cancel()
	tab, cancel := chromedp.NewContext(alloc)
	defer cancel()
	if err := chromedp.Do(tab, chromedp.Navigate(address)); err != nil {
		return err
	}
	first, err := chromedp.Run(tab, chromedp.Evaluate[float64]("first", chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	fmt.Println(int64(first * 1000))
	return nil
}

func bareServer(b *testing.B) *httptest.Server {
	b.Helper()
	tinyModel(b)
	code, err := page.Bundle()
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
	mux.HandleFunc("GET /library.wasm", func(w http.ResponseWriter,
		r *http.Request) {
		http.ServeFile(w, r, files.pack.Library.Path)
	})
	mux.Handle("GET /model/resolve/main/",
		http.StripPrefix("/model/resolve/main", http.FileServerFS(os.DirFS(files.pack.Dir))))
	s := httptest.NewServer(mux)
	b.Cleanup(s.Close)
	return s
}
