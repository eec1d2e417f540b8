package reports_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports/reportstest"
)

// richest is the report that has most in it.
const richest = "predicted"

// TestMain looks for processes that a test left behind.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for deadline := time.Now().Add(15 * time.Second); len(child.Tagged(os.Getpid())) > 0; time.Sleep(
		50 * time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "left running: processes %v\n", child.Tagged(os.Getpid()))
			code = 1
			break
		}
	}
	os.Exit(code)
}

// sheet is what a page looked like once it was drawn.
type sheet struct {
	Overflow int      // how far the page can be scrolled sideways
	Cut      []string // tables of which a part is out of sight, and could stand within
	Owned    bool     // a label ran as a script
	Injected int      // elements that only a label could have made
	Unnamed  int      // charts and tables without an accessible name or without words
	Early    int      // charts that were drawn before they were in sight
	Charts   []sketch // as the library drew them
}

type sketch struct {
	ID       string
	Paths    int       // in the drawing
	Points   []int     // by series, as the library has them
	Reported []int     // by series, as the page's data has them
	High     []float64 // of each line the highest point, as the library has it
	Highest  []float64 // as the page's data has it
	Inside   bool      // the drawing is as wide as its place, and that within the page
	Ink      string    // of the text
	Tip      string
}

// frame waits until the page was drawn anew. A browser that draws nothing must not keep a test waiting for ever.
const frame = `const frame = () => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); setTimeout(done, 5000); });`

// comes has drawn(figure), which scrolls to a figure and waits for its chart.
const comes = frame + `const drawn = async (f) => {
	for (const begun = Date.now(); !echarts.getInstanceByDom(f.querySelector(".plot")); await frame()) {
		if (Date.now() - begun > 120000) throw new Error(f.dataset.chart + " was not drawn in two minutes, on a page that is " + document.visibilityState); // a watchdog
		f.scrollIntoView();
	}
};`

const look = `(async () => {` + comes + `
	const figures = [...document.querySelectorAll("[data-chart]")];
	const instance = (f) => echarts.getInstanceByDom(f.querySelector(".plot"));
	await frame();
	const early = figures.filter((f) => instance(f) && f.getBoundingClientRect().top > 2 * innerHeight + 600).length;
	for (const d of document.querySelectorAll("details")) d.open = true;
	for (const f of figures) await drawn(f); // by whoever reads it
	scrollTo(0, 0);
	await frame();
	const drawings = JSON.parse(llmparityUnpack("drawings")).charts;
	const chosen = (f) => { const s = f.querySelector("select"); return drawings[f.dataset.chart][s ? Number(s.value) : Number(f.dataset.chosen)].options; };
	for (const f of figures) instance(f).dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: 0 }); // a tooltip holds labels too
	const seen = {
		Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		Cut: [...document.querySelectorAll("table.grid, table.summary, table.sides")].filter((t) => t.offsetParent && t.parentElement.scrollWidth > t.parentElement.clientWidth + 1).map((t) => t.caption.textContent),
		Owned: "owned" in window,
		Injected: document.querySelectorAll("img").length + document.scripts.length - 5,
		Unnamed: figures.filter((f) => !f.querySelector(".plot").getAttribute("aria-label") || !f.closest("section").querySelector("td")).length +
			[...document.querySelectorAll("table")].filter((t) => !(t.caption && t.caption.textContent) && !t.closest("[aria-label]")).length,
		Early: early,
		Charts: figures.map((f) => {
			const chart = instance(f), place = f.querySelector(".plot"), svg = place.querySelector("svg"), lines = chart.getModel().getSeries().filter((s) => s.subType === "line");
			return {
				ID: f.dataset.chart,
				Paths: svg.querySelectorAll("path").length,
				Points: chart.getModel().getSeries().map((s) => s.getData().count()),
				Reported: chosen(f).series.map((s) => s.data.length),
				High: lines.map((s) => s.getData().getDataExtent(s.getData().mapDimension("y"))[1]),
				Highest: chosen(f).series.filter((s) => s.type === "line").map((s) => Math.max(...s.data.map((d) => [].concat(d && d.value !== undefined ? d.value : d).at(-1)).filter((v) => typeof v === "number"))),
				Inside: Math.abs(svg.getBoundingClientRect().width - place.clientWidth) < 1 && place.getBoundingClientRect().right <= innerWidth,
				Ink: getComputedStyle(document.body).color,
				Tip: [...f.querySelectorAll(".plot > div:not(:first-child)")].map((d) => d.textContent).join(""),
			};
		}),
	};
	for (const f of figures) instance(f).dispatchAction({ type: "hideTip" });
	return seen;
})()`

// tab is a tab of the browser with a report in it.
type tab struct {
	ctx     context.Context
	mu      sync.Mutex
	address string
	trouble []string // exceptions, words to the console, requests
	loaded  int
}

