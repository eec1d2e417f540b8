package reports_test

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
)

// grids are runs of three engines with eight cells each, by what their cells differ in.
var grids = map[string]func(n int, c *record.Cell){
	"versions and contexts": func(n int, c *record.Cell) {
		c.Settings = map[string]string{c.Engine + "_version": []string{"0.2.79", "0.2.80", "0.2.81", "0.2.86"}[n/2]}
		c.Model.Context = 512 << (n % 2)
	},
	"forms and dtypes": func(n int, c *record.Cell) {
		form := []string{"q4_0", "q4_k_m", "q8_0", "f16"}[n/2]
		c.Model.Name, c.Model.Title, c.Model.DType = "Smollm2 135M 8k Lc100K Mix1 Ep2", "SmolLM2 135M", form
		c.Model.Layers, c.Model.SHA256 = 30, form
		c.DType = []string{"f16", "f32"}[n%2]
	},
	"bundles": func(n int, c *record.Cell) {
		c.Settings = map[string]string{c.Engine + "_bundle": fmt.Sprintf(
			"/home/somebody/builds/2026-11-%02d-faster-attention-for-long-contexts-on-small-adapters/dist/index.js", n+1)}
	},
}

func gridOf(t *testing.T, change func(int, *record.Cell)) *record.Run {
	var all []comparetest.Engine
	for _, e := range []comparetest.Engine{comparetest.Browser(1), comparetest.Native(1), comparetest.Served(1)} {
		for n := range 8 {
			one := e
			one.Cell.ID, one.Cell.Setup = len(all)+1, len(all)+1
			change(n, &one.Cell)
			all = append(all, one)
		}
	}
	return comparetest.Run(t, "grid", all...)
}

// numbered is a label that a number alone tells from others.
var numbered = regexp.MustCompile(`#\d|\[\d+\]$|the same cell`)

// shortens reports whether a form is a label, or one shortened: each piece of it stands in the label, in order.
func shortens(form, label string) bool {
	for piece := range strings.SplitSeq(form, "…") {
		_, after, found := strings.Cut(label, piece)
		if !found {
			return false
		}
		label = after
	}
	return true
}

// wantForms fails unless what a reader sees has one form for each label, and no two alike.
func wantForms(t *testing.T, where string, labels, seen []string) {
	t.Helper()
	if len(seen) != len(labels) {
		t.Errorf("%s: %d labels, want %d: %.300q", where, len(seen), len(labels), seen)
		return
	}
	sorted := slices.Sorted(slices.Values(seen))
	if unique := slices.Compact(sorted); len(unique) != len(labels) {
		t.Errorf("%s: labels are equal: %q", where, seen)
	}
	for _, label := range labels {
		if !slices.ContainsFunc(seen, func(form string) bool { return shortens(form, label) }) {
			t.Errorf("%s: no form of %q in %.200q", where, label, seen)
		}
	}
	for _, form := range seen {
		if numbered.MatchString(form) {
			t.Errorf("%s: %q is told from others by a number", where, form)
		}
	}
}

// shownLabels are what a page shows of labels: in the first table, beside a chart's bars, and in legends.
type shownLabels struct {
	Table, Bars []string
	Keys        [][]string // of each legend that has one for each cell
	Cut         []string   // names of which a part is out of sight
	Outside     int        // names beside bars that begin left of the page
}

const readLabels = `(async (paper) => {` + comes + `
	for (const d of document.querySelectorAll("details")) d.open = true;
	const chart = document.querySelector("[data-chart=load]");
	await drawn(chart);
	if (paper) dispatchEvent(new Event("beforeprint"));
	await frame();
	const text = (e) => e.textContent.trim();
	const lines = [...chart.querySelectorAll("svg text")].filter((e) => /[a-z]/i.test(text(e)) && !/^[\d.,]+ (ms|MiB|tok\/s|tokens\/s)$/.test(text(e)));
	const names = [...document.querySelectorAll("table.summary tbody th bdi, table.summary tbody th, table.tokens th bdi, .key bdi")].filter((e) => e.offsetParent);
	const seen = {
		Table: [...document.querySelectorAll("table.summary tbody th")].map((e) => [...e.childNodes].filter((n) => n.nodeName !== "SMALL").map(text).join("")),
		Bars: lines.map(text),
		Keys: [...document.querySelectorAll(".keys")].map((k) => [...k.querySelectorAll("bdi")].map(text)).filter((k) => k.length === 24),
		Cut: names.filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow === "hidden").map(text),
		Outside: lines.filter((e) => e.getBoundingClientRect().left < -1).length,
	};
	if (paper) dispatchEvent(new Event("afterprint"));
	return seen;
})`

