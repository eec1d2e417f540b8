package compare

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/ratio"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Amounts compares the memory of two cells if only their devices forbid a ratio and all memory is in RAM: then amounts
// may be compared. It returns false for other cells.
func (r *Result) Amounts(c *Comparison, x, y evidence.Figure) (ratio.Ratio, bool) {
	for _, amount := range c.amounts {
		if amount.Figure == x.Name && x.Name == y.Name {
			return amount, true
		}
	}
	return ratio.Ratio{}, false
}

// compareAmounts compares the memory of two cells of which only amounts may be compared, and adds the tests to their
// family.
func (r *Result) compareAmounts(c *Comparison) {
	a, b := r.Cells[c.A], r.Cells[c.B]
	if !inRAM(a) || !inRAM(b) || devicesDiffer(a, b, Refuses) == nil || a.memory.ProgramWords() != "" ||
		b.memory.ProgramWords() != "" {
		return
	}
	p, q := a.Points(), b.Points()
	for i, pair := range [][2]evidence.Figure{{p.Peak, q.Peak}, {p.Increase, q.Increase}} {
		x, y := pair[0], pair[1]
		if x.Name != y.Name || !x.Known() || !y.Known() ||
			slices.ContainsFunc(c.Ratios, func(o ratio.Ratio) bool { return o.Figure == x.Name }) {
			continue
		}
		sides := stats.NewSides(x.PerLaunch(a.counted), y.PerLaunch(b.counted))
		out := ratio.New(x, y, sides)
		out.Headline = i == 0 // the answer has the peak
		out.Test.Weight, out.Test.Same = stats.Weight(out.Headline, out.Test.Least), stats.OrderOf(sides)
		c.amounts = append(c.amounts, out)
	}
}

// inRAM reports whether all of a cell's memory is the machine's own: a GPU's is not in its figures.
func inRAM(c *Cell) bool {
	return c.Device != nil && (c.Device.Class == record.CPU || c.Device.Class == record.SoftwareAdapter)
}

// LeastMore returns by how many MiB a uses at least more than b, if other programs share their memory. Below 0: b
// uses more; 0: unknown.
func LeastMore(a, b *Cell) float64 {
	if !inRAM(a) || !inRAM(b) {
		return 0
	}
	least, most := a.memory.Bounds()
	otherLeast, otherMost := b.memory.Bounds()
	switch {
	case least > otherMost:
		return least - otherMost
	case otherLeast > most:
		return most - otherLeast
	}
	return 0
}