func (p *tab) complain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = append(p.trouble, fmt.Sprintf(format, args...))
}

// newTab is a tab that notes whatever a report must not do.
func newTab(t *testing.T) *tab {
	t.Helper()
	p := &tab{ctx: reportstest.Browser(t)}
	err := chromedp.Listen(p.ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			p.complain("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			p.complain("console: %s", e.Type)
		case *log.EventEntryAdded:
			p.complain("log: %s %s", e.Entry.Text, e.Entry.URL)
		case *network.EventRequestWillBeSent:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.loaded++
			if u := e.Request.URL; u != p.address && u != "data:," {
				p.trouble = append(p.trouble, "request: "+u)
			}
		}
	})
	check.Err(t, err)
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	// A tab that is not in front gets no frame, and so draws nothing: which one is, on a busy machine, is chance.
	if _, err := chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	return p
}

// show opens a report of these runs.
func (p *tab) show(t *testing.T, name string, runs ...*record.Run) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".html")
	check.Err(t, os.WriteFile(path, []byte(pageOf(t, compare.Runs(runs...), runs...)), 0o600))
	p.mu.Lock()
	p.address, p.trouble, p.loaded = (&url.URL{Scheme: "file", Path: path}).String(), nil, 0
	p.mu.Unlock()
	if _, err := chromedp.Call(p.ctx, page.BringToFront, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.size(t, 360)
	p.scheme(t, "light")
	check.Err(t, chromedp.Do(p.ctx, chromedp.Navigate(p.address)))
}

// quiet fails where the page did what it must not.
func (p *tab) quiet(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded == 0 {
		t.Error("saw no request: the file itself should be there")
	}
	if len(p.trouble) > 0 {
		t.Errorf("%s", strings.Join(p.trouble, "\n"))
	}
}

func (p *tab) size(t *testing.T, width int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute) // a watchdog: the browser waits for a frame
	defer cancel()
	check.Err(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
}

func (p *tab) scheme(t *testing.T, scheme string) {
	t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	check.Err(t, err)
}

// ask evaluates an expression, a promise too.
func ask[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 6*time.Minute) // a watchdog
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%v: %.200s", err, expression)
	}
	return v
}

// Every chart of every kind of report, on a phone in light and on a wide screen in dark. What a theme changes is the
// same at every width: only the richest is looked at on a wide screen in light, too. On a tablet there are the richest
// and the one with the longest names.
func TestReportsInABrowser(t *testing.T) {
	p := newTab(t)
	names := []string{"mixed", "same-device", "predicted", "lost", "empty", "hostile"}
	all := cases(t, names...)
	all["endless"] = []*record.Run{comparetest.Run(t, "endless", endless()...)}
	for _, name := range append(names, "endless") {
		t.Run(name, func(t *testing.T) {
			p.show(t, name, all[name]...)
			inks := map[string]string{}
			for _, width := range []int64{360, 800, 1600} {
				p.size(t, width)
				for _, scheme := range []string{"light", "dark"} {
					corner := (width == 1600) == (scheme == "dark")
					most := name == richest || name == "endless"
					if width == 800 && !most || !corner && (width != 1600 || name != richest) {
						continue
					}
					p.scheme(t, scheme)
					s := ask[sheet](t, p, look)
					checkSheet(t, name, width, s)
					if s.Early > 0 && width == 360 && scheme == "light" {
						t.Errorf("%d charts were drawn before anybody could see them", s.Early)
					}
					for _, c := range s.Charts {
						inks[scheme] = c.Ink
					}
					if width != 800 {
						everything := corner && (width == 360 || name == richest)
						p.accessible(t, fmt.Sprintf("%s at %d pixels, %s", name, width, scheme), everything)
					}
				}
			}
			if len(all[name][0].Attempts) > 0 && inks["light"] == inks["dark"] {
				t.Errorf("light and dark have the same ink: %v", inks)
			}
			p.quiet(t)
		})
	}
	for name, hand := range map[string]func(*testing.T, *tab){"by keyboard": byKeyboard, "on paper": onPaper,
		"copied": copied, "definitions": definitions, "links": links, "lengths": overLengthsShown, "sized": sized,
		"apart": apart, "long": longPages} {
		t.Run(name, func(t *testing.T) {
			runs := all[richest]
			switch name {
			case "lengths":
				runs = []*record.Run{comparetest.Run(t, "lengths", prompted(6)...)}
			case "apart": // many series of one engine
				runs = []*record.Run{comparetest.Run(t, "load", append(loaded(6),
					comparetest.Mixed(comparetest.Browser(6), 8, 4, 40, 8))...), comparetest.Run(t, "axes", axes()...)}
			case "sized": // like the demo's
				engines := insides(6)
				engines[0].Device = comparetest.Browser(1).Device
				runs = []*record.Run{comparetest.Run(t, "sized", engines...)}
			}
			p.show(t, name, runs...)
			p.size(t, 1600)
			hand(t, p)
			p.quiet(t)
		})
	}
}

