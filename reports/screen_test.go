package reports_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/chart"
	"llmparity/reports/reportstest"
)

// bundled are cells of WebLLM with several bundles and contexts, with all that a page reports. The last of several
// bundles stalls for 3 ms at each token, so it decodes 30% slower.
func bundled(contexts []int, bundles ...string) []comparetest.Engine {
	var out []comparetest.Engine
	for i, bundle := range bundles {
		for _, context := range contexts {
			e := comparetest.Measured(comparetest.Browser(6), comparetest.Page())
			e.Cell.ID, e.Cell.Model.Context = len(out)+1, context
			e.Cell.Settings = map[string]string{"webllm_bundle": bundle}
			e.Token = 7 * time.Millisecond
			if i > 0 && i == len(bundles)-1 {
				e.Token += 3 * time.Millisecond
			}
			out = append(out, e)
		}
	}
	return out
}

// manyBundles are 24 cells.
func manyBundles() []comparetest.Engine {
	var names []string
	for n := range 8 {
		names = append(names, fmt.Sprint("build-", n+1))
	}
	return bundled([]int{512, 1024, 2048}, names...)
}

// stalled is a run of a bundle that stalls at each token, held against a run of one that does not.
func stalled(t *testing.T, rules string) (*compare.Result, *record.Run) {
	t.Helper()
	both := bundled([]int{1024}, "main", "pr-845")
	base, run := comparetest.Run(t, "main", both[:1]...), comparetest.Run(t, "pr-845", both[1:]...)
	return judged(t, rules, run, base), run
}

// A regression is in the first sentence that a reader sees, wherever that is.
func TestRegressionComesFirst(t *testing.T) {
	res, run := stalled(t, `{"vs_baseline": {"decode_tps": "-5%", "ttft_ms": "+10%", "peak_pss_mb": "+5%"}}`)
	two := comparetest.Run(t, "builds", bundled([]int{1024}, "main", "pr-845")...)
	first := func(render func(io.Writer, *compare.Result) error, of *compare.Result) string {
		line, _, _ := strings.Cut(rendered(t, func(w io.Writer) error { return render(w, of) }), "\n")
		return line
	}
	for name, c := range map[string]struct{ got, want string }{
		"comment":        {first(ofGate(reports.GateMarkdown), res), "FAIL: **decode -3"},
		"gate":           {first(ofGate(reports.GateTable), res), "FAIL: decode -3"},
		"end of a run":   {first(reports.Table, res), "Decode speed is 3"},
		"two builds":     {first(reports.Table, compare.Runs(two)), "pr-845 is 31% slower"},
		"page":           {reportstest.Lines(t, pageOf(t, res, run), "main")[0], "Decode speed is 3"},
		"page, gate":     {reportstest.Lines(t, pageOf(t, res, run), "answer")[1], "FAIL decode -3"},
		"page of builds": {reportstest.Lines(t, pageOf(t, compare.Runs(two), two), "main")[0], "pr-845 is 31% slower"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %q, want %q in it", name, c.got, c.want)
		}
	}
}

// A comment is at most 12 lines, however many checks fail, and one line if all pass. It has no figure twice.
func TestCommentOfAGateIsShort(t *testing.T) {
	comment := func(res *compare.Result) string {
		return rendered(t, func(w io.Writer) error { return reports.GateMarkdown(w, res.Gate) })
	}
	failed, _ := stalled(t, `{"peak_pss_mb": {"max": 9}, "baseline_pss": {"max": 1}, "ttft_ms": {"max": 1},
		"latency": {"max": 1}, "load_time_ms": {"max": 1}, "vs_baseline": {"decode_tps": "-5%"}}`)
	text := comment(failed)
	if n := strings.Count(text, "\n"); n > 12 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	seen := map[string]bool{}
	for _, word := range strings.Fields(text) {
		word = strings.Trim(word, "*|(;,).")
		if _, err := strconv.ParseFloat(strings.Trim(word, "+-%"), 64); err == nil && strings.Contains(word, ".") {
			if seen[word] {
				t.Errorf("%s stands there twice:\n%s", word, text)
			}
			seen[word] = true
		}
	}
	if len(seen) < 6 || !strings.Contains(text, "1 more check fails") {
		t.Errorf("%d figures:\n%s", len(seen), text)
	}
	passed, _ := stalled(t, `{"vs_baseline": {"ttft_ms": "+20%", "peak_pss_mb": "+5%"}}`)
	if text := comment(passed); passed.Gate.Status != gates.Passed || strings.Count(text, "\n") != 1 ||
		!strings.HasPrefix(text, "**PASS: ") {
		t.Errorf("%s:\n%s", passed.Gate.Status, text)
	}
}

