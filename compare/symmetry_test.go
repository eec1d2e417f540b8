package compare_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// varied are pairs of comparetest.Series that a comparison must treat alike whichever way they are given.
func varied() map[string][2]comparetest.Series {
	of := func(launches, cells int, cv, decode float64) comparetest.Series {
		return comparetest.Series{Launches: launches, Cells: cells, CV: cv,
			Shift: map[string]float64{figure.DecodeTPS: decode}}
	}
	return map[string][2]comparetest.Series{
		"equal":             {of(10, 2, 0.05, 1), of(10, 2, 0.05, 1)},
		"shifted":           {of(10, 2, 0.05, 1), of(10, 2, 0.05, 1.4)},
		"by a little":       {of(12, 1, 0.0005, 1), of(12, 1, 0.0005, 1.004)},
		"a cell is missing": {of(10, 3, 0.05, 1), of(10, 2, 0.05, 1.2)},
		"other numbers":     {of(7, 2, 0.05, 1), of(13, 2, 0.05, 1.3)},
		"few":               {of(3, 2, 0.05, 1), of(3, 2, 0.05, 1.3)},
		"constant":          {of(8, 2, 0, 1), of(8, 2, 0, 1)},
		"two levels":        {of(8, 1, 0, 1), of(8, 1, 0, 1.5)},
	}
}

func close6(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(a), math.Abs(b)) }

// turned reports whether an interval of A over B is that of B over A turned round.
func turned(a, b *stats.Interval) bool {
	if a == nil || b == nil {
		return a == b
	}
	return close6(a.Lo, 1/b.Hi) && close6(a.Hi, 1/b.Lo)
}

func TestSwappedRunsInvertRatios(t *testing.T) {
	for name, s := range varied() {
		r := rand.New(rand.NewPCG(4, 2))
		a, b := s[0].Run(r, "a"), s[1].Run(r, "b")
		ab, ba := compare.Runs(a, b), compare.Runs(b, a)
		if len(ab.Comparisons) != min(s[0].Cells, s[1].Cells) || len(ab.Comparisons) != len(ba.Comparisons) {
			t.Fatalf("%s: %d and %d comparisons", name, len(ab.Comparisons), len(ba.Comparisons))
		}
		for i, c := range ab.Comparisons {
			if len(c.Ratios) != 6 {
				t.Errorf("%s: %d ratios", name, len(c.Ratios))
			}
			for k, x := range c.Ratios {
				y := ba.Comparisons[i].Ratios[k]
				if x.P != y.P || x.Raw != y.Raw || x.Call != y.Call || !close6(*x.Ratio, 1 / *y.Ratio) ||
					!close6(x.Delta, -y.Delta) || !turned(x.Interval, y.Interval) {
					t.Errorf("%s: %+v\n%+v", name, x, y)
				}
			}
		}
		x, y := ab.Families[0].Means, ba.Families[0].Means
		for i := range x {
			if x[i].P != y[i].P || x[i].Call != y[i].Call || !close6(x[i].Ratio, 1/y[i].Ratio) ||
				!turned(x[i].Interval, y[i].Interval) {
				t.Errorf("%s: %+v\n%+v", name, x[i], y[i])
			}
		}
		if len(x) != len(y) || (len(x) > 0) != (len(ab.Comparisons) > 1) {
			t.Errorf("%s: %d and %d means", name, len(x), len(y))
		}
	}
}

// judged is what a result says of differences, without the words.
func judged(r *compare.Result) (ratios []ratio.Ratio, means []ratio.Mean) {
	for _, c := range r.Comparisons {
		ratios = append(ratios, c.Ratios...)
	}
	for _, f := range r.Families {
		means = append(means, f.Means...)
	}
	return ratios, means
}

