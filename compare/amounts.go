package compare

import (
	"llmparity/compare/evidence"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// Amounts compares memory of two cells whose devices alone forbid a ratio, where all of it is the machine's own: then
// amounts may be compared. False for others.
func (r *Result) Amounts(c *Comparison, x, y evidence.Figure) (ratio.Ratio, bool) {
	a, b := r.Cells[c.A], r.Cells[c.B]
	if !inRAM(a) || !inRAM(b) || devicesDiffer(a, b, Refuses) == nil || x.Name != y.Name ||
		a.memory.ProgramWords() != "" || b.memory.ProgramWords() != "" {
		return ratio.Ratio{}, false
	}
	out := ratio.New(x, y, stats.NewSides(x.PerLaunch(a.counted), y.PerLaunch(b.counted)))
	out.Test.Weight = 1
	ratio.Judge([]*ratio.Judgement{&out.Judgement})
	out.Agree()
	return out, true
}

// inRAM tells whether all of a cell's memory is the machine's own: a GPU's is not in its figures.
func inRAM(c *Cell) bool {
	return c.Device != nil && (c.Device.Class == record.CPU || c.Device.Class == record.SoftwareAdapter)
}

// LeastMore returns by how many MiB a uses at least more than b, where other programs share their memory. Below 0: b
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
