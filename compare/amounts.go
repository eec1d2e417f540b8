package compare

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// compareAmounts compares the memory of two cells of which only amounts may be compared, and adds the tests to their
// family.
func (r *Result) compareAmounts(c *Comparison) {
	a, b := r.Cells[c.A], r.Cells[c.B]
	if !inRAM(a) || !inRAM(b) || devicesDiffer(a, b, Refuses) == nil || a.footprint.ProgramWords() != "" ||
		b.footprint.ProgramWords() != "" {
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

// Points are its memory at three points.
func (c *Cell) Points() memory.Points { return memory.PointsOf(c.Figure) }

// inRAM reports whether all of a cell's memory is the machine's own: a GPU's is not in its figures.
func inRAM(c *Cell) bool {
	return c.Device != nil && (c.Device.Class == record.CPU || c.Device.Class == record.SoftwareAdapter)
}

// leastMore returns by how many MiB a uses at least more than b, if other programs share their memory. Below 0: b
// uses more; 0: unknown.
func leastMore(a, b *Cell) float64 {
	if !inRAM(a) || !inRAM(b) {
		return 0
	}
	least, most := a.footprint.Bounds()
	otherLeast, otherMost := b.footprint.Bounds()
	switch {
	case least > otherMost:
		return least - otherMost
	case otherLeast > most:
		return most - otherLeast
	}
	return 0
}
