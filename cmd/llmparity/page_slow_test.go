//go:build slow

package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"llmparity/browser/chrome"
	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/firefox"
	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/host/child"
	kitcheck "llmparity/internal/kit/check"
	"llmparity/internal/models/tiny"
	"llmparity/internal/stats"
)

// short makes a measurement short.
func (h hand) short() {
	h.Helper()
	h.types("#launches", "1")
	h.types("#maxTokens", "8")
}

// waits waits for the end of a measurement. It does not look again and again, which would take CPU time.
func (h hand) waits() {
	h.Helper()
	sees[bool](h, `new Promise((done) => {
		const look = () => document.body.dataset.state === "idle" && done(true);
		new MutationObserver(look).observe(document.body, { attributes: true });
		look();
	})`)
}

// Every engine on every backend runs, from the page's thread and from a worker.
func TestPageEveryEngine(t *testing.T) {
	browserTest(t)
	_, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	h.short()
	mentions(t, h.text("#engine option:disabled"), "wllama, WebGPU (needs float16 shaders)") // SwiftShader has none
	for _, engine := range sees[[]string](h, "[...document.querySelectorAll('#engine option:enabled')].map((o) => o.value)") {
		for _, thread := range []string{"worker", "page"} {
			h.chooses("#engine", engine)
			h.chooses("#thread", thread)
			h.clicks("#start")
			h.waits()
			status := h.text("#status")
			if status != "Done." {
				t.Errorf("%s in a %s: %s", engine, thread, status)
			}
			last := strings.Join(strings.Fields(h.text("#runs tbody tr:last-child")), " ")
			t.Logf("%s in a %s: %s; %s", engine, thread, status, last)
		}
	}
}

// drops drops a file on the page.
func (h hand) drops(name string, content []byte) {
	h.Helper()
	text, err := json.Marshal(string(content))
	check(h, err)
	sees[bool](h, fmt.Sprintf(`(() => { const all = new DataTransfer(); all.items.add(new File([%s], %q));
		document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer: all, bubbles: true, cancelable: true })); return true; })()`, text, name))
}

// Files are chosen and dropped; what is none is refused with a line, and names stay names.
func TestPageFiles(t *testing.T) {
	browserTest(t)
	_, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	h.drops("<img src=x onerror=document.title=1>.gguf", []byte("no model"))
	h.reads("#status", "it is not a GGUF file")
	path := filepath.Join(shortDir(t), "my <b>model.gguf")
	check(t, tiny.WriteFile(path))
	check(t, chromedp.Do(h.ctx, chromedp.SetUploadFiles("#file", []string{path})))
	h.reads("#status", "my <b>model.gguf is ready.")
	h.short()
	h.types("#prompt", "<script>document.title='owned'</script> \"; --out=/etc")
	for _, engine := range []string{"webllm", "transformersjs wasm"} { // both convert it
		h.chooses("#engine", engine)
		h.clicks("#start")
		h.reads("#status", "Done.")
	}
	mentions(t, h.text("#runs"), "WebLLM", "transformers.js, WebAssembly", "tiny-llama")
	if title := sees[string](h, "document.title"); !strings.Contains(title, "llmparity") || sees[int](h, "document.querySelectorAll('img, #runs b').length") != 0 {
		t.Errorf("a name has become markup: %s", title)
	}
}

// offline takes the network from the page, or gives it back.
func (h hand) offline(is bool) {
	h.Helper()
	_, err := chromedp.Call(h.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: is, DownloadThroughput: -1, UploadThroughput: -1}}})
	check(h, err)
}

