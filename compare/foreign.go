package compare

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// heapValue is the record's name for it.
const heapValue = "heap_used_bytes"

// noPhases is why nothing is known but a peak.
const noPhases = "rows that another program wrote tell no phases"

// written is how figures came about that another program wrote down.
const written = "as another program wrote it down, however it read it; a peak between two of its rows is not seen"

// foreign tells that another program wrote the cell's figures down.
func (c *Cell) foreign() bool { return c.Spec.Model.Format == record.Foreign }

// comparedOf lists the figures that ratios of two cells are given for: of rows that another program wrote, what they
// have.
func comparedOf(a, b *Cell) []string {
	if a.foreign() || b.foreign() {
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
			if !a.foreign() && !b.foreign() {
				continue
			}
			c := Comparison{A: i, B: j, Caveats: []string{}, Ratios: []Ratio{}}
			for _, x := range []*Cell{a, b} {
				if x.foreign() {
					c.Different = append(c.Different, "which model, prompt and device "+x.Label+" is about is not told")
				}
			}
			c.fill(a, b, launchOf(e[i].counted), launchOf(e[j].counted))
			if len(c.Ratios) > 0 {
				r.Comparisons = append(r.Comparisons, c)
			}
		}
	}
}

// foreigners lists the cells that another program wrote down.
func (r *Result) foreigners() []string {
	var out []string
	for i := range r.Cells {
		if r.Cells[i].foreign() {
			out = append(out, r.Cells[i].Label)
		}
	}
	return out
}

// foreign tells that another program wrote the figures down.
func foreign(attempts []*record.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a *record.Attempt) bool {
		return slices.ContainsFunc(a.Totals, func(t record.TotalRow) bool { return t.Method == record.MethodForeign })
	})
}

// heapFigure is the highest heap that another program wrote down; nothing where it wrote none.
func heapFigure(attempts []*record.Attempt) []evidence.Figure {
	f := evidence.New(figure.PeakHeap)
	f.Method = record.MethodForeign
	f.How += ", " + written + "; it is no process's memory"
	for _, a := range attempts {
		peak := -1.0
		for _, m := range a.Metrics {
			if m.Name == heapValue && a.Sources[m.Source].Method == record.MethodForeign {
				peak = max(peak, m.Value/record.MiB)
			}
		}
		if peak >= 0 {
			f.Add(a.ID, peak)
		}
	}
	if len(f.Values) == 0 {
		return nil
	}
	return []evidence.Figure{f}
}
