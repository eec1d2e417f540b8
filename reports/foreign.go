package reports

import (
	"fmt"
	"math"

	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// isForeign tells that another program wrote the cell's figures down.
func isForeign(c *compare.Cell) bool { return c.Spec.Model.Format == record.Foreign }

// foreignMemory draws what another program wrote down of a cell.
func (v *view) foreignMemory(cell, points int) (chart, bool) {
	c := &v.res.Cells[cell]
	out := chart{ID: fmt.Sprintf("memory-%d", cell), Title: line(c.Label), Unit: "MiB", Wide: true, Cell: cell + 1,
		Choice: "Launch",
		Label: "Lines of memory over time for " + line(c.Label) +
			", as another program wrote it down; a table of the highest readings follows"}
	for _, a := range v.runs[c.Run].Attempts {
		if a.Cell == c.Spec.ID {
			out.Drawings = append(out.Drawings,
				drawing{Name: "rows", Caption: "As another program wrote it down: no phases are known.",
					Options: v.foreignTimeline(cell, a, points)})
			out.Table = foreignTable(c, a)
		}
	}
	return out, len(out.Drawings) > 0
}

// foreignTimeline draws the sum of RSS heavy, each process where there are several, and a page's heap.
func (v *view) foreignTimeline(cell int, a *record.Attempt, points int) map[string]any {
	selected := map[string]bool{}
	l := newLine("seconds", 0, selected)
	add := func(name string, data []xy, colour string, width float32, kind string) {
		addSeries(l, name, thinned(data, points), opts.LineStyle{Color: colour, Width: width, Type: kind})
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
	return options(l)
}

// heap is a page's, in MiB, as another program wrote it down.
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
