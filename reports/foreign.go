package reports

import (
	"fmt"
	"math"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// isForeign tells that another program recorded the cell.
func isForeign(c *compare.Cell) bool { return c.Spec.Model.Format == record.Foreign }

// foreignMemory draws a cell that another program recorded.
func (v *view) foreignMemory(cell, points int) (chart, bool) {
	c := &v.res.Cells[cell]
	out := chart{ID: fmt.Sprintf("memory-%d", cell), Title: line(c.Label), Unit: "MiB", Wide: true, Cell: cell + 1,
		Choice: "Launch",
		Label: "Lines of memory over time for " + line(c.Label) +
			", recorded by another program; a table of the highest readings follows"}
	for _, a := range v.runs[c.Run].Attempts {
		if a.Cell == c.Spec.ID {
			out.Drawings = append(out.Drawings,
				drawing{Name: "rows", Caption: "Recorded by another program; it has no phases.",
					Options: v.foreignTimeline(cell, a, points)})
			out.Table = foreignTable(c, a)
		}
	}
	return out, len(out.Drawings) > 0
}

// foreignTimeline draws the sum of RSS, processes if there are several, and a page's heap.
func (v *view) foreignTimeline(cell int, a *record.Attempt, points int) map[string]any {
	selected := map[string]bool{}
	l := newLine("seconds", 0, selected)
	add := func(name string, data []xy, colour string, width float32, kind string) {
		l.line(name, thinned(data, points), colour, width, kind)
	}
	zero := a.BeginNS
	add("RSS sum", totals(a, record.MethodForeign, zero, func(t record.TotalRow) float64 { return t.RSS }),
		v.colour(cell), 3, "solid")
	add("JavaScript heap", heap(a, zero), v.colour(cell), 2, "dashed")
	if all := processes(a); len(all) > 1 {
		for n, p := range all {
			name := p.name + " RSS"
			selected[name] = len(all) <= partColours
			for _, id := range p.ids {
				add(name, samples(a, id, zero, func(r record.SampleRow) float64 { return r.RSS }),
					fmt.Sprintf("var(--p%d)", n%partColours), 1.4, "dotted")
			}
		}
	}
	return l.options()
}

// heap is a page's, in MiB.
func heap(a *record.Attempt, zero int64) []xy {
	var out []xy
	for _, m := range a.Metrics {
		out = append(out, xy{seconds(m.NS, zero), m.Value / record.MiB})
	}
	return out
}

// foreignTable has the highest readings.
func foreignTable(c *compare.Cell, a *record.Attempt) *grid {
	t := &grid{Head: []string{"from", "length (s)", "processes", "highest RSS sum (MiB)",
		"highest JavaScript heap (MiB)"}}
	row := []string{line(a.Sources[1].Role), fmt.Sprintf("%.3f", seconds(a.EndNS, a.BeginNS)),
		fmt.Sprint(len(a.Sources))}
	if c.Engine != nil {
		row[0] = line(c.Engine.Version)
	}
	for _, name := range []string{figure.PeakRSS, figure.PeakHeap} {
		highest := math.NaN()
		if f := c.Figure(name); f.Known() {
			highest = f.Center()
		}
		row = append(row, orNone(highest))
	}
	t.Rows = append(t.Rows, row)
	return t
}
