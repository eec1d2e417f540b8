package reports_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"llmparity/internal/record"
)

// press sends keys to what has the focus.
func (p *tab) press(t *testing.T, keys string) {
	t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatal(err)
	}
}

// reach gives the focus to what an expression finds, and fails where a keyboard could not.
func (p *tab) reach(t *testing.T, element string) {
	t.Helper()
	if !ask[bool](t, p, `(() => { const e = `+element+
		`; e.focus(); return document.activeElement === e && e.tabIndex >= 0 && getComputedStyle(e).display !== "none"; })()`) {
		t.Fatalf("%s takes no focus", element)
	}
}

// byKeyboard does with keys alone what a mouse could, and hears what is said of it.
func byKeyboard(t *testing.T, p *tab, runs []*record.Run) {
	p.show(t, "keys", runs...)
	p.size(t, 1600)
	said := func(want string) {
		t.Helper()
		if got := ask[string](t, p, `document.getElementById("said").textContent`); !strings.Contains(got, want) {
			t.Errorf("said %q, want %q in it", got, want)
		}
	}
	p.press(t, kb.Tab)
	if got := ask[string](t, p, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first stop is %q, want the link that skips to the verdict", got)
	}
	p.press(t, kb.Enter)
	if got := ask[string](t, p, `document.activeElement.id + document.activeElement.querySelector("h2").textContent`); got != "mainVerdict" {
		t.Errorf("the link leads to %q", got)
	}

	sorts(t, p, said)
	filters(t, p, said)

	chart := `document.querySelector("[data-chart=memory-0]")`
	ask[bool](t, p, `(async () => { `+comes+` await drawn(`+chart+`); return true; })()`)
	shown := func() []float64 {
		return ask[[]float64](t, p, `(() => { const z = echarts.getInstanceByDom(`+chart+
			`.querySelector(".plot")).getOption().dataZoom[0]; return [z.start, z.end]; })()`)
	}
	for _, step := range []struct {
		name string
		want []float64
	}{{"Zoom in", []float64{25, 75}}, {"Later", []float64{50, 100}}, {"Zoom in", []float64{62.5, 87.5}},
		{"Earlier", []float64{50, 75}}, {"Zoom out", []float64{37.5, 87.5}}, {"All of the chart", []float64{0, 100}}} {
		p.reach(t, chart+`.querySelector(".zooms [aria-label='`+step.name+`']")`)
		p.press(t, kb.Enter)
		if got := shown(); !slices.EqualFunc(got, step.want, func(a, b float64) bool { return math.Abs(a-b) < 0.01 }) {
			t.Errorf("%s: from %v percent, want %v", step.name, got, step.want)
		}
	}
	said("The whole chart")

	key := chart + `.querySelectorAll(".key")[0]`
	name := ask[string](t, p, key+`.textContent`)
	hidden := func() bool {
		return ask[bool](t, p, `echarts.getInstanceByDom(`+chart+
			`.querySelector(".plot")).getOption().legend[0].selected["`+name+`"] === false`)
	}
	for _, want := range []bool{true, false} {
		p.reach(t, key)
		p.press(t, " ")
		if hidden() != want || ask[bool](t, p, key+`.getAttribute("aria-pressed") === "true"`) == want {
			t.Errorf("%s: hidden is %v, want %v", name, hidden(), want)
		}
		said(name + map[bool]string{true: " is hidden", false: " is shown"}[want])
	}

	ink := func() string { return ask[string](t, p, `getComputedStyle(document.body).color`) }
	before := ink()
	p.reach(t, `document.querySelector(".shade")`)
	p.press(t, kb.Enter)
	if after := ink(); after == before ||
		ask[int](t, p, `Object.keys({ ...localStorage, ...sessionStorage }).length + document.cookie.length`) != 0 {
		t.Errorf("the switch of colours: %s, then %s; it must remember nothing", before, after)
	}
	p.quiet(t)
}

func sorts(t *testing.T, p *tab, said func(string)) {
	table := `document.querySelector("#forecast table.grid")`
	head := ask[int](t, p, `[...`+table+`.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("foretold"))`)
	column := func() []float64 {
		return ask[[]float64](t, p, `[...`+table+`.tBodies[0].rows].map((r) => Number(r.cells[2].dataset.v ?? -1))`)
	}
	if head != 2 || len(column()) < 6 {
		t.Fatalf("column %d of %v: the test wants the forecast's", head, column())
	}
	known := func(v []float64) []float64 { return slices.DeleteFunc(v, func(x float64) bool { return x < 0 }) }
	for _, order := range []string{"ascending", "descending"} {
		p.reach(t, table+`.tHead.rows[0].cells[2].querySelector("button")`)
		p.press(t, kb.Enter)
		got := column()
		want := known(slices.Clone(got))
		slices.Sort(want)
		if order == "descending" {
			slices.Reverse(want)
		}
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %v, want what is known first, as %v", order, got, want)
		}
		if is := ask[string](t, p, table+`.tHead.rows[0].cells[2].getAttribute("aria-sort")`); is != order {
			t.Errorf("aria-sort is %q, want %s", is, order)
		}
		said(order)
	}
}

