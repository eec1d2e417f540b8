package compare

import (
	"cmp"
	"path/filepath"
	"strings"

	"llmparity/compare/explain"
	"llmparity/compare/label"
	"llmparity/compare/ratio"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Interleaved reports whether launches of the runs alternated with those of the first run.
func (r *Result) Interleaved() bool {
	for _, run := range r.Runs[min(1, len(r.Runs)):] {
		if run.Against == "" || run.Against != filepath.Base(r.Runs[0].Dir) {
			return false
		}
	}
	return len(r.Runs) > 1
}

// nameSides names interleaved runs by what differs between them.
func (r *Result) nameSides(runs []*record.Run) {
	if !r.Interleaved() {
		return
	}
	for i, name := range label.Sides(r.subjects(), runs) {
		r.Runs[i].Side = name
	}
}

// Title is what distinguishes a run, or else its plan's name.
func (r *Run) Title() string { return cmp.Or(r.Side, r.Name) }

// labelSides labels the cells of an interleaved run by their side, if each side has one cell.
func (r *Result) labelSides() {
	if !r.Interleaved() || len(r.Cells) != len(r.Runs) {
		return
	}
	for i, c := range r.Cells {
		if c.Run != i || r.Runs[i].Side == "" {
			return
		}
	}
	for i, c := range r.Cells {
		c.Label = r.Runs[i].Side
	}
}

// BuildSum has the beginnings of the hashes of the builds that a run ran; empty: they are not known.
func (r *Result) BuildSum(run int) string {
	var all []string
	for _, c := range r.Cells {
		if sum := label.Sum(&c.Setup); c.Run == run && sum != "" {
			all = explain.AppendNew(all, sum)
		}
	}
	return strings.Join(all, ", ")
}

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
