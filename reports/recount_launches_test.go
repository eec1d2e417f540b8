//go:build !race

package reports_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
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

// stopped says of the last cell of some, made before it was looked at, why it was not repeated any more: the interval
// of a fig reaches from its order-th value to the one as far from the other end; 0: there are too few for one.
func stopped(t *testing.T, s record.Stop, order int, all ...comparetest.Engine) *record.Stop {
	t.Helper()
	f := compare.Runs(comparetest.Run(t, "before", all...)).Cells[len(all)-1].Figure(s.Figure)
	var values []float64
	for _, v := range f.Values {
		values = append(values, v.Value)
	}
	slices.Sort(values)
	s.Cell, s.Repetitions, s.Level, s.Median = all[len(all)-1].Cell.ID, len(values), 0.95, f.Center()
	if order > 0 {
		s.Low, s.High = &values[order-1], &values[len(values)-order]
	}
	return &s
}

// looked are cells that were repeated until a fig was known well enough, or as often as may be.
func looked(t *testing.T) []comparetest.Engine {
	t.Helper()
	a, b := comparetest.Measured(comparetest.Browser(12), comparetest.Page()),
		comparetest.Loaded(comparetest.Native(11), 2, 2, 20)
	a.Vary, b.Vary = 0.05, 0.05
	a.Stop = stopped(t, record.Stop{Figure: figure.DecodeTPS, Looks: 5, Look: 3, Confidence: 0.99, Percent: 20,
		Narrow: true}, 2, a)
	b.Stop = stopped(t, record.Stop{Figure: figure.TTFT, Looks: 2, Look: 2, Confidence: 0.975, Percent: 0.1}, 2, a, b)
	return []comparetest.Engine{a, b}
}

func TestIntervalsOfCellsThatWereLookedAtAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", looked(t)...))
	if res.Cells[0].Stop == nil || res.Cells[1].Stop == nil {
		t.Error("no stops")
	}
	c := comparetest.Native(8)
	// of too few
	c.Stop = stopped(t, record.Stop{Figure: figure.TTFT, Looks: 9, Look: 9, Confidence: 1 - 0.05/9}, 0, c)
	reportAgain(t, comparetest.Write(t, t.TempDir(), "few", c))
}

// A record whose stop is another than its launches' is found out.
func TestWrongStopsAreFound(t *testing.T) {
	a := comparetest.Native(12)
	right := stopped(t, record.Stop{Figure: figure.DecodeTPS, Looks: 5, Look: 3, Confidence: 0.99, Percent: 20,
		Narrow: true}, 2, a)
	for says, change := range map[string]func(*record.Stop){
		"confidence is":             func(s *record.Stop) { s.Confidence = 0.98 },
		"level is":                  func(s *record.Stop) { s.Level, s.Confidence = 0.9, 0.98 },
		"median is":                 func(s *record.Stop) { s.Median *= 1.0001 },
		"lower end is":              func(s *record.Stop) { s.Low = new(*s.Low * 0.9999) },
		"upper end is":              func(s *record.Stop) { s.High = new(*s.High * 1.0001) },
		"interval: it is in":        func(s *record.Stop) { s.Low, s.High = nil, nil },
		"its interval is narrow":    func(s *record.Stop) { s.Percent = 0.1 },
		"though nothing was":        func(s *record.Stop) { s.Narrow = false },
		"there are 12 values":       func(s *record.Stop) { s.Repetitions = 13 },
		"look, looks is":            func(s *record.Stop) { s.Looks, s.Confidence = 4, 1-0.05/4 },
		"repetitions is":            func(s *record.Stop) { s.Look = 1 },
		"the interval was narrow":   func(s *record.Stop) { s.Percent = 90 },
		"of 5 at 12 repetitions":    func(s *record.Stop) { s.Look = 6 },
		"median is 1 in the report": func(s *record.Stop) { s.Median = 1 },
	} {
		wrong := *right
		change(&wrong)
		a.Stop = &wrong
		dir := comparetest.Write(t, t.TempDir(), "stopped", a)
		// Looks after 8, 12, 18, 27 and 40 launches.
		if err := os.WriteFile(filepath.Join(dir, "plan.yaml"),
			[]byte("repetitions: 8\nuntil_ci: {width: 20%, max_repetitions: 40}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		folder := workedOut(t, dir, compare.Defaults())
		folder.finds(t, says, func(*compare.Result) {}, false)
	}
}

func TestWrongIntervalsOfLaunchesAreFound(t *testing.T) {
	shared := workedOut(t, comparetest.Write(t, t.TempDir(), "shared", together(true, true)...), compare.Defaults())
	stopped := workedOut(t, comparetest.Write(t, t.TempDir(), "stopped", looked(t)...), compare.Defaults())
	fig := func(list []compare.Figure, name string) *compare.Figure {
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
			r.Comparisons[0].Ratios[2].Interval = &stats.Interval{Lo: 1, Hi: 2, Confidence: 0.95}
		}},
		{stopped, "why it was not repeated", func(r *compare.Result) { r.Cells[0].Stop.Looks = 4 }},
		{stopped, "decode_tps, lower end",
			func(r *compare.Result) { fig(r.Cells[0].Figures, figure.DecodeTPS).Interval.Lo *= 1.001 }},
		{stopped, "load_time, chance of the interval",
			func(r *compare.Result) { fig(r.Cells[0].Figures, figure.LoadTime).Interval.Confidence = 0.99 }},
		{stopped, "retained_pss, upper end",
			func(r *compare.Result) { fig(r.Cells[0].Figures, figure.Retained).Interval.Hi *= 1.001 }},
		{stopped, "ttft_p50, upper end",
			func(r *compare.Result) { fig(r.Cells[1].Load.Figures, "ttft_p50").Interval.Hi *= 1.001 }},
	} {
		wrong.in.finds(t, wrong.says, wrong.change, false)
	}
}
