package memory

import (
	"math"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// retainedBy is a launch's memory after the unload minus that before the load, in MiB; NaN if either was not read. It
// uses PSS, because USS misses the memory for uploads, which two processes of a browser share. A process that started
// in between counts in full.
func retainedBy(a *record.Attempt) float64 {
	before, after := pssAtEnd(a.Launch(), record.Baseline), pssAtEnd(a, record.Unload)
	if len(before) == 0 || len(after) == 0 {
		return math.NaN()
	}
	total := 0.0
	for p, pss := range after {
		total += pss - before[p] // 0 before its start
	}
	return total
}

// process identifies a process across attempts.
type process struct {
	role  string
	pid   int
	start uint64
}

// pssAtEnd is the last reading of each process's PSS in a phase, including the one at its end.
func pssAtEnd(a *record.Attempt, p record.Phase) map[process]float64 {
	begin, end, ok := evidence.Reach(a, p)
	if !ok {
		return nil
	}
	out := map[process]float64{}
	for _, s := range a.Samples {
		if s.NS >= begin && s.NS < end && !math.IsNaN(s.PSS) {
			of := a.Sources[s.Source]
			out[process{of.Role, of.PID, of.Start}] = s.PSS
		}
	}
	return out
}

// retainedFigure has the retained memory of each launch.
func retainedFigure(attempts []*record.Attempt) evidence.Figure {
	f := evidence.New(figure.Retained)
	f.Method = record.MethodSmapsRollup
	for _, a := range attempts {
		f.Add(a.ID, retainedBy(a))
	}
	return f
}
