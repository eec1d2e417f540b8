package memory

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// heapValue is the record's name for it.
const heapValue = "heap_used_bytes"

// noPhases is why only a peak is known.
const noPhases = "imported rows have no phases"

// written is how imported figures were obtained.
const written = "imported from another program; misses peaks between its rows"

// foreign tells whether figures were imported.
func foreign(attempts []*record.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a *record.Attempt) bool {
		return slices.ContainsFunc(a.Totals, func(t record.TotalRow) bool { return t.Method == record.MethodForeign })
	})
}

// heapFigure is the highest imported heap, if any.
func heapFigure(attempts []*record.Attempt) []evidence.Figure {
	f := evidence.New(figure.PeakHeap)
	f.Method = record.MethodForeign
	f.How += ". " + written + ". It is not the memory of a process"
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
