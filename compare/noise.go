package compare

import (
	"llmparity/compare/ratio"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Noise is the baseline run measured once more, in turn with both sides. What differs between the two is the machine's.
type Noise struct {
	Dir      string        `json:"dir"`
	Status   record.Status `json:"status"`
	Launches int           `json:"launches"` // counted ones, of all cells
}

// measureNoise adds to each difference from the baseline run that of the baseline run from itself.
func (r *Result) measureNoise(again *record.Run) {
	if again == nil {
		return
	}
	r.Noise = &Noise{Dir: again.Dir, Status: again.Status}
	cells := map[int]*Cell{}
	for _, spec := range again.Cells {
		c := newCell(0, again, spec)
		cells[spec.ID], r.Noise.Launches = c, r.Noise.Launches+c.Launches.Counted
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		base := r.Cells[c.A]
		if same := cells[base.Spec.ID]; base.Run == 0 && r.Cells[c.B].Run > 0 && same != nil {
			for k := range c.Ratios {
				c.Ratios[k].Noise = noiseOf(c.Ratios[k].Figure, base, same)
			}
		}
	}
}

// noiseOf is the change of a figure from a cell to the same cell measured once more; nil: it is not known.
func noiseOf(name string, base, again *Cell) *ratio.Noise {
	a, b := base.Figure(name), again.Figure(name)
	if !a.Known() || !b.Known() {
		return nil
	}
	x := ratio.New(a, b, stats.NewSides(a.PerLaunch(base.counted), b.PerLaunch(again.counted)))
	if x.Percent == nil {
		return nil
	}
	return &ratio.Noise{Again: x.Right, Percent: *x.Percent, Interval: x.PercentInterval, Note: x.IntervalNote}
}
