//go:build !race

package reports_test

import (
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// together are engines whose repetitions go on in one launch each, and others of their own; both are on one device.
func together(reused ...bool) []comparetest.Engine {
	var out []comparetest.Engine
	for i, prompt := range []string{"Once", "upon"} {
		a, b := comparetest.Browser(7), comparetest.Native(8)
		a.Device, a.Vary, b.Vary = b.Device, 0.05, 0.05
		for n, e := range []*comparetest.Engine{&a, &b} {
			e.Cell.ID, e.Cell.Prompt, e.Cell.PromptID = 2*i+n+1, prompt, i+1
			e.Cell.Reused, e.Reused = reused[n], reused[n]
			out = append(out, *e)
		}
	}
	return out
}

// Repetitions of one launch are one value in a ratio, and of a mean.
func TestRatiosOfSharedLaunchesAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", together(true, true)...))
	if len(res.Comparisons[0].Ratios) == 0 || res.Comparisons[0].Ratios[0].Left.N != 1 {
		t.Errorf("%+v", res.Comparisons)
	}
}

// looked are cells that were repeated until a figure was known well enough; the second without a figure that could be.
func looked() []comparetest.Engine {
	a, b := comparetest.Measured(comparetest.Browser(12), comparetest.Page()), comparetest.Loaded(comparetest.Native(11), 2, 2, 20)
	a.Vary, b.Vary = 0.05, 0.05
	low, high := 1.0, 2.0
	a.Stop = &record.Stop{Cell: 1, Figure: compare.DecodeTPS, Repetitions: 12, Looks: 5, Look: 3, Level: 0.95, Confidence: 0.99, Low: &low, High: &high,
		Percent: 5, Narrow: true}
	b.Stop = &record.Stop{Cell: 2, Figure: compare.TTFT, Repetitions: 11, Looks: 2, Look: 2, Level: 0.95, Confidence: 0.975}
	return []comparetest.Engine{a, b}
}

func TestIntervalsOfCellsThatWereLookedAtAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", looked()...))
	if res.Cells[0].Stop == nil || res.Cells[1].Stop == nil {
		t.Error("no stops")
	}
	c := comparetest.Native(8)
	c.Stop = &record.Stop{Cell: 2, Figure: compare.TTFT, Repetitions: 8, Looks: 9, Look: 9, Level: 0.95, Confidence: 0.9999} // of too few
	reportAgain(t, comparetest.Write(t, t.TempDir(), "few", c))
}

func TestWrongIntervalsOfLaunchesAreFound(t *testing.T) {
	shared := workedOut(t, comparetest.Write(t, t.TempDir(), "shared", together(true, true)...), compare.Defaults())
	stopped := workedOut(t, comparetest.Write(t, t.TempDir(), "stopped", looked()...), compare.Defaults())
	figure := func(list []compare.Figure, name string) *compare.Figure {
		return &list[slices.IndexFunc(list, func(f compare.Figure) bool { return f.Name == name })]
	}
	for _, wrong := range []struct {
		in     *recounted
		says   string
		change func(*compare.Result)
	}{
		{shared, "left, launches is", func(r *compare.Result) { r.Comparisons[0].Ratios[2].Left.N = 7 }},
		{shared, "p is", func(r *compare.Result) { r.Comparisons[0].Ratios[2].Raw = 0.0006 }},
		{shared, "right, upper end", func(r *compare.Result) { r.Comparisons[0].Ratios[2].Right.Interval.Hi *= 1.001 }},
		{shared, "interval is", func(r *compare.Result) {
			r.Comparisons[0].Ratios[2].Interval = &compare.Interval{Lo: 1, Hi: 2, Confidence: 0.95}
		}},
		{stopped, "why it was not repeated", func(r *compare.Result) { r.Cells[0].Stop.Looks = 4 }},
		{stopped, "decode_tps, lower end", func(r *compare.Result) { figure(r.Cells[0].Figures, compare.DecodeTPS).Interval.Lo *= 1.001 }},
		{stopped, "load_time, chance of the interval", func(r *compare.Result) { figure(r.Cells[0].Figures, compare.LoadTime).Interval.Confidence = 0.99 }},
		{stopped, "retained_pss, upper end", func(r *compare.Result) { figure(r.Cells[0].Figures, compare.Retained).Interval.Hi *= 1.001 }},
		{stopped, "ttft_p50, upper end", func(r *compare.Result) { figure(r.Cells[1].Load.Figures, "ttft_p50").Interval.Hi *= 1.001 }},
	} {
		wrong.in.finds(t, wrong.says, wrong.change, false)
	}
}