func filters(t *testing.T, p *tab, said func(string)) {
	field := `[...document.querySelectorAll(".filter input")].find((e) => e.checkVisibility())`
	table := field + `.closest(".filter").nextElementSibling.querySelector("table.grid")`
	rows := func() int {
		return ask[int](t, p, `[...`+table+`.tBodies[0].rows].filter((r) => r.getClientRects().length > 0).length`)
	}
	all := rows()
	p.reach(t, field)
	p.press(t, "WEIGHTS")
	if n := rows(); n == 0 || n >= all {
		t.Errorf("%d of %d rows have weights", n, all)
	}
	said("rows")
	p.press(t, strings.Repeat(kb.Backspace, len("WEIGHTS")))
	if n := rows(); n != all {
		t.Errorf("%d of %d rows without a filter", n, all)
	}
}

// byTouch zooms with two fingers.
func byTouch(t *testing.T, p *tab, runs []*record.Run) {
	touches := func(on bool) {
		t.Helper()
		if _, err := chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled,
			emulation.SetTouchEmulationEnabledParams{Enabled: on, MaxTouchPoints: 2}); err != nil {
			t.Fatal(err)
		}
	}
	p.show(t, "touch", runs...)
	touches(true)
	defer touches(false)
	// a page asks once whether there are fingers
	if err := chromedp.Do(p.ctx, chromedp.Navigate(p.address)); err != nil {
		t.Fatal(err)
	}
	at := ask[[]float64](t, p, `(async () => {`+comes+`
		const plot = document.querySelector("[data-chart=memory-0] .plot");
		await drawn(plot.parentElement);
		plot.scrollIntoView({ block: "center" });
		const box = plot.getBoundingClientRect();
		return [box.left + box.width / 2, box.top + box.height / 2];
	})()`)
	touch := func(kind input.DispatchTouchEventType, apart float64) {
		t.Helper()
		points := []*input.TouchPoint{}
		if kind != input.DispatchTouchEventTypeTouchEnd {
			points = []*input.TouchPoint{{X: at[0] - apart, Y: at[1], ID: new(1.0)},
				{X: at[0] + apart, Y: at[1], ID: new(2.0)}}
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchTouchEvent,
			input.DispatchTouchEventParams{Type: kind, TouchPoints: points}); err != nil {
			t.Fatal(err)
		}
	}
	touch(input.DispatchTouchEventTypeTouchStart, 20)
	for apart := 25.0; apart <= 100; apart += 15 {
		touch(input.DispatchTouchEventTypeTouchMove, apart)
	}
	touch(input.DispatchTouchEventTypeTouchEnd, 0)
	share := ask[float64](t, p, `(async () => {
		const chart = echarts.getInstanceByDom(document.querySelector("[data-chart=memory-0] .plot"));
		for (let n = 0; n < 600; n++) { // the library takes its time
			const z = chart.getOption().dataZoom[0];
			if (z.end - z.start < 95) return z.end - z.start;
			await new Promise((done) => setTimeout(done, 100));
		}
		return 100;
	})()`)
	if share == 100 {
		t.Error("two fingers that part don't zoom")
	}
	p.quiet(t)
}

// onPaper asks the page to be ready for a printer, and to be again as it was.
func onPaper(t *testing.T, p *tab, runs []*record.Run) {
	p.show(t, "paper", runs...)
	p.size(t, 1600)
	p.scheme(t, "dark")
	paper := ask[struct {
		Drawn, Charts, Shut, ShutBefore, ShutAfter int
		Dark, DarkAfter                            string
		Wide                                       []float64
	}](t, p, `(() => {
		const shut = () => document.querySelectorAll("details:not([open])").length, ink = () => getComputedStyle(document.body).color;
		const seen = { ShutBefore: shut() };
		dispatchEvent(new Event("beforeprint"));
		const plots = [...document.querySelectorAll("[data-chart] .plot")];
		Object.assign(seen, { Charts: plots.length, Drawn: plots.filter((p) => echarts.getInstanceByDom(p) && p.querySelectorAll("svg path").length > 3).length, Shut: shut(), Dark: ink(),
			Wide: plots.map((p) => Number(p.querySelector("svg").getAttribute("width"))) });
		dispatchEvent(new Event("afterprint"));
		return Object.assign(seen, { ShutAfter: shut(), DarkAfter: ink() });
	})()`)
	if paper.Charts < 7 || paper.Drawn != paper.Charts || slices.Max(paper.Wide) > 690 {
		t.Errorf("%d of %d charts were drawn for paper, %v wide", paper.Drawn, paper.Charts, paper.Wide)
	}
	if paper.Shut != 0 || paper.ShutBefore == 0 || paper.ShutAfter != paper.ShutBefore {
		t.Errorf("closed details: %d, on paper %d, afterwards %d", paper.ShutBefore, paper.Shut, paper.ShutAfter)
	}
	if paper.Dark == paper.DarkAfter {
		t.Errorf("paper is dark: ink %s, as on a dark screen", paper.Dark)
	}
	p.quiet(t)
}
