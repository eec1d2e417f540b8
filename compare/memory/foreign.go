package memory

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
