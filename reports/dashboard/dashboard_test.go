package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"llmparity/internal/history"
	"llmparity/internal/kit/check"
	"llmparity/reports/reportstest"
)

const hostile = `</script><script>window.owned = 1</script><img src=x onerror="window.owned = 1">'"&`

// written are the pages of a hundred runs on two machines, with a step at the 81st. Every name tries to be a script.
func written(t *testing.T) (dir string) {
	t.Helper()
	store := history.Open(t.TempDir())
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 100 {
		at := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		run := &history.Run{Head: history.Head{Name: "nightly", Started: at, Machine: "mouse " + hostile,
			Folder: "javascript:alert(1)",
			Commit: history.Commit{SHA: fmt.Sprintf("%07x%s", 0xabc000+i, hostile), Time: at, Author: hostile,
				Subject: hostile},
			Environment: map[string]string{"kernel": fmt.Sprint(i / 50)},
			Cells: []history.Cell{{Key: "a", Label: "WebLLM " + hostile, Control: new(1),
				Environment: map[string]string{"engine": fmt.Sprintf("WebLLM 0.2.%d (npm)", 84+i/95)}},
				{Key: "b", Label: "control", Fixed: true}},
			Figures: []history.Figure{{Name: "decode_tps", Title: "decode " + hostile, Unit: "tokens/s",
				Better: "higher",
				Tested: true, Ratio: true}}}}
		run.Commit.SHA = strings.Join(strings.Fields(run.Commit.SHA), "")
		if i%10 == 9 {
			run.Machine = "rat"
		}
		for cell, speed := range []float64{20, 50} {
			if i >= 80 && cell == 0 {
				speed *= 0.8
			}
			for n := 1; n <= 6; n++ {
				run.Launches = append(run.Launches, history.Launch{Cell: cell, Number: n,
					Values: []float64{speed * math.Exp(0.02*r.NormFloat64())}})
			}
		}
		_, err := store.Add(t.Context(), run)
		check.Err(t, err)
	}
	l, err := store.Read(t.Context())
	check.Err(t, err)
	report, err := l.Check(t.Context())
	check.Err(t, err)
	if report.Alarms() != 1 {
		t.Fatalf("%d alarms", report.Alarms())
	}
	dir = filepath.Join(t.TempDir(), "a site")
	check.Err(t, Write(t.Context(), l, report, Options{Dir: dir, Reports: "https://ci.example/runs/"}))
	return dir
}

// tab is a page in a browser, and what it did that it must not.
type tab struct {
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

func open(t *testing.T) *tab {
	t.Helper()
	p := &tab{ctx: reportstest.Browser(t)}
	complain := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bad = append(p.bad, fmt.Sprintf(format, args...))
	}
	check.Err(t, chromedp.Listen(p.ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			complain("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			complain("console: %s", e.Type)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "file:") && u != "data:," {
				complain("request: %s", u)
			}
		}
	}))
	_, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{})
	check.Err(t, err)
	_, err = chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true})
	check.Err(t, err)
	return p
}

func ask[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute) // a watchdog
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%v: %.200s", err, expression)
	}
	return v
}

// goTo opens a page at a width.
func (p *tab) goTo(t *testing.T, dir, file, fragment string, width int64) {
	t.Helper()
	check.Err(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 900)))
	u := url.URL{Scheme: "file", Path: filepath.Join(dir, file), Fragment: fragment}
	check.Err(t, chromedp.Do(p.ctx, chromedp.Navigate("about:blank"))) // else a new fragment would only scroll
	check.Err(t, chromedp.Do(p.ctx, chromedp.Navigate(u.String())))
}

