package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

const minEffect = 0.02

// of is the ratio of two medians whose launches differ significantly. Its intervals reach 10% to both sides.
func of(name string, a, b float64, call stats.Call) *ratio.Ratio {
	around := func(v float64) *stats.Interval {
		return &stats.Interval{Lo: min(0.9*v, 1.1*v), Hi: max(0.9*v, 1.1*v), Confidence: 0.95}
	}
	x := &ratio.Ratio{Figure: name, Title: "the figure", Unit: "MiB", Left: ratio.Side{Median: a, N: 6},
		Right: ratio.Side{Median: b, N: 8}, Delta: b - a, DeltaInterval: around(b - a)}
	if a > 0 && b > 0 {
		times, percent := a/b, 100*(b-a)/a
		x.Ratio, x.Interval, x.Percent, x.PercentInterval = &times, around(times), &percent, around(percent)
	}
	x.Call, x.P = call, 0.002
	return x
}

func TestBetterSide(t *testing.T) {
	for _, c := range []struct {
		figure         string
		a, b           float64
		call           stats.Call
		larger, better int
		letter         ratio.Letter
	}{
		{figure.PeakPSS, 300, 100, stats.Differs, 0, 1, ratio.SideB}, // memory: less is better
		{figure.PeakPSS, 100, 300, stats.Differs, 1, 0, ratio.SideA},
		{figure.DecodeTPS, 30, 10, stats.Differs, 0, 0, ratio.SideA}, // speed: more is better
		{figure.DecodeTPS, 10, 30, stats.Differs, 1, 1, ratio.SideB},
		{"no figure of the table", 30, 10, stats.Differs, 0, verdict.None, ""},
		{figure.DecodeTPS, 30, 10, stats.TooSmall, 0, verdict.None, ""},
		{figure.DecodeTPS, 30, 10, stats.Chance, 0, verdict.None, ""},
		{figure.DecodeTPS, 30, 10, stats.TooFewToSay, 0, verdict.None, ""},
		{figure.DecodeTPS, 20, 20, stats.Differs, verdict.None, verdict.None, ""},
	} {
		v := verdict.Of(of(c.figure, c.a, c.b, c.call), "web", "native", minEffect)
		if v.Larger != c.larger || v.Better != c.better || v.BetterSide() != c.letter {
			t.Errorf("%+v: larger %d, better %d (%q)", c, v.Larger, v.Better, v.BetterSide())
		}
	}
}

func TestOutcomes(t *testing.T) {
	wide, narrow := &stats.Interval{Lo: -6, Hi: 6}, &stats.Interval{Lo: -4, Hi: 4}
	for _, c := range []struct {
		call   stats.Call
		a, b   float64
		change *stats.Interval
		want   verdict.Outcome
		equal  bool
	}{
		{stats.Differs, 300, 100, wide, verdict.Different, false},
		{stats.Differs, 100, 100, wide, verdict.TooSmall, true}, // equal medians: neither has more
		{stats.TooSmall, 101, 100, narrow, verdict.TooSmall, true},
		{stats.TooFewToSay, 300, 100, nil, verdict.TooFew, false},
		{stats.Chance, 101, 100, narrow, verdict.NoDifference, true},
		{stats.Chance, 101, 100, wide, verdict.TooNoisy, false},
		{stats.Chance, 101, 100, nil, verdict.TooNoisy, false},
	} {
		x := of(figure.PeakPSS, c.a, c.b, c.call)
		x.PercentInterval = c.change
		if v := verdict.Of(x, "web", "native", minEffect); v.Outcome != c.want || v.Equal() != c.equal {
			t.Errorf("%+v: %s, equal: %v", c, v.Outcome, v.Equal())
		}
	}
}