func TestOrderOfLaunchesChangesNoRatio(t *testing.T) {
	for name, s := range varied() {
		r := rand.New(rand.NewPCG(6, 2))
		a, b := s[0].Run(r, "a"), s[1].Run(r, "b")
		x, means := judged(compare.Runs(a, b))
		r.Shuffle(len(b.Attempts), func(i, j int) { b.Attempts[i], b.Attempts[j] = b.Attempts[j], b.Attempts[i] })
		y, others := judged(compare.Runs(a, b))
		for i := range x {
			if x[i].P != y[i].P || x[i].Verdict != y[i].Verdict || x[i].Interval != nil &&
				*x[i].Interval != *y[i].Interval {
				t.Errorf("%s: %+v\n%+v", name, x[i], y[i])
			}
		}
		for i := range means {
			if means[i].P != others[i].P || means[i].Verdict != others[i].Verdict {
				t.Errorf("%s: %+v\n%+v", name, means[i], others[i])
			}
		}
	}
}

// telling are words that claim a difference.
var telling = []string{"times", "faster", "slower", "more than", "less than", "larger", "smaller", "higher", "lower",
	"different", " under "}

func TestVerdictsClaimSignificantDifferencesOnly(t *testing.T) {
	seen := map[stats.Call]int{}
	for name, s := range varied() {
		r := rand.New(rand.NewPCG(7, 2))
		ratios, means := judged(compare.Runs(s[0].Run(r, "a"), s[1].Run(r, "b")))
		said := func(what string, call stats.Call, significant bool, verdict string) {
			seen[call]++
			claims := slices.ContainsFunc(telling, func(w string) bool { return strings.Contains(verdict, w) })
			if claims != (call == stats.Differs || call == stats.TooSmall) || claims != significant {
				t.Errorf("%s, %s is called %q: %s", name, what, call, verdict)
			}
			if small := strings.Contains(verdict, "significant, but under 1%"); small != (call == stats.TooSmall) {
				t.Errorf("%s, %s is called %q: %s", name, what, call, verdict)
			}
		}
		for _, x := range ratios {
			said(x.Figure, x.Call, x.Significant, strings.ReplaceAll(x.Verdict, x.Title, "it"))
		}
		for _, m := range means {
			said("the mean of "+m.Figure, m.Call, m.Significant, strings.ReplaceAll(m.Verdict, m.Title, "it"))
		}
	}
	for _, call := range []stats.Call{stats.Differs, stats.TooSmall, stats.Chance, stats.TooFewToSay} {
		if seen[call] == 0 {
			t.Errorf("nothing was called %q", call)
		}
	}
}

// An engine may hold no more than it did before the load: of such figures there is no ratio, and there may well be a
// difference.
func TestZeroHasNoRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	s := comparetest.Series{Launches: 8, Cells: 1, CV: 0.01}
	shrunk := func(name string) *record.Run {
		run := s.Run(r, name)
		for _, attempt := range run.Attempts {
			for i := range attempt.Totals[1:] {
				attempt.Totals[i+1].PSS = attempt.Totals[0].PSS - 5
			}
		}
		return run
	}
	increase := func(a, b *record.Run) ratio.Ratio {
		ratios := compare.Runs(a, b).Comparisons[0].Ratios
		at := slices.IndexFunc(ratios, func(x ratio.Ratio) bool { return x.Figure == figure.Increase })
		if at < 0 {
			t.Fatal("no increase was compared")
		}
		return ratios[at]
	}
	x := increase(s.Run(r, "a"), shrunk("b"))
	if x.Ratio != nil || x.Percent == nil || *x.Percent != -100 || x.Interval != nil || x.Delta >= 0 ||
		x.DeltaInterval == nil || x.IntervalNote != "not all values above 0" || x.Call != stats.Differs ||
		!strings.HasSuffix(x.Verdict, " for b, significantly different (p = 0.003, n = 8 and 8)") {
		t.Errorf("%+v", x)
	}
	x = increase(shrunk("a"), shrunk("b"))
	if x.Ratio != nil || x.Percent != nil || x.Delta != 0 || x.P != 1 || x.Call != stats.Chance {
		t.Errorf("%+v", x)
	}
}

