package reports_test

import (
	"encoding/csv"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
)

// press sends keys to what has the focus.
func (p *tab) press(t *testing.T, keys string) {
	t.Helper()
	check.Err(t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
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
func byKeyboard(t *testing.T, p *tab) {
	said := func(want string) {
		t.Helper()
		if got := ask[string](t, p, `document.getElementById("said").textContent`); !strings.Contains(got, want) {
			t.Errorf("said %q, want %q in it", got, want)
		}
	}
	p.press(t, kb.Tab)
	if got := ask[string](t, p, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first stop is %q, want the link that skips to the summary", got)
	}
	p.press(t, kb.Enter)
	if got := ask[string](t, p, `document.activeElement.id + document.activeElement.querySelector("h2").textContent`); got != "mainSummary" {
		t.Errorf("the link leads to %q", got)
	}

	p.reach(t, `document.querySelector(".tools .all")`)
	p.press(t, kb.Enter)
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
}

func sorts(t *testing.T, p *tab, said func(string)) {
	table := `document.querySelector("#forecast table.grid")`
	head := ask[int](t, p, `[...`+table+`.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("predicted"))`)
	column := func() []float64 {
		return ask[[]float64](t, p, `[...`+table+`.tBodies[0].rows].map((r) => Number(r.cells[2].dataset.v ?? -1))`)
	}
	if head != 2 || len(column()) < 6 {
		t.Fatalf("column %d of %v: the test wants the predictions'", head, column())
	}
	known := func(v []float64) []float64 { return slices.DeleteFunc(v, func(x float64) bool { return x < 0 }) }
	for _, order := range []string{"ascending", "descending"} {
		p.reach(t, table+`.tHead.rows[0].cells[2].querySelector(".sort")`)
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

// onPaper prints: what is open, in light colours, at the width of paper, and afterwards all is as it was.
func onPaper(t *testing.T, p *tab) {
	p.scheme(t, "dark")
	paper := ask[struct {
		Drawn, Charts, Shut, ShutAfter int
		Dark, DarkAfter                string
		Wide                           []float64
		Scaled                         int
	}](t, p, `(() => {
		const shut = () => document.querySelectorAll("details:not([open])").length, ink = () => getComputedStyle(document.body).color, was = shut();
		dispatchEvent(new Event("beforeprint"));
		const plots = [...document.querySelectorAll("[data-chart] .plot")].filter((p) => !p.closest("details:not([open])"));
		const seen = { Charts: plots.length, Drawn: plots.filter((p) => echarts.getInstanceByDom(p) && p.querySelectorAll("svg path").length > 3).length, Shut: was - shut(), Dark: ink(),
			Wide: plots.map((p) => Number(p.querySelector("svg").getAttribute("width"))) };
		dispatchEvent(new Event("afterprint"));
		return Object.assign(seen, { ShutAfter: was - shut(), DarkAfter: ink(), Scaled: document.querySelectorAll(".plot svg[viewBox]").length });
	})()`)
	if paper.Charts < 7 || paper.Drawn != paper.Charts || slices.Max(paper.Wide) > 690 {
		t.Errorf("%d of %d charts were drawn for paper, %v wide", paper.Drawn, paper.Charts, paper.Wide)
	}
	if paper.Shut != 0 || paper.ShutAfter != 0 {
		t.Errorf("printing opened %d folded parts, %d of them for good", -paper.Shut, -paper.ShutAfter)
	}
	if paper.Dark == paper.DarkAfter {
		t.Errorf("paper is dark: ink %s, as on a dark screen", paper.Dark)
	}
	if paper.Scaled > 0 {
		t.Errorf("%d charts keep the scale of paper", paper.Scaled)
	}
}

// copied presses every button that copies, and looks at what a table and a chart give.
func copied(t *testing.T, p *tab) {
	got := ask[struct {
		Tables, Charts, CSVs, PNGs, SVGs int
		CSV, SVG                         string
		PNG                              int
	}](t, p, `(async () => {`+comes+`
		const copied = [];
		navigator.clipboard.write = async (items) => { const type = items[0].types[0], blob = await items[0].getType(type); copied.push({ type, text: await blob.text(), size: blob.size }); };
		for (const d of document.querySelectorAll("details")) d.open = true;
		const named = (words, within = document) => [...within.querySelectorAll(".copy button")].filter((b) => b.textContent === words);
		const seen = { Tables: document.querySelectorAll("table.grid, table.summary, table.sides").length, Charts: document.querySelectorAll("[data-chart]").length, CSVs: named("Copy CSV").length, PNGs: named("PNG").length, SVGs: named("SVG").length };
		const pressed = async (button) => { button.click(); while (button.textContent !== "Copied") await frame(); return copied.pop(); };
		seen.CSV = (await pressed(named("Copy CSV", document.querySelector("#forecast"))[0])).text;
		const chart = document.querySelector("[data-chart=peaks]");
		seen.SVG = (await pressed(named("SVG", chart)[0])).text;
		const png = await pressed(named("PNG", chart)[0]);
		seen.PNG = png.type === "image/png" ? png.size : 0;
		return seen;
	})()`)
	if got.CSVs != got.Tables || got.PNGs != got.Charts || got.SVGs != got.Charts {
		t.Errorf("buttons: %d for %d tables, %d and %d for %d charts", got.CSVs, got.Tables, got.PNGs, got.SVGs, got.Charts)
	}
	rows, err := csv.NewReader(strings.NewReader(got.CSV)).ReadAll()
	if err != nil || len(rows) < 8 || rows[0][2] != "predicted" || rows[1][1] != "model weights" ||
		rows[1][2] != "4.004" {
		t.Errorf("the table of predictions is copied as\n%s (%v)", got.CSV, err)
	}
	if !strings.HasPrefix(got.SVG, "<svg") || !strings.Contains(got.SVG, "Peak memory") || got.PNG < 5000 {
		t.Errorf("a chart is copied as %d bytes of PNG and as %.200s", got.PNG, got.SVG)
	}
}

// definitions shows what a figure is where its name has the focus, is pointed at or is tapped.
func definitions(t *testing.T, p *tab) {
	name := `document.querySelector("#times .def[popovertarget=def-ttft]")`
	open := func() string {
		return ask[string](t, p, `[...document.querySelectorAll(".definition:popover-open")].map((d) => d.textContent).join()`)
	}
	how := figure.New(figure.TTFT).How
	for _, by := range []struct{ how, show, hide string }{
		{"focus", name + `.focus()`, name + `.blur()`},
		{"pointing", name + `.dispatchEvent(new PointerEvent("pointerenter", { pointerType: "mouse" }))`,
			name + `.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }))`},
		{"a tap", name + `.click()`, `document.querySelector("#def-ttft").hidePopover()`}} {
		ask[bool](t, p, `(() => { `+by.show+`; return true; })()`)
		if got := open(); !strings.Contains(got, how[1:]) || !strings.Contains(got, "lower is better") {
			t.Errorf("%s shows %q, want the definition of the time to first token", by.how, got)
		}
		ask[bool](t, p, `(() => { `+by.hide+`; return true; })()`)
		if got := open(); got != "" {
			t.Errorf("after %s it still shows %q", by.how, got)
		}
	}
	if missing := ask[[]string](t, p, `[...document.querySelectorAll(".def")].map((b) => b.getAttribute("popovertarget")).filter((id) => !document.getElementById(id))`); len(missing) > 0 {
		t.Errorf("no definition %v", missing)
	}
}

// links leads to every part by its id, folded ones are open then, and no link leads nowhere.
func links(t *testing.T, p *tab) {
	got := ask[struct {
		Folded, Anchors   int
		Hidden, Elsewhere []string
	}](t, p, `(async () => {`+frame+`
		const folded = [...document.querySelectorAll("details")], seen = { Folded: folded.length, Anchors: document.querySelectorAll(":is(h2, h3) .anchor").length, Hidden: [], Elsewhere: [] };
		for (const d of folded) {
			for (const other of folded) other.open = false;
			location.hash = "#" + d.id;
			for (let n = 0; n < 300 && !d.open; n++) await frame();
			if (!d.id || !d.open || !d.checkVisibility() || !d.querySelector("summary").checkVisibility()) seen.Hidden.push(d.id + d.querySelector("summary").textContent);
		}
		for (const a of document.querySelectorAll("a[href]")) if (!document.getElementById(a.hash.slice(1))) seen.Elsewhere.push(a.hash);
		return seen;
	})()`)
	if got.Folded < 10 || got.Anchors < 8 || len(got.Hidden)+len(got.Elsewhere) > 0 {
		t.Errorf("of %d folded parts links do not open %q; links lead nowhere: %q; %d anchors", got.Folded, got.Hidden,
			got.Elsewhere, got.Anchors)
	}
}

// No two series of a chart have both the same colour and the same pattern.
func apart(t *testing.T, p *tab) {
	got := ask[struct {
		Series int
		Alike  []string
	}](t, p, `(() => {
		const seen = { Series: 0, Alike: [] };
		for (const [id, list] of Object.entries(JSON.parse(llmparityUnpack("drawings")).charts)) for (const d of list) {
			const looks = {};
			for (const s of llmparityMarks.marked([].concat(d.options.series)).filter((s) => s.name)) {
				const item = s.itemStyle || {}, line = s.type === "line" ? s.lineStyle : {};
				const look = JSON.stringify([s.type, llmparityMarks.colourOf(s, 0), item.borderColor, item.decal, line.type, line.width, s.areaStyle, s.symbol]);
				if ((looks[look] || s.name) !== s.name) seen.Alike.push(id + ": " + looks[look] + " and " + s.name);
				looks[look] = s.name;
				seen.Series++;
			}
		}
		return seen;
	})()`)
	if got.Series < 50 || len(got.Alike) > 0 {
		t.Errorf("of %d series these look alike: %q", got.Series, got.Alike)
	}
}

// A report like the demo's has an end: on a screen, on paper and in bytes.
func sized(t *testing.T, p *tab) {
	high := ask[int](t, p, `(async () => {`+comes+`
		for (const f of document.querySelectorAll("[data-chart]")) if (!f.closest("details:not([open])")) await drawn(f);
		return document.documentElement.scrollHeight;
	})()`)
	printed, err := chromedp.Call(p.ctx, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: new(true),
		PaperWidth: 8.27, PaperHeight: 11.69})
	check.Err(t, err)
	file, err := os.Stat(strings.TrimPrefix(p.address, "file://"))
	check.Err(t, err)
	pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(printed.Data, -1))
	if high > 6000 || pages < 2 || pages > 8 || file.Size() > 900_000 {
		t.Errorf("the report is %d pixels high (at most 6000), %d pages long (at most 8), and %d bytes large (at most 900,000)",
			high, pages, file.Size())
	}
}