// Amounts and numbers of times are those of the larger side, whichever it is.
func TestAmounts(t *testing.T) {
	for _, medians := range [][2]float64{{300, 100}, {100, 300}} {
		v := verdict.Of(of(figure.PeakPSS, medians[0], medians[1], stats.Differs), "web", "native", minEffect)
		check := func(what string, got verdict.Estimate, value, lo, hi float64) {
			t.Helper()
			if i := got.Interval; i == nil || !near(got.Value, value) || !near(i.Lo, lo) || !near(i.Hi, hi) {
				t.Errorf("%v: %s %g, %v; want %g, %g to %g", medians, what, got.Value, i, value, lo, hi)
			}
		}
		check("amount", v.Amount, 200, 180, 220)
		if medians[0] > medians[1] {
			check("times", *v.Times, 3, 2.7, 3.3)
		} else { // of 1/3, from 0.3 to 0.3667
			check("times", *v.Times, 3, 1/(1.1/3), 1/0.3)
		}
	}
	v := verdict.Of(of(figure.PeakPSS, 0, 100, stats.Differs), "web", "native", minEffect)
	if v.Times != nil || v.Change != nil || v.Larger != 1 {
		t.Errorf("a ratio to 0: %+v", v)
	}
	v = verdict.OfAmounts(of(figure.PeakPSS, 300, 100, stats.Differs), "web", "native", minEffect)
	const want = "web uses 200 MiB more than native"
	if got := v.Headline(&explain.Memory, false); v.Times != nil || !v.AmountOnly || got != want {
		t.Errorf("times %v, %q; want %q", v.Times, got, want)
	}
	if got := v.Sentence(); strings.Contains(got, "times") || !strings.Contains(got, "significantly different") {
		t.Errorf("%q", got)
	}
}

