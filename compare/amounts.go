package compare

import (
	"cmp"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Verdict is the conclusion about a figure that both cells of a comparison have: x of A and y of B. a and b name the
// sides. Without a ratio, amounts of memory decide if only the devices forbid one.
func (r *Result) Verdict(c *Comparison, x, y evidence.Figure, a, b string) verdict.Verdict {
	at := func(of []ratio.Ratio) int {
		return slices.IndexFunc(of, func(o ratio.Ratio) bool { return o.Figure == x.Name && o.Figure == y.Name })
	}
	if at := at(c.Ratios); at >= 0 {
		return verdict.Of(&c.Ratios[at], a, b, r.Statistics.MinEffect)
	}
	if at := at(c.amounts); at >= 0 {
		return verdict.OfAmounts(&c.amounts[at], a, b, r.Statistics.MinEffect)
	}
	p, q := r.Cells[c.A], r.Cells[c.B]
	v := verdict.Forbidden(x, y, a, b, cmp.Or(Unlike(x.Name, p, q), c.forbids))
	if x.Name != p.Points().Peak.Name {
		return v
	}
	v.Forbids = cmp.Or(v.Forbids, verdict.ReasonOf(explain.NoPSS))
	if shared := cmp.Or(p.footprint.ProgramWords(), q.footprint.ProgramWords()); shared != "" {
		v.Forbids = verdict.Reason{Code: explain.MemoryShared.Code, Text: shared, Sentence: explain.Capital(shared)}
		if more := leastMore(p, q); more != 0 {
			v.AtLeast, v.Larger = math.Abs(more), 0
			if more < 0 {
				v.Larger = 1
			}
		}
	}
	return v
}

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
