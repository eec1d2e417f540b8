package memory

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// retained is a launch's memory after the unload minus that before the load, in MiB.
type retained struct {
	total float64            // NaN if either was not read
	roles map[string]float64 // by role
}

// retainedBy uses PSS, because USS misses the memory for uploads, which two processes of a browser share. A process
// that started in between counts in full.
func retainedBy(a *record.Attempt) retained {
	before, after := pssAtEnd(a.Launch(), record.Baseline), pssAtEnd(a, record.Unload)
	r := retained{total: math.NaN(), roles: map[string]float64{}}
	if len(before) == 0 || len(after) == 0 {
		return r
	}
	r.total = 0
	for p, pss := range after {
		more := pss - before[p] // 0 before its start
		r.roles[p.role] += more
		r.total += more
	}
	return r
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

// retainedFigure has the retained memory of each launch; How has the processes' shares and the trend.
func retainedFigure(attempts []*record.Attempt) evidence.Figure {
	f := evidence.New(figure.Retained)
	f.Method = record.MethodSmapsRollup
	roles := map[string][]float64{}
	for _, a := range attempts {
		r := retainedBy(a)
		f.Add(a.ID, r.total)
		for role, v := range r.roles {
			roles[role] = append(roles[role], v)
		}
	}
	if len(f.Values) == 0 {
		return f
	}
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		parts = append(parts, fmt.Sprintf("%s %.1f", role, stats.Median(roles[role])))
	}
	f.How += ". By process (medians, MiB): " + strings.Join(parts, ", ")
	if s := stats.Slope(f.Numbers()); !math.IsNaN(s) {
		f.How += fmt.Sprintf(". Change from launch to launch, over %d launches: %+.2f MiB",
			len(f.Values), s)
	}
	return f
}