// endless has names of ten thousand letters, and one that is written from right to left.
func endless() []comparetest.Engine {
	a, b, c := comparetest.Measured(comparetest.Browser(6), comparetest.Page()), comparetest.Native(6),
		comparetest.Served(6)
	a.Cell.Engine = strings.Repeat("endless ", 1250)
	b.Cell.Engine = strings.Repeat("w", 10000)
	c.Cell.Engine = "מנוע שפה"
	return []comparetest.Engine{a, b, c}
}

func checkSheet(t *testing.T, name string, width int64, s sheet) {
	t.Helper()
	if s.Overflow > 0 {
		t.Errorf("at %d pixels the page scrolls sideways by %d", width, s.Overflow)
	}
	first := func(c string) bool { return strings.HasPrefix(c, "Summary") || strings.HasPrefix(c, "Both sides") }
	if len(s.Cut) > 0 && (width == 360 || slices.ContainsFunc(s.Cut, first)) {
		t.Errorf("at %d pixels a part of these tables is out of sight: %q", width, s.Cut)
	}
	if s.Owned || s.Injected != 0 {
		t.Errorf("a label became code: owned %v, %d elements", s.Owned, s.Injected)
	}
	if s.Unnamed > 0 {
		t.Errorf("%d charts and tables lack a name, or a chart its table", s.Unnamed)
	}
	times := []string{"load", "ttft", "prefill", "decode", "latency-ttft", "latency-inter_token_latency",
		"latency-latency"}
	two := append([]string{"headline-memory", "memory-0", "memory-1", "tokens-0", "tokens-1", "peaks"}, times...)
	want := map[string][]string{"mixed": two, "same-device": two, "predicted": two,
		"endless": append([]string{"memory-2"}, two...),
		"hostile": append([]string{"memory-0", "tokens-0", "peaks"}, times...),
		"lost":    {"memory-0"}, "empty": nil,
		"lengths": append([]string{"memory-5", "fig3_latency_vs_seqlen", "fig4_mem_vs_seqlen"},
			two...)}[name]
	var got []string
	for _, c := range s.Charts {
		got = append(got, c.ID)
		if c.Paths < 4 || len(c.Points) == 0 || slices.Contains(c.Points, 0) {
			t.Errorf("at %d pixels %s was not drawn: %+v", width, c.ID, c)
		}
		if !slices.Equal(c.Points, c.Reported) || !slices.Equal(c.High, c.Highest) {
			t.Errorf("at %d pixels %s shows %v points up to %v, its data has %v up to %v", width, c.ID, c.Points,
				c.High, c.Reported, c.Highest)
		}
		if !c.Inside {
			t.Errorf("at %d pixels %s is not as wide as its place", width, c.ID)
		}
		if c.Tip == "" {
			t.Errorf("at %d pixels %s shows no tooltip", width, c.ID)
		}
	}
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("charts %v, want %s among them", got, id)
		}
	}
	if name == "empty" && len(got) > 0 {
		t.Errorf("charts %v of nothing", got)
	}
}

// finding is what axe found: a rule that elements break.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible runs axe over the page as it is: every rule, or only that of contrasts, which is all that a theme changes.
func (p *tab) accessible(t *testing.T, where string, everything bool) {
	t.Helper()
	if !ask[bool](t, p, `"axe" in window`) {
		axe, err := os.ReadFile("../assets/node_modules/axe-core/axe.min.js")
		if err != nil {
			t.Fatalf("no axe, which looks for what keeps people out; run make setup: %v", err)
		}
		check.Err(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](string(axe)+";undefined")))
	}
	options := map[string]any{"resultTypes": []string{"violations"}}
	if !everything {
		options["runOnly"] = []string{"color-contrast"}
	}
	text, err := json.Marshal(options)
	check.Err(t, err)
	found := ask[[]finding](t, p, `(async () => {
		const found = (await axe.run(document, `+string(text)+`)).violations;
		return found.map((v) => ({ ID: v.id, Impact: v.impact || "", Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => ({ HTML: n.html.slice(0, 300), FailureSummary: n.failureSummary })) }));
	})()`)
	for _, f := range found {
		say := t.Logf
		if f.Impact == "serious" || f.Impact == "critical" {
			say = t.Errorf
		}
		for _, n := range f.Nodes {
			say("%s: %s (%s, %s): %s\n%s", where, f.Help, f.ID, f.Impact, n.HTML,
				strings.ReplaceAll(n.FailureSummary, "\n", " "))
		}
	}
}