// A prompt that a plan names twice makes four pairs of two runs' cells, which are no more launches than two.
func TestMeansCountEachLaunchOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	s := comparetest.Series{Launches: 8, Cells: 2, CV: 0.05}
	twice := func(name string) *record.Run {
		run := s.Run(r, name)
		run.Cells[1].Prompt = run.Cells[0].Prompt
		return run
	}
	res := compare.Runs(twice("a"), twice("b"))
	if len(res.Comparisons) != 4 || len(res.Families[0].Means) == 0 {
		t.Fatalf("%d comparisons, %d means", len(res.Comparisons), len(res.Families[0].Means))
	}
	for _, m := range res.Families[0].Means {
		if m.Cells != 2 || m.Left != 2 {
			t.Errorf("%s: of %d pairs, %d left out", m.Figure, m.Cells, m.Left)
		}
	}
}

// An interval of a change never contradicts what the corrected test says.
func TestIntervalsAgreeWithCorrectedTests(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	replaced := 0
	for n := range 12 {
		s := comparetest.Series{Launches: 6 + n%3*2, Cells: 2, CV: 0.03}
		by := 1 + 0.01*float64(n)
		res := compare.Runs(s.Run(r, "a"), comparetest.Slowed(s.Run(r, "b"), map[int]float64{1: by, 2: by}))
		agrees := func(significant bool, i *stats.Interval, title string) {
			if i != nil && significant == (i.Lo <= 0 && i.Hi >= 0) {
				t.Errorf("%s: significant %v, but the interval is %+v", title, significant, *i)
			}
			if i != nil && i.Confidence > stats.Confidence {
				replaced++
			}
		}
		ratios, means := judged(res)
		for _, x := range ratios {
			agrees(x.Significant, x.PercentInterval, x.Title)
			agrees(x.Significant, x.DeltaInterval, x.Title)
		}
		for _, m := range means {
			agrees(m.Significant, m.PercentInterval, "mean "+m.Title)
		}
	}
	if replaced == 0 {
		t.Error("no interval was that of the test: the case is not tested")
	}
}

// Of equal medians, where few launches vary much and many little, more than one family in twenty is called different:
// ranks know no other reason for such orders. What is called so says that.
func TestUnevenSpreadIsWarnedOf(t *testing.T) {
	const trials = 150
	called, warned := 0, 0
	for i := range trials {
		r := rand.New(rand.NewPCG(uint64(i), 31))
		few, many := comparetest.Series{Launches: 6, Cells: 1, CV: 0.1, Bell: true},
			comparetest.Series{Launches: 20, Cells: 1, CV: 0.02, Bell: true}
		for _, x := range compare.Runs(few.Run(r, "few"), many.Run(r, "many")).Comparisons[0].Ratios {
			if !x.Significant {
				continue
			}
			called++
			if slices.ContainsFunc(x.Warnings,
				func(w evidence.Warning) bool { return w.Code == explain.UnevenSpread.Code }) {
				warned++
				if !strings.Contains(x.Verdict, "launches vary differently") ||
					!strings.Contains(x.Warnings[len(x.Warnings)-1].Where, "few") {
					t.Errorf("%s; %+v", x.Verdict, x.Warnings)
				}
			}
		}
	}
	t.Logf("of %d families of equal medians %d figures were called different, with a warning %d", trials, called,
		warned)
	if called == 0 || warned < 8*called/10 {
		t.Errorf("%d figures were called different, and of %d it was said that it may be of spread", called, warned)
	}
}