const (
	overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`
	drawn    = `new Promise((done, failed) => { const begun = Date.now(), look = () => document.documentElement.dataset.drawn ? done(true) :
	Date.now() - begun > 60000 ? failed(new Error(document.getElementById("said").textContent)) : setTimeout(look, 20); look(); })`
)

// drag moves the mouse over a part of the chart.
func (p *tab) drag(t *testing.T) {
	t.Helper()
	at := ask[[]float64](t, p, `(() => { const r = document.getElementById("plot").getBoundingClientRect(); return [r.left, r.top]; })()`)
	for _, step := range []struct {
		kind input.DispatchMouseEventType
		x    float64
	}{{input.DispatchMouseEventTypeMouseMoved, 120}, {input.DispatchMouseEventTypeMousePressed, 120},
		{input.DispatchMouseEventTypeMouseMoved, 200}, {input.DispatchMouseEventTypeMouseReleased, 330}} {
		_, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: step.kind,
			X: at[0] + step.x, Y: at[1] + 150, Button: input.MouseButtonLeft, ClickCount: 1})
		check.Err(t, err)
	}
}

// runsIn are the names of the runs of pages.
func runsIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	_, list, _ := strings.Cut(string(check.Read(t, filepath.Join(dir, "runs.js"))), "(")
	var runs [][]any
	check.Err(t, json.NewDecoder(strings.NewReader(list)).Decode(&runs))
	for _, r := range runs {
		out = append(out, r[6].(string))
	}
	return out
}

// TestPagesInABrowser opens the pages from a folder, on a phone and on a wide screen: nothing overflows, no name runs,
// nothing is fetched from elsewhere, and links and drags show what they should.
func TestPagesInABrowser(t *testing.T) {
	dir := written(t)
	p, runs := open(t), runsIn(t, dir)
	for _, width := range []int64{390, 1240} {
		p.goTo(t, dir, "index.html", "", width)
		if over := ask[int](t, p, overflow); over > 0 {
			t.Errorf("the first page is %d px too wide at %d", over, width)
		}
		if n := ask[int](t, p, `document.querySelectorAll("td.regression").length`); n != 1 {
			t.Errorf("%d squares are coloured", n)
		}
		link := ask[string](t, p, `document.querySelector(".findings a").getAttribute("href")`)
		file, fragment, _ := strings.Cut(link, "#")
		p.goTo(t, dir, file, fragment, width)
		ask[bool](t, p, drawn)
		if over := ask[int](t, p, overflow); over > 0 {
			t.Errorf("the chart's page is %d px too wide at %d", over, width)
		}
		if text := ask[string](t, p, `document.querySelector("[aria-current]").textContent`); !strings.Contains(text, "regression") {
			t.Errorf("the link's change is not marked: %q", text)
		}
		p.drag(t)
		command := ask[string](t, p, `document.getElementById("bisect").textContent`)
		if !regexp.MustCompile(`^llmparity bisect --good '.*' --bad '.*' --axis git --figure decode_tps --build 'COMMAND \{\}' ` +
			`--at 'FILE-\{\}\.js'$`).MatchString(command) {
			t.Errorf("command %q", command)
		}
		if n := ask[int](t, p, `document.querySelectorAll("#chosen a[href^='https://ci.example/runs/']").length`); n != 2 {
			t.Errorf("%d links to reports", n)
		}
		// The link has it all: opened anew, it shows the same.
		hash := ask[string](t, p, `location.hash.slice(1)`)
		p.goTo(t, dir, file, hash, width)
		ask[bool](t, p, drawn)
		if again := ask[string](t, p, `document.getElementById("bisect").textContent`); again != command {
			t.Errorf("opened again: %q, was %q", again, command)
		}
		// Where another version of WebLLM ran, the command runs as it stands.
		chosen, err := url.ParseQuery(hash)
		check.Err(t, err)
		chosen.Set("a", runs[91])
		chosen.Set("b", runs[97])
		p.goTo(t, dir, file, chosen.Encode(), width)
		ask[bool](t, p, drawn)
		command = ask[string](t, p, `document.getElementById("bisect").textContent`)
		if command != "llmparity bisect --good 0.2.84 --bad 0.2.85 --axis webllm --figure decode_tps" {
			t.Errorf("command %q", command)
		}
		if ask[bool](t, p, `"owned" in window || document.images.length > 0`) {
			t.Error("a name ran as a script")
		}
	}
	if len(p.bad) > 0 {
		t.Error(strings.Join(p.bad, "\n"))
	}
}