func TestHeadlinesNameTheLargerSide(t *testing.T) {
	for want, medians := range map[string][2]float64{
		"web uses 3 times the memory of native": {300, 100},
		"native uses 3 times the memory of web": {100, 300},
	} {
		v := verdict.Of(of(figure.PeakPSS, medians[0], medians[1], stats.Differs), "web", "native", minEffect)
		if got := v.Headline(&explain.Memory, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A headline that names the smaller side has the interval of its own percentage, not of the larger side's.
func TestIntervalIsTheHeadlines(t *testing.T) {
	v := verdict.Of(of(figure.PeakPSS, 300, 250, stats.Differs), "base", "now", minEffect)
	if got, ci := v.Headline(&explain.Memory, true), v.CI(true); got != "now uses 17% less memory than base" ||
		!strings.Contains(ci, "15% to 18%") {
		t.Errorf("%q, %q", got, ci)
	}
	if got, ci := v.Headline(&explain.Memory, false), v.CI(false); got != "base uses 20% more memory than now" ||
		!strings.Contains(ci, "8.0% to 32%") {
		t.Errorf("%q, %q", got, ci)
	}
}

// What may not be compared keeps both values and its reason, and concludes nothing.
func TestRefusal(t *testing.T) {
	side := func(n int, median float64) evidence.Figure {
		return evidence.Figure{Name: figure.PeakPSS, Title: "peak", Unit: "MiB", N: n, Median: &median}
	}
	why := verdict.Reason{Code: "device-class", Text: "web ran on a GPU, native on a CPU"}
	v := verdict.Forbidden(side(6, 300), side(8, 100), "web", "native", why)
	if v.Outcome != verdict.NotComparable || v.Equal() || v.Larger != verdict.None || v.Better != verdict.None ||
		v.BetterSide() != "" || v.Times != nil || v.Forbids != why {
		t.Errorf("%+v", v)
	}
	if a, b := v.Sides[0], v.Sides[1]; a.Median != 300 || b.Median != 100 || a.N != 6 || b.N != 8 ||
		b.Name != "native" {
		t.Errorf("%+v", v.Sides)
	}
	if got := v.Headline(&explain.Memory, false); got != "Not comparable here" {
		t.Errorf("%q", got)
	}
	v.AtLeast, v.Larger = 150, 1
	if got := v.Headline(&explain.Memory, false); got != "native uses at least 150 MiB more than web" {
		t.Errorf("%q", got)
	}
}

// A sentence begins with a capital, but never changes a name.
func TestSentencesOfReasons(t *testing.T) {
	named := verdict.ReasonOf(explain.NoDevice, "webllm")
	if named.Text != named.Sentence || named.Text != "webllm did not report its device" {
		t.Errorf("%+v", named)
	}
	if got := verdict.ReasonOf(explain.NoLaunch, "webllm"); got.Sentence != "No launch of webllm counts" ||
		got.Text != "no launch of webllm counts" || got.Code != explain.NoLaunch.Code {
		t.Errorf("%+v", got)
	}
}

// A shortage is named for headline figures alone, and where more launches would help.
func TestShortage(t *testing.T) {
	launches := func(n int, spread float64) (out []float64) {
		for i := range n {
			out = append(out, 100*(1+spread*float64(i%2*2-1)))
		}
		return out
	}
	for _, c := range []struct {
		spread   float64
		headline bool
		launches int
		over     bool
	}{
		{0.001, true, 0, false}, // six launches show a tenth
		{0.045, true, 10, false},
		{0.2, true, 30, true},
		{0.2, false, 0, false},
	} {
		x := of(figure.PeakPSS, 101, 100, stats.Chance)
		x.Headline, x.Sides = c.headline, stats.NewSides(launches(6, c.spread), launches(8, c.spread))
		s := verdict.Of(x, "web", "native", minEffect).Shortage
		if c.launches == 0 && s != nil || c.launches > 0 && (s == nil || s.Launches != c.launches || s.Over != c.over) {
			t.Errorf("%+v: %+v", c, s)
		}
	}
}

func TestMean(t *testing.T) {
	m := &ratio.Mean{Figure: figure.DecodeTPS, Title: "decode", Ratio: 0.5, Percent: 100,
		Interval: &stats.Interval{Lo: 0.4, Hi: 0.625}}
	m.Call = stats.Differs
	v := verdict.OfMean(m, "web", "native", minEffect)
	if i := v.Times.Interval; v.Larger != 1 || v.Better != 1 || v.Times.Value != 2 || i.Lo != 1.6 || i.Hi != 2.5 {
		t.Errorf("%+v, times %+v", v, v.Times)
	}
}

// Of perplexities the lower one is better, if the interval of their ratio does not reach 1.
func TestPerplexity(t *testing.T) {
	for _, c := range []struct {
		value   float64
		i       *stats.Interval
		outcome verdict.Outcome
		better  int
	}{
		{1.2, &stats.Interval{Lo: 1.1, Hi: 1.3}, verdict.Different, 0},
		{0.8, &stats.Interval{Lo: 0.7, Hi: 0.9}, verdict.Different, 1},
		{1.2, &stats.Interval{Lo: 0.9, Hi: 1.3}, verdict.NoDifference, verdict.None},
		{1.2, nil, verdict.TooFew, verdict.None},
	} {
		f := evidence.Figure{Name: figure.PerplexityRatio, N: 6, Median: &c.value, Interval: c.i}
		v := verdict.OfPerplexity(f, "whole", "rounded")
		if v.Outcome != c.outcome || v.Better != c.better {
			t.Errorf("%+v: %s, better %d", c, v.Outcome, v.Better)
		}
	}
}

// Every outcome has words.
func TestEveryOutcomeHasWords(t *testing.T) {
	for _, o := range []verdict.Outcome{verdict.Different, verdict.TooSmall, verdict.NoDifference, verdict.TooNoisy,
		verdict.TooFew, verdict.NotComparable} {
		v := verdict.Verdict{Outcome: o, MinEffect: minEffect}
		if v.Called() == "" || o != verdict.Different && (o.Headline() == "" || o.Pairs() == "") {
			t.Errorf("%s: %q, %q, %q", o, v.Called(), o.Headline(), o.Pairs())
		}
	}
	if len(explain.Outcomes) != 6 {
		t.Errorf("%d outcomes have words", len(explain.Outcomes))
	}
}

func near(a, b float64) bool { return slices.Max([]float64{a - b, b - a}) < 1e-9 }