// What was looked at several times has an interval that holds whichever look was the last.
func TestIntervalsAreWiderAfterPeeking(t *testing.T) {
	run := comparetest.Run(t, "until", comparetest.Native(12), comparetest.Browser(12))
	plain := compare.Runs(run)
	run.Stops = map[int]record.Stop{2: {Cell: 2, Figure: figure.DecodeTPS, Repetitions: 12, Looks: 5, Look: 3,
		Level: 0.95, Confidence: 0.99, Percent: 5, Narrow: true}}
	res := compare.Runs(run)
	for _, name := range []string{figure.DecodeTPS, figure.LoadTime} {
		for i, looked := range []bool{true, false} { // the native engine is cell 2
			before, after := plain.Cells[i].Figure(name), res.Cells[i].Figure(name)
			if *before.Median != *after.Median || before.N != 12 {
				t.Errorf("%s: %+v, %+v", name, before, after)
			}
			// Of twelve launches the third to the tenth are one of 96%, the second to the eleventh one of 99.4%.
			if wider := after.Interval.Lo < before.Interval.Lo &&
				after.Interval.Hi > before.Interval.Hi; wider != looked {
				t.Errorf("%s of %s: %+v, %+v", name, res.Cells[i].Label, before.Interval, after.Interval)
			}
			if looked && (after.Interval.Confidence < 0.95 ||
				!strings.Contains(after.How, "checked up to 5 times: a 99% interval")) {
				t.Errorf("%s: %+v, %q", name, after.Interval, after.How)
			}
		}
	}
	unreached := func(res *compare.Result) (texts []string) {
		for _, w := range res.Notes {
			if w.Code == "until-ci" && w.Where == res.Cells[0].Label {
				texts = append(texts, w.Text)
			}
		}
		return texts
	}
	stop := run.Stops[2]
	stop.Narrow, stop.Median, stop.Low, stop.High = false, 50, new(48.0), new(55.0)
	run.Stops[2] = stop
	const note = "until_ci: decode has an interval that reaches 10.0% from the median after 12 repetitions, the most that " +
		"the plan allows; ±5% was asked for"
	if was, is := unreached(res), unreached(compare.Runs(run)); len(was) != 0 || len(is) != 1 || is[0] != note {
		t.Errorf("%q, then %q", was, is)
	}
	run.Stops[2] = record.Stop{Cell: 2, Figure: figure.DecodeTPS, Looks: 100, Level: 0.95, Confidence: 0.9999}
	if f := compare.Runs(run).Cells[0].Figure(figure.DecodeTPS); f.Interval != nil || f.Note != evidence.TooFewRuns {
		t.Errorf("%+v", f)
	}
}

// Beside times of two runs that differ stands that the slower one had busy neighbours; beside memory it does not, nor
// where the quicker one had.
func TestStolenTimeIsWarnedOf(t *testing.T) {
	little, much := func(n int) float64 { return 0.01 * float64(n%3) },
		func(n int) float64 { return 0.04 + 0.01*float64(n%3) }
	quick, slow := comparetest.Native(8), comparetest.Native(8)
	slow.Token *= 2
	slow.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 60, Shared: 3}}
	for name, of := range map[string]struct {
		quick, slow func(int) float64
		want        bool
	}{"of the slower": {little, much, true}, "of the quicker": {much, little, false}, "of both": {much, much, false},
		"untold": {nil, much, false}} {
		quick.Stolen, slow.Stolen = of.quick, of.slow
		res := compare.Runs(comparetest.Run(t, "quick", quick), comparetest.Run(t, "slow", slow))
		for _, x := range res.Comparisons[0].Ratios {
			warned := slices.ContainsFunc(x.Warnings, func(w evidence.Warning) bool {
				return w.Code == explain.StolenTime.Code && strings.Contains(w.Text, "the host gave ") &&
					strings.Contains(w.Where, "slow")
			})
			if want := of.want && (x.Figure == figure.DecodeTPS); warned != want &&
				(x.Figure == figure.DecodeTPS || x.Figure == figure.PeakPSS) {
				t.Errorf("%s: %s: %q, %+v", name, x.Figure, x.Verdict, x.Warnings)
			}
		}
	}
}

// Of twenty launches a side the smallest p has more digits than are told: it is small, and not nothing.
func TestSmallPIsNotZero(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	s := comparetest.Series{Launches: 20, Cells: 2, CV: 0.02}
	res := compare.Runs(s.Run(r, "a"), comparetest.Slowed(s.Run(r, "b"), map[int]float64{1: 2, 2: 2}))
	ratios, means := judged(res)
	small := slices.ContainsFunc(ratios, func(x ratio.Ratio) bool {
		return strings.Contains(x.Verdict, "(p < 1e-09, n = 20 and 20)")
	})
	for _, m := range means {
		small = small && !strings.Contains(m.Verdict, "p = 0)")
	}
	if !small {
		t.Errorf("%+v\n%+v", ratios, means)
	}
}
