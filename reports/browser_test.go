package reports_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"llmparity/compare"
	"llmparity/internal/child"
	"llmparity/reports"
)

var shots = flag.String("shots", "", "a folder for pictures of the reports that the browser test opens")

// TestMain looks for processes that a test left behind.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for deadline := time.Now().Add(15 * time.Second); len(child.Tagged(os.Getpid())) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "left running: processes %v\n", child.Tagged(os.Getpid()))
			code = 1
			break
		}
	}
	os.Exit(code)
}

// browser is one Chromium for all pages.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Fatal("no Chromium or Chrome on PATH: install it (Debian: apt-get install chromium)")
	}
	home := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("headless", "new"),
		chromedp.Env("HOME="+home), chromedp.ModifyCmdFunc(child.Own))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // a watchdog
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return ctx
}

// sheet is what a page looked like once it was drawn.
type sheet struct {
	Overflow int      // how far the page can be scrolled sideways
	Owned    bool     // a label ran as a script
	Injected int      // elements that only a label could have made
	Unnamed  int      // charts without an accessible name or without words
	Charts   []sketch // as the library drew them
}

type sketch struct {
	ID     string
	Paths  int   // in the drawing
	Points []int // by series
	Tip    string
}

const look = `(() => {
	const drawn = [...document.querySelectorAll("[data-chart] .plot")].map((plot) => echarts.getInstanceByDom(plot));
	for (const chart of drawn) chart.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: 0 }); // a tooltip holds labels too
	const seen = look();
	for (const chart of drawn) chart.dispatchAction({ type: "hideTip" });
	return seen;
	function look() { return {
	Overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
	Owned: "owned" in window,
	Injected: document.querySelectorAll("img").length + document.scripts.length - 3,
	Unnamed: [...document.querySelectorAll("[data-chart]")].filter((f) => !f.querySelector(".plot").getAttribute("aria-label") || !f.querySelector("details td")).length,
	Charts: [...document.querySelectorAll("[data-chart]")].map((f) => ({
		ID: f.dataset.chart,
		Paths: f.querySelectorAll(".plot svg path").length,
		Points: echarts.getInstanceByDom(f.querySelector(".plot")).getModel().getSeries().map((s) => s.getData().count()),
		Tip: [...f.querySelectorAll(".plot > div:not(:first-child)")].map((d) => d.textContent).join(""),
	})),
}; } })()`

func TestReportsInABrowser(t *testing.T) {
	ctx := browser(t)
	names := []string{"mixed", "same-device", "inside", "foretold", "lost", "empty", "hostile"}
	all := cases(t, names...)
	for _, name := range names {
		runs := all[name]
		path := filepath.Join(t.TempDir(), name+".html")
		if err := reports.File(path, "", func(w io.Writer) error { return reports.HTML(w, compare.Runs(runs...), runs...) }); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { open(t, ctx, name, path) })
	}
}

func open(t *testing.T, ctx context.Context, name, path string) {
	ctx, _ = chromedp.NewContext(ctx)
	defer func() { _ = chromedp.Cancel(ctx) }()
	address := (&url.URL{Scheme: "file", Path: path}).String()
	var mu sync.Mutex
	var trouble []string
	loaded := 0
	complain := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		trouble = append(trouble, fmt.Sprintf(format, args...))
	}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			complain("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			complain("console: %s", e.Type)
		case *log.EventEntryAdded:
			complain("log: %s %s", e.Entry.Text, e.Entry.URL)
		case *network.EventRequestWillBeSent:
			mu.Lock()
			loaded++
			mu.Unlock()
			if u := e.Request.URL; u != address && u != "data:," {
				complain("request: %s", u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{360, 1600} {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(address)); err != nil {
			t.Fatal(err)
		}
		s, err := chromedp.Run(ctx, chromedp.Evaluate[sheet](look))
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, width, s)
		picture(t, ctx, name, width)
	}
	mu.Lock()
	defer mu.Unlock()
	if loaded < 2 {
		t.Errorf("saw %d requests: the file itself should be there twice", loaded)
	}
	if len(trouble) > 0 {
		t.Errorf("%s", strings.Join(trouble, "\n"))
	}
}

func check(t *testing.T, name string, width int64, s sheet) {
	t.Helper()
	if s.Overflow > 0 {
		t.Errorf("at %d pixels the page scrolls sideways by %d", width, s.Overflow)
	}
	if s.Owned || s.Injected != 0 {
		t.Errorf("a label became code: owned %v, %d elements", s.Owned, s.Injected)
	}
	if s.Unnamed > 0 {
		t.Errorf("%d charts lack a name or a table", s.Unnamed)
	}
	want := map[string][]string{"mixed": {"memory-0", "memory-1", "peaks", "components", "load", "ttft", "decode"}, "same-device": {"memory-0", "memory-1", "peaks", "components", "load", "ttft", "decode"},
		"inside":   {"memory-0", "memory-1", "peaks", "components", "breakdown", "load", "ttft", "decode"},
		"foretold": {"memory-0", "memory-1", "peaks", "components", "breakdown", "load", "ttft", "decode"},
		"hostile":  {"memory-0", "peaks", "components", "breakdown", "load", "ttft", "decode"}, "lost": {"memory-0"}, "empty": nil}[name]
	var got []string
	for _, c := range s.Charts {
		got = append(got, c.ID)
		if c.Paths < 4 || len(c.Points) < 2 || slices.Contains(c.Points, 0) {
			t.Errorf("at %d pixels %s was not drawn: %+v", width, c.ID, c)
		}
		if c.Tip == "" {
			t.Errorf("at %d pixels %s shows no tooltip", width, c.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("charts %v, want %v", got, want)
	}
}

// picture saves what the page looks like in light and dark, when somebody wants to see it.
func picture(t *testing.T, ctx context.Context, name string, width int64) {
	if *shots == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
		shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*shots, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