func labelsOf(res *compare.Result) (out []string) {
	for _, c := range res.Cells {
		out = append(out, c.Label)
	}
	return out
}

// At the end of a run, labels are short; the details have them whole, in as many lines as they take.
func TestLabelsInTheTerminal(t *testing.T) {
	for name, change := range grids {
		t.Run(name, func(t *testing.T) {
			res := compare.Runs(gridOf(t, change))
			labels := squeezed(labelsOf(res))
			wantForms(t, "result", labels, labels)
			seen := inTerminal(rendered(t, func(w io.Writer) error { return reports.Table(w, res) }))
			if len(res.Forms) == 0 { // else rows are forms, with a column an engine
				wantForms(t, "end of a run", labels[:len(seen)], seen)
			}
			whole := inTerminal(rendered(t, func(w io.Writer) error { return reports.Details(w, res) }))
			if got, want := strings.Join(whole, ""), strings.Join(labels, ""); !strings.HasPrefix(got, want) {
				t.Errorf("details: %s\nwant %s", got, want)
			}
		})
	}
}

// Eight cells of three engines: a reader of any report tells them from one another by what differs.
func TestLabelsTellCellsApart(t *testing.T) {
	p := newTab(t)
	for name, change := range grids {
		if name == "bundles" && !check.Slow {
			continue
		}
		t.Run(name, func(t *testing.T) {
			run := gridOf(t, change)
			labels := labelsOf(compare.Runs(run))
			p.show(t, "grid", run)
			for _, width := range []int64{1280, 390} {
				p.size(t, width)
				wantShown(t, fmt.Sprintf("at %d pixels", width), labels, ask[shownLabels](t, p, readLabels+"(false)"))
			}
			p.media(t, "print")
			p.size(t, 690) // A4 within its margins
			wantShown(t, "on paper", labels, ask[shownLabels](t, p, readLabels+"(true)"))
			p.media(t, "")
			wantForms(t, "figure", labels, inFigure(t, p, run))
		})
	}
}

// inFigure are the names beside the bars of a figure for one column of a page.
func inFigure(t *testing.T, p *tab, run *record.Run) (out []string) {
	t.Helper()
	all, err := colours.Figures(false, compare.Runs(run), run)
	check.Err(t, err)
	load := all[slices.IndexFunc(all, func(f reports.Figure) bool { return f.Name == "fig-load" }):][:1]
	check.Err(t, chromedp.Do(p.ctx, chromedp.Navigate("about:blank")))
	check.Err(t, reports.DrawFigures(p.ctx, func(_ context.Context, script string) (string, error) {
		return chromedp.Run(p.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	}, load))
	for _, m := range svgText.FindAllStringSubmatch(string(load[0].SVG), -1) {
		if strings.Contains(m[1], "…") || slices.Contains(labelsOf(compare.Runs(run)), m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

var svgText = regexp.MustCompile(`<text[^>]*>([^<]*)</text>`)

func (p *tab) media(t *testing.T, media string) {
	t.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Media: media}); err != nil {
		t.Fatal(err)
	}
}

func wantShown(t *testing.T, where string, labels []string, s shownLabels) {
	t.Helper()
	wantForms(t, where+", table", labels, s.Table)
	wantForms(t, where+", bars", labels, s.Bars)
	for _, keys := range s.Keys {
		wantForms(t, where+", legend", labels, keys)
	}
	if len(s.Cut) > 0 || s.Outside > 0 {
		t.Errorf("%s: a part of %q is out of sight, and %d names beside bars", where, s.Cut, s.Outside)
	}
}

// squeezed are labels without their blanks, at which a terminal folds them.
func squeezed(labels []string) []string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = strings.ReplaceAll(l, " ", "")
	}
	return out
}

// inTerminal reads the first column of the first table of cells, without blanks: a row begins where other columns do.
func inTerminal(text string) (out []string) {
	_, table, _ := strings.Cut(text, "\ncell ")
	_, table, _ = strings.Cut(table, "\n---")
	for row := range strings.SplitSeq(table[strings.IndexByte(table, '\n')+1:], "\n") {
		fields := columns.Split(row, -1)
		switch {
		case row == "" || notRow.MatchString(row):
			return out
		case len(fields) > 1:
			out = append(out, "")
		}
		out[len(out)-1] += strings.ReplaceAll(fields[0], " ", "")
	}
	return out
}

var columns, notRow = regexp.MustCompile(` {2,}`), regexp.MustCompile(`^(and \d+ more|\S+: \S|Memory is)`)
