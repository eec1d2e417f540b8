package reports_test

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/reports/reportstest"
)

// loaded are two engines at several numbers of clients, one of which takes one request at a time, and both with a mix.
func loaded(launches int) []comparetest.Engine {
	var out []comparetest.Engine
	for n, clients := range []int{1, 2, 4} {
		a, b := comparetest.Loaded(comparetest.Browser(launches), 2*n+1, clients, 20*clients),
			comparetest.Loaded(comparetest.Native(launches), 2*n+2, clients, 20*clients)
		a.Slots = 1
		out = append(out, a, b)
	}
	return append(out, comparetest.Mixed(comparetest.Native(launches), 7, 4, 40, 8))
}

func TestTrafficInReport(t *testing.T) {
	run := comparetest.Run(t, "load", loaded(6)...)
	res := compare.Runs(run)
	charts := drawn(t, res, run)
	tps := named(t, charts, "fig2_tps_vs_concurrency", "Tokens/s of all requests (tokens/s)")
	web, native := tps.points(t, "webllm"), tps.points(t, "llamacpp")
	if len(web) != 3 || len(native) != 3 || native[2][0] != 4 || native[2][1] < 3.5*native[0][1] ||
		web[2][1] > 1.2*web[0][1] {
		t.Errorf("webllm %v, llamacpp %v", web, native)
	}
	for _, id := range []string{"fig1_mem_vs_concurrency", "latency_vs_concurrency", "fig5_mixed_lengths_latency"} {
		if len(charts[id]) == 0 {
			t.Errorf("no chart %s", id)
		}
	}
	tails := named(t, charts, "fig5_mixed_lengths_latency", "Time to first token (ms)")
	if len(tails.Options.Series) != 2 || !strings.Contains(tails.Options.Series[0].Name, ": short beside others") {
		t.Errorf("%+v", tails.Options.Series)
	}
	page := rendered(t, func(w io.Writer) error { return colours.HTML(w, res, run) })
	text := reportstest.Text(t, page, "traffic")
	for _, want := range []string{"Many requests", "it had one request at a time",
		"the plan has no goal that requests are to keep", "queueing"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	tables := reportstest.Tables(t, page, "traffic")
	at := tables[0].Column("tokens/s of all")
	for i := range res.Cells {
		if f := res.Cells[i].Figure(figure.AggregateTPS); tables[0].Rows[i][at] != reportstest.Digits(f.Center()) ||
			math.IsNaN(f.Center()) {
			t.Errorf("%q of %g", tables[0].Rows[i], f.Center())
		}
	}
}

// What no cell has takes no column, and percentiles that no launch has requests enough for no place in a chart.
func TestTrafficShowsNoColumnOfNothing(t *testing.T) {
	e := comparetest.Mixed(comparetest.Native(1), 1, 2, 24, 2)
	e.Cell.Traffic.Goal = nil
	run := comparetest.Run(t, "mix", e)
	res := compare.Runs(run)
	page := rendered(t, func(w io.Writer) error { return colours.HTML(w, res, run) })
	text := reportstest.Text(t, page, "traffic")
	if !strings.Contains(text, "There is no goodput: the plan has no goal that requests are to keep.") ||
		strings.Contains(text, "goodput (requests/s)") {
		t.Errorf("goodput without a goal: %s", text)
	}
	const why = "it takes 20 requests a launch, and there are 12"
	tables := reportstest.Tables(t, page, "traffic")
	times := tables[slices.IndexFunc(tables, func(t reportstest.PageTable) bool { return t.Column("p95 (ms)") >= 0 })]
	for _, row := range times.Rows {
		if row[1] != "all" && row[2] == "end to end" && row[times.Column("p95 (ms)")] != "–" ||
			strings.Contains(strings.Join(row, " "), "it takes") {
			t.Errorf("why a percentile is missing is for below the table: %q", row)
		}
	}
	if n := strings.Count(text, why); n != 1 {
		t.Errorf("%d times %q", n, why)
	}
	tails := named(t, drawn(t, res, run), "fig5_mixed_lengths_latency", "Time to first token (ms)")
	if got := len(tails.Options.Series[0].Data); got != 2 {
		t.Errorf("%d percentiles of twelve requests of each kind, want the two that take no more", got)
	}
}

func TestRunsWithoutTrafficHaveNoSectionOfIt(t *testing.T) {
	run := comparetest.Run(t, "single", comparetest.Native(2))
	if page := rendered(t, func(w io.Writer) error {
		return colours.HTML(
			w, compare.Runs(run), run)
	}); strings.Contains(page, `id="traffic"`) {
		t.Error("there is a section of traffic")
	}
}