// Many warnings of one kind are one line, which says how many figures of which cells they are about.
func TestEqualWarningsAreOneLine(t *testing.T) {
	engines := bundled([]int{1024}, "main", "pr-845")
	for i := range engines {
		engines[i].Vary = 0.4
	}
	run := comparetest.Run(t, "noisy", engines...)
	run.Environment.Background = &record.Background{Seconds: 1, Cores: 6}
	res := compare.Runs(run)
	all := reportstest.Lines(t, pageOf(t, res, run), "noted")
	for _, code := range []string{"wide-interval", "busy-machine"} {
		about := slices.DeleteFunc(slices.Clone(all), func(l string) bool { return !strings.Contains(l, code) })
		if len(about) != 1 {
			t.Errorf("%s has %d lines: %q", code, len(about), all)
		}
	}
	page := strings.Join(reportstest.Lines(t, pageOf(t, res, run), "summary"), "\n")
	named := strings.Contains(page, "wide interval") || strings.Contains(page, "busy machine")
	if named || !strings.Contains(page, " !") {
		t.Errorf("fields of the table name warnings in place of a mark:\n%s", page)
	}
}

// A report has an end before anything is opened, on a screen and on a phone.
func longPages(t *testing.T, p *tab) {
	for name, c := range map[string]struct {
		engines       []comparetest.Engine
		screen, phone int
	}{
		"2 cells":   {bundled([]int{1024}, "main", "pr-845"), 6000, 12_000},
		"2 engines": {insides(6), 6000, 12_000},
		"24 cells":  {manyBundles(), 12_000, 20_000},
	} {
		p.show(t, "long", comparetest.Run(t, "long", c.engines...))
		for width, most := range map[int64]int{1280: c.screen, 390: c.phone} {
			p.size(t, width)
			high := ask[int](t, p, `(async () => {`+comes+`
				for (const f of document.querySelectorAll("[data-chart]")) if (!f.closest("details:not([open])")) await drawn(f);
				return document.documentElement.scrollHeight;
			})()`)
			if high > most || high < 2000 {
				t.Errorf("%s: the page is %d pixels high at a width of %d, at most %d are allowed", name, high, width, most)
			}
		}
		shut := ask[[]string](t, p, `[...document.querySelectorAll("main > section")].filter((s) => { const all = [...s.querySelectorAll("table, [data-chart]")]; return s.id !== "measured" && all.length && all.every((e) => e.closest("details:not([open])")); }).map((s) => s.id)`)
		if len(shut) > 0 {
			t.Errorf("%s: sections without an open chart or table: %q", name, shut)
		}
	}
}

// If CPU time alone fails a gate of two sides, title, picture and table are about it, and so is a comment.
func TestCPUTimeThatFailsIsShown(t *testing.T) {
	s := comparetest.Series{Launches: 12, Cells: 1, CV: 0.02, CPU: 0.01}
	base := s.Run(rand.New(rand.NewPCG(7, 1)), "main.js")
	s.Shift = map[string]float64{figure.TokenCPU: 1.2}
	now := s.Run(rand.New(rand.NewPCG(7, 2)), "pr.js")
	now.Meta.Against = "main.js"
	res := compare.Runs(base, now)
	res.Gate = gate.Evaluate((&gates.Gate{}).Against(), compare.Runs(now), compare.Runs(base))
	for name, text := range map[string]string{
		"terminal": rendered(t, func(w io.Writer) error { return reports.Table(w, res) }),
		"Markdown": rendered(t, func(w io.Writer) error { return reports.Markdown(w, res) }),
		"page":     strings.Join(reportstest.Lines(t, pageOf(t, res, base, now), "main"), "\n"),
	} {
		title, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "## "), "\n")
		if !strings.HasPrefix(strings.TrimPrefix(title, "h1 "), "pr.js needs 20% more CPU time per token than main.js") {
			t.Errorf("%s: the title is %q", name, title)
		}
		check.Has(t, text, "CPU time per token", "+20%")
	}
	v := &chart.View{Res: res, Runs: []*record.Run{base, now}}
	all := chart.Headlines(v, answer.Of(res).Compared)
	if len(all) != 1 || all[0].Drawings[0].Figure != figure.TokenCPU {
		t.Errorf("%d pictures: %+v", len(all), all)
	}
	comment := rendered(t, func(w io.Writer) error { return ofGate(reports.GateMarkdown)(w, res) })
	check.Has(t, comment, "FAIL: ", "CPU time per token +20.3%")
}
