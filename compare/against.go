package compare

import (
	"fmt"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
)

// Against is one figure of two cells, compared as a question of its own.
type Against struct {
	ratio.Ratio      // of the first, the baseline, over the second; Percent is the change from the first to the second
	Changed     bool // it differs from the baseline's itself, corrected likewise
	// Usual is the interval of the change with the confidence at which a regression is ruled out; PercentInterval is
	// that at which one is found.
	Usual *stats.Interval
	test  stats.Test
	plain stats.Test // of that
}

// SetAgainst compares a figure with that of a baseline run. The null hypothesis is that the figure changed by exactly
// the tolerance, a share such as -0.05. If the two cannot be compared it says why.
func SetAgainst(base, now *Cell, name string, change float64) (Against, string) {
	reasons := unlikeReasons(base, now, Limits)
	for _, d := range []*Reason{requestsDiffer(base, now), unknown(base, now), unlike(name, base, now)} {
		if d != nil {
			reasons = append(reasons, *d)
		}
	}
	if len(reasons) > 0 {
		return Against{}, reasons[0].Text
	}
	a, b := base.Named(name), now.Named(name)
	for _, side := range []struct {
		f    evidence.Figure
		what string
	}{{a, "the baseline run"}, {b, "the run"}} {
		if !side.f.Known() {
			return Against{}, fmt.Sprintf("%s has no %s: %s", side.what, title(side.f), side.f.Absent)
		}
	}
	was, is := a.PerLaunch(base.launch), b.PerLaunch(now.launch)
	moved := make([]float64, len(was))
	for i, v := range was {
		moved[i] = v * (1 + change)
	}
	plain, from := stats.NewSides(was, is), stats.NewSides(moved, is)
	out := Against{Ratio: ratio.New(a, b, plain), plain: plain.Chance(), test: from.Chance()}
	out.PercentInterval, out.Usual = plain.Shift(stats.Sure, out.Percent), plain.Shift(stats.Usual, out.Percent)
	out.Note = alikeNote(name, base, now)
	out.plain.Weight, out.plain.Same = 1, fmt.Sprint(base.Label, " ", stats.OrderOf(plain))
	out.test.Weight, out.test.Same = 1, fmt.Sprint(base.Label, " ", stats.OrderOf(from))
	return out, ""
}

// Named finds a figure or a component of the memory by its name; an empty one that says so where there is none.
func (c *Cell) Named(name string) evidence.Figure {
	f := c.Figure(name)
	if f.Title == "" && !f.Known() && memory.IsComponent(name) {
		if part := c.Parts.Component(name); part.Known() {
			return part.Figure
		}
	}
	return f
}

func title(f evidence.Figure) string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// unlike says why a figure is not the same thing on both sides.
func unlike(name string, a, b *Cell) *Reason {
	whole := func(c *Cell) bool { return c.Figure(figure.Baseline).Absent == memory.NoBaseline }
	if name == figure.Increase && whole(a) != whole(b) {
		return new(reason(Limits, explain.BaselinesDiffer))
	}
	for _, of := range []struct {
		what   figure.Moves
		differ func(a, b *Cell) *Reason
	}{{figure.Sharing, memoryShared}, {figure.Cache, cachesDiffer}, {figure.Load, loadsDiffer}} {
		if moved(name, of.what) {
			if d := of.differ(a, b); d != nil {
				return d
			}
		}
	}
	return nil
}

// moved tells whether something moves a figure.
func moved(name string, by figure.Moves) bool {
	r := figure.Of(name)
	return r != nil && r.Moves.Has(by)
}

// Correct applies Holm's correction to all questions of a gate, and returns how many tests are distinct.
func Correct(all []*Against) int {
	var tests, plain []stats.Test
	var of []*ratio.Judgement
	for _, x := range all {
		tests, plain, of = append(tests, x.test), append(plain, x.plain), append(of, &x.Judgement)
	}
	for i, p := range stats.Holm(plain, func(t stats.Test) float64 { return t.P }) {
		all[i].Changed = p <= stats.Alpha
	}
	return ratio.Judge(tests, of)
}

// SameWords compares the outputs of the first requests of two cells, which may be of different results.
func SameWords(base, now *Cell) parity.Parity {
	return parity.Said(base.said, now.said, base.Spec.Temperature != 0 || now.Spec.Temperature != 0)
}
