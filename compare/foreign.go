package compare

import (
	"slices"

	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
)

// comparedOf lists the figures that ratios of two cells are given for: of rows that another program wrote, what they
// have.
func comparedOf(a, b *Cell) []string {
	if a.Foreign() || b.Foreign() {
		return []string{figure.PeakRSS, figure.PeakHeap}
	}
	if a.Load != nil && b.Load != nil {
		names := compared(true)
		if t := tail(a, b); t != "" {
			names = append(names, t)
		}
		return names
	}
	return compared(false)
}

// pairForeign sets rows that another program wrote against all other cells that have the like of theirs, where that is
// asked for. Each ratio is marked: nobody knows that they are about the same thing.
func (r *Result) pairForeign(e []gathered, o Options) {
	if !o.AllowDifferent {
		return
	}
	for i := range r.Cells {
		for j := i + 1; j < len(r.Cells); j++ {
			a, b := &r.Cells[i], &r.Cells[j]
			if !a.Foreign() && !b.Foreign() {
				continue
			}
			c := Comparison{A: i, B: j, Caveats: []string{}, Ratios: []ratio.Ratio{}}
			for _, x := range []*Cell{a, b} {
				if x.Foreign() {
					c.add(reason(Marks, explain.ForeignUnknown, x.Label))
				}
			}
			c.fill(a, b, launchOf(e[i].counted), launchOf(e[j].counted))
			if len(c.Ratios) > 0 {
				r.Comparisons = append(r.Comparisons, c)
			}
		}
	}
}

// tail is the highest percentile of times to the first token that both cells have; empty where there is none above the
// median.
func tail(a, b *Cell) string {
	for _, share := range slices.Backward(figure.Quantiles()[1:]) {
		if name := figure.Percentile(figure.OfTTFT, share); a.Figure(name).Known() && b.Figure(name).Known() {
			return name
		}
	}
	return ""
}
