package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/timing"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// Against compares one figure of a cell with that of the baseline run's cell.
type Against struct {
	ratio.Ratio      // of the first, the baseline, over the second; Percent is the change from the first to the second
	Changed     bool // it differs from the baseline run's, corrected for all comparisons of the gate
	// Usual is the interval of the change that can rule out a regression; PercentInterval is the wider one that can
	// find a regression.
	Usual *stats.Interval
	plain stats.Test // the test behind Changed
}

// CompareFigure compares a figure with that of a baseline run. The null hypothesis is that the figure changed by
// exactly the tolerance, a share such as -0.05. If the two cannot be compared, it returns the reason. Where launches
// alternated, CPU time is compared launch by launch: other programs change it less than the time, and change both
// launches of a pair alike.
func CompareFigure(base, now *Cell, name string, change float64, alternated bool) (Against, string) {
	reasons := slices.Concat(unlikeReasons(base, now, Limits), requestsDiffer(base, now), unknown(base, now))
	if len(reasons) > 0 {
		return Against{}, reasons[0].Text
	}
	if why := Unlike(name, base, now); why.Code != "" {
		if name == figure.PeakPSS && why.Code == explain.MemoryShared.Code {
			why.Text = "check peak_uss_mb instead, which other programs do not affect; " + why.Text
		}
		return Against{}, why.Text
	}
	a, b := base.Named(name), now.Named(name)
	if why := lacking(a, b); why != "" {
		return Against{}, why
	}
	was, is := a.PerLaunch(base.counted), b.PerLaunch(now.counted)
	shifted := make([]float64, len(was))
	for i, v := range was {
		shifted[i] = v * (1 + change)
	}
	plain, from := stats.NewSides(was, is), stats.NewSides(shifted, is)
	out := Against{Ratio: ratio.New(a, b, plain), plain: plain.Chance()}
	out.PercentInterval, out.Usual = plain.Shift(stats.Sure, out.Percent), plain.Shift(stats.Usual, out.Percent)
	out.Note = noteOn(name, base, now)
	out.plain.Weight, out.plain.Same = 1, fmt.Sprint(base.Label, " ", stats.OrderOf(plain))
	out.Test = from.Chance()
	if alternated && figure.OfCPU(name) {
		out.pair(paired(base, now, a, b), change)
	}
	out.Test.Weight, out.Test.Same = 1, fmt.Sprint(base.Label, " ", stats.OrderOf(from))
	return out, ""
}

// pair replaces tests, change and intervals by those of pairs of launches, if there are enough.
func (x *Against) pair(p stats.Pairs, change float64) {
	if p == nil {
		return
	}
	weight, same := x.plain.Weight, x.plain.Same
	x.Test, x.plain = p.Chance(change), p.Chance(0)
	x.plain.Weight, x.plain.Same = weight, same
	x.Percent = new(p.Percent())
	x.PercentInterval, x.Usual = p.Shift(stats.Sure), p.Shift(stats.Usual)
	x.Note = strings.TrimPrefix(x.Note+"; compared launch by launch", "; ")
}

// paired are the values of a figure in launches of the same number.
func paired(base, now *Cell, a, b evidence.Figure) stats.Pairs {
	if evidence.Rejoined(base.counted) || evidence.Rejoined(now.counted) {
		return nil
	}
	was, is := a.ByRepetition(base.counted), b.ByRepetition(now.counted)
	var x, y []float64
	for _, n := range slices.Sorted(maps.Keys(was)) {
		if v, both := is[n]; both {
			x, y = append(x, was[n]), append(y, v)
		}
	}
	return stats.NewPairs(x, y)
}

// Part is what processes of a kind, such as the renderer's, add to the CPU time of a token.
type Part struct {
	Against        // the change in percent of the CPU time of all processes; both sides are those processes' alone
	Role    string // of the processes
	Offset  bool   // others use significantly less instead, or what was read is within the tolerance
}

// CPUParts compares the CPU time of a token by kinds of processes, launch by launch; whole compares that of all. The
// null hypothesis is that a kind adds exactly the tolerance, a share of the CPU time of all.
func CPUParts(whole Against, base, now *Cell, change float64) (out []Part) {
	if evidence.Rejoined(base.counted) || evidence.Rejoined(now.counted) {
		return nil
	}
	used := func(c *Cell) timing.Used {
		return timing.Used{Whole: c.Named(figure.TokenCPU), ByRole: c.CPU, Attempts: c.counted}
	}
	for _, added := range timing.Parts(used(base), used(now)) {
		p := Part{Against: whole, Role: added.Role}
		p.Left.Median, p.Right.Median = added.Was, added.Is
		p.pair(added.Part, change)
		p.Note = "compared launch by launch with the other processes"
		p.Test.Weight, p.Test.Same = 1, base.Label+" "+added.Role
		p.plain.Same = p.Test.Same
		others := added.Others.Shift(stats.Confidence)
		p.Offset = others != nil && others.Hi < 0 || added.AsRead.Percent() < 100*change
		out = append(out, p)
	}
	return out
}

// lacking says which of two runs lacks a figure, and why; empty: both have it.
func lacking(base, now evidence.Figure) string {
	run, f := "the baseline run", base
	if f.Known() {
		run, f = "the run", now
	}
	if f.Known() {
		return ""
	}
	return fmt.Sprintf("%s has no %s: %s", run, cmp.Or(f.Title, f.Name), f.Absent)
}

// Correct applies Holm's correction to all comparisons of a gate, and returns how many tests are distinct.
func Correct(all []*Against) int {
	var plain []stats.Test
	var of []*ratio.Judgement
	for _, x := range all {
		plain, of = append(plain, x.plain), append(of, &x.Judgement)
	}
	for i, p := range stats.Holm(plain, func(t stats.Test) float64 { return t.P }) {
		all[i].Changed = p <= stats.Alpha
	}
	return ratio.Judge(of, stats.ByHolm)
}

// CompareOutputs compares the outputs of the first requests of two cells, which may be in different results.
func CompareOutputs(base, now *Cell) parity.Parity {
	return parity.SameCell(base.counted, now.counted, base.Spec.Temperature != 0 || now.Spec.Temperature != 0)
}

// QualityChanges compares the scores of a text with those of a baseline run's cell, window by window. If they cannot be
// compared, it returns the reason.
func QualityChanges(base, now *Cell, name string) (changes []float64, why string) {
	if why := lacking(base.Figure(figure.Perplexity), now.Figure(figure.Perplexity)); why != "" {
		return nil, why
	}
	if name == figure.Perplexity && base.Quality.Guesses() {
		return nil, "the baseline run's perplexity is meaningless: worse than guessing uniformly"
	}
	if changes = now.Quality.Changes(base.Quality, name); changes == nil {
		why = "the baseline run scored another text"
	}
	return changes, why
}