// A page that is loaded again, goes offline or is beside another one ends only what it measures.
func TestPageTroubles(t *testing.T) {
	browserTest(t)
	cmd, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	h.short()
	h.clicks("#start")
	h.reads("#status", "Done.")
	long := func(h hand) {
		h.types("#maxTokens", "400")
		h.clicks("#start")
		h.reads("#phase", "generate")
	}
	long(h)
	check(t, chromedp.Do(h.ctx, chromedp.Reload()))
	h.reads("#runs", "the page was closed or loaded again")
	h.reads("#runs", "1. WebLLM")
	long(h)
	took, said := h.stops()
	t.Logf("Stop while it generates: %v, %s", took, said)
	h.waits()

	h.offline(true)
	h.clicks("#runs button")
	h.reads("#status", "llmparity does not answer")
	h.offline(false)
	h.clicks("#runs button")
	h.reads("#status", "is saved in")

	h.clicks("#start")
	h.reads("#phase", "load")
	time.Sleep(400 * time.Millisecond) // it is somewhere in the load
	took, said = h.stops()
	t.Logf("Stop while it loads: %v, %s", took, said)
	h.waits()
	h.short()
	h.clicks("#start")
	h.reads("#status", "Done.")

	second, _ := chromedp.NewContext(h.ctx) // another tab
	other := hand{t, second}
	defer func() { _ = chromedp.Cancel(second) }()
	other.opens(address)
	long(h)
	other.short()
	other.clicks("#start")
	other.reads("#notes", "Another page on this device is measuring")
	check(t, chromedp.Do(h.ctx, chromedp.Navigate("about:blank"))) // it is closed
	other.reads("#status", "Done.")
	check(t, cmd.Process.Signal(os.Interrupt))
	check(t, cmd.Wait())
	other.reads("#status", "The connection to llmparity ended")
	if left, err := filepath.Glob(filepath.Join(cmd.Dir, "tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The page can be used by all: no finding of axe, at any width, in light and dark.
func TestPageForAll(t *testing.T) {
	browserTest(t)
	_, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	h.short()
	h.clicks("#start")
	h.reads("#status", "Done.")
	axe, err := os.ReadFile("../../assets/node_modules/axe-core/axe.min.js")
	check(t, err)
	check(t, chromedp.Do(h.ctx, chromedp.Evaluate[chromedp.Void](string(axe)+";undefined")))
	for _, width := range []int64{360, 800, 1600} {
		for _, scheme := range []string{"light", "dark"} {
			check(t, chromedp.Do(h.ctx, chromedp.EmulateViewport(width, 900)))
			_, err := chromedp.Call(h.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			check(t, err)
			for _, f := range sees[[]string](h, `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
				violations.flatMap((v) => v.nodes.map((n) => v.impact + " " + v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`) {
				t.Errorf("at %d, %s: %s", width, scheme, f)
			}
			if over := sees[int](h, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
				t.Errorf("at %d it can be scrolled sideways by %d", width, over)
			}
			if to := os.Getenv("LLMPARITY_SHOTS"); to != "" {
				shot, err := chromedp.Call(h.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
					CaptureBeyondViewport: new(true), Format: "png"})
				check(t, err)
				check(t, os.WriteFile(fmt.Sprintf("%s/page-%d-%s.png", to, width, scheme), shot.Data, 0o644))
			}
		}
	}
}

// A device that is lost ends its launch with a line. The next launch has another one, and earlier results stay.
func TestPageLosesItsDevice(t *testing.T) {
	browserTest(t)
	_, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	h.types("#launches", "1")
	h.types("#maxTokens", "400")
	h.clicks("#start")
	h.reads("#phase", "generate")
	killed := 0
	for _, pid := range child.Descendants(chromedp.FromContext(h.ctx).Browser.Process().Pid) {
		if chrome.TypeOf(pid) == "gpu-process" {
			check(t, kitcheck.Kill(pid))
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("killed %d GPU processes", killed)
	}
	h.reads("#notes", "device was lost")
	h.waits()
	h.short()
	h.clicks("#start")
	h.reads("#status", "Done.")
	mentions(t, h.text("#runs"), "device-lost")
}

// Firefox, which no DevTools of ours drive here, runs wllama and reads its own memory; its processes are sampled.
func TestPageInFirefox(t *testing.T) {
	browserTest(t)
	cmd, address := pageServed(t)
	path, err := find.Chrome("firefox")
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a watchdog
	defer cancel()
	tab, err := firefox.Launch(ctx, path, driver.Options{})
	check(t, err)
	defer func() { check(t, tab.Close()) }()
	check(t, tab.Open(ctx, address, address))
	is := func(expression string) string {
		t.Helper()
		text, err := tab.Evaluate(ctx, driver.PageThread, expression)
		check(t, err)
		return string(text)
	}
	reads := func(element, want string) {
		t.Helper()
		for begun := time.Now(); !strings.Contains(is(fmt.Sprintf("document.querySelector(%q)?.textContent", element)), want); {
			if begun.Add(patience).Before(time.Now()) {
				t.Fatalf("%s never says %q; it is %s", element, want, is("document.getElementById('main').innerText"))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	reads("#status", "Ready.")
	reads("#offered", "JavaScript heap, so that figure is absent")
	is(`(() => { document.getElementById("engine").value = "wllama wasm"; document.getElementById("launches").value = 1;
		document.getElementById("maxTokens").value = 8; document.getElementById("start").click(); })()`)
	reads("#status", "Done.")
	mentions(t, is("document.getElementById('runs').textContent"), "Firefox/", "wllama")
	is("document.querySelector('#runs button').click()")
	reads("#status", "is saved in")
	dirs, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "*", "run.json"))
	check(t, err)
	text := good(t, "report", filepath.Dir(dirs[0]), "--details")
	mentions(t, text, "by hand, in this browser: Firefox/", "wllama")
}

// Other devices come by TLS. What WebGPU and threads need is there, and the record says that no process was sampled.
func TestPageByTLS(t *testing.T) {
	browserTest(t)
	cmd, address := pageServed(t, "--listen", "127.0.0.1:0", "--collect", "1", "--for", "3m")
	if !strings.HasPrefix(address, "https://") {
		t.Fatal(address)
	}
	h := newHand(t, chromedp.Flag("ignore-certificate-errors", true))
	check(t, chromedp.Do(h.ctx, chromedp.Navigate(address)))
	h.reads("#offered", "cross-origin isolation): yes")
	check(t, cmd.Wait())
	h.reads("#status", "The connection to llmparity ended")
	dirs, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "*", "run.json"))
	check(t, err)
	if _, err := os.Stat(filepath.Join(cmd.Dir, "results", "collected.html")); err != nil || len(dirs) != 1 {
		t.Errorf("%v, %v", dirs, err)
	}
}

// A run by hand and the same cell of `llmparity run` do not differ significantly, after correction for the number of
// figures, except as docs/howto/use-the-page.md says. Of WebLLM's memory that of the page's process is compared: the
// GPU process of a browser that goes on keeps what earlier launches compiled, so its baseline is higher, and the
// increase smaller; for the same reason loads take less CPU time. wllama's page holds some 15 MiB more.
func TestPageAgreesWithRun(t *testing.T) {
	browserTest(t)
	for engine, flags := range map[string][]string{
		"webllm":      {"--engines", "webllm", "--adapter", "swiftshader"},
		"wllama wasm": {"--engines", "wllama", "--wllama-backend", "wasm"},
	} {
		t.Run(engine, func(t *testing.T) {
			cmd, address := pageServed(t)
			h := newHand(t)
			h.opens(address)
			h.chooses("#engine", engine)
			prompt := sees[string](h, "document.getElementById('prompt').value")
			h.clicks("#start") // six launches
			h.waits()
			h.reads("#status", "Done.")
			h.clicks("#runs tbody button")
			h.reads("#status", "is saved in")
			check(t, chromedp.Do(h.ctx, chromedp.Navigate("about:blank"))) // a page takes CPU time
			dirs, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "*", "run.json"))
			check(t, err)
			byHand, driven := filepath.Dir(dirs[0]), filepath.Join(cmd.Dir, "driven", "latest")
			well(t, resumed(cmd, slices.Concat([]string{"run"}, flags, []string{"--model", "tiny", "--prompt", prompt,
				"--max-tokens", "32", "--context", "512", "--repetitions", "6", "--thread", "worker",
				"--out", "driven"})...))
			mentions(t, good(t, "compare", driven, byHand, "--allow-different"), "same tokens, same scores")
			for _, column := range []string{"model_weights_mb", "kv_cache_mb"} {
				if a, b := columnOf(t, driven, column), columnOf(t, byHand, column); a == "" || a != b {
					t.Errorf("%s is %q, by hand %q", column, a, b)
				}
			}
			alike(t, driven, byHand)
		})
	}
}

// columnOf is a value of the one row of summary.csv.
func columnOf(t *testing.T, dir, column string) string {
	t.Helper()
	_, value, _ := strings.Cut(good(t, "report", dir, "--columns", column), "\n")
	return strings.TrimSpace(value)
}

// alike finds no significant difference between two runs: the comparison does not, and its test does not in figures of
// which it gives no ratio.
func alike(t *testing.T, driven, byHand string) {
	t.Helper()
	o := compare.Defaults()
	o.AllowDifferent = true
	res := compare.With(o, opened(t, driven), opened(t, byHand))
	ratios := res.Comparisons[0].Ratios
	for _, x := range ratios {
		t.Logf("%-16s %8.4g, by hand %8.4g; p %.4f, corrected %.4f", x.Figure, x.Left.Median, x.Right.Median, x.Raw, x.P)
		if x.Significant {
			t.Errorf("%s differs: %s", x.Title, x.Verdict)
		}
	}
	if len(ratios) < 4 {
		t.Errorf("%d figures are compared", len(ratios))
	}
	figures, names := map[string][2][]float64{}, []string{figure.LongestBlock, figure.LoadCPU, figure.TokenCPU}
	if res.Cells[0].Spec.Engine == "webllm" {
		figures["peak PSS of the page's process"] = [2][]float64{pagePeaks(t, driven), pagePeaks(t, byHand)}
	} else {
		names = append(names, figure.Increase)
	}
	for _, name := range names {
		var sides [2][]float64
		for k, c := range res.Cells {
			for _, v := range c.Figure(name).Values {
				sides[k] = append(sides[k], v.Value)
			}
		}
		figures[name] = sides
	}
	names = slices.Sorted(maps.Keys(figures))
	tests := make([]stats.Test, len(names))
	for i, name := range names {
		a, b := figures[name][0], figures[name][1]
		if len(a) != 6 || len(b) != 6 {
			t.Fatalf("%s has %d and %d values", name, len(a), len(b))
		}
		both := stats.NewSides(a, b)
		tests[i] = both.Chance()
		tests[i].Weight, tests[i].Same = 1, stats.OrderOf(both)
		t.Logf("%s: p %.4f; %.4g, by hand %.4g", name, tests[i].P, a, b)
	}
	known := map[string]float64{figure.Increase: 1.15, figure.LoadCPU: 1 / 0.75} // differences that are explained
	for i, p := range stats.ByHolm.Correct(tests, func(t stats.Test) float64 { return t.P }) {
		ratio := stats.Median(figures[names[i]][1]) / stats.Median(figures[names[i]][0])
		if most, is := known[names[i]]; p <= stats.Alpha && (!is || max(ratio, 1/ratio) > most) {
			t.Errorf("%s differs significantly, by a factor of %.3f", names[i], ratio)
		}
	}
}

// pagePeaks are the highest PSS of the process that has the page, by launch.
func pagePeaks(t *testing.T, dir string) []float64 {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(readFile(t, filepath.Join(dir, "samples.csv")))).ReadAll()
	check(t, err)
	at := func(name string) int { return slices.Index(rows[0], name) }
	peaks := map[string]float64{}
	for _, row := range rows[1:] {
		pss, err := strconv.ParseFloat(row[at("pss_mb")], 64)
		if err == nil && row[at("role")] == "renderer" && !strings.Contains(row[at("label")], "warmup") {
			peaks[row[at("attempt")]] = max(peaks[row[at("attempt")]], pss)
		}
	}
	return slices.Collect(maps.Values(peaks))
}
