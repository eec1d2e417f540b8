package memory

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/hardware"
	"llmparity/internal/record"
)

// gpuMethod is that of the GPU memory of an engine's processes, as drivers report it.
const gpuMethod = "gpu_memory_of_processes"

// vram is the GPU memory of an engine's processes in a launch, in MiB; NaN if no driver listed them.
type vram struct{ baseline, peak float64 }

// vramOf sums processes at each time, each with its latest fresh reading. If two drivers report a process, the higher
// value counts.
func vramOf(l evidence.Launch) vram {
	v := vram{math.NaN(), math.NaN()}
	if base := gpuSums(l.Opener, record.Baseline); len(base) > 0 {
		v.baseline = base[len(base)-1]
	}
	members := l.Attempts
	if !slices.Contains(members, l.Opener) && l.Opener.Status == record.OK {
		members = append([]*record.Attempt{l.Opener}, members...)
	}
	for _, a := range members {
		for _, sum := range gpuSums(a, "") {
			v.peak = evidence.MaxKnown(v.peak, sum)
		}
	}
	return v
}

// gpuSums are the sums over an attempt's processes in order of time; of one phase, or of all if it is empty.
func gpuSums(a *record.Attempt, phase record.Phase) []float64 {
	begin, end := int64(math.MinInt64), int64(math.MaxInt64)
	if phase != "" {
		var ok bool
		if begin, end, ok = evidence.Reach(a, phase); !ok {
			return nil
		}
	}
	var rows []record.MetricRow
	for _, m := range a.Metrics {
		if m.Name == hardware.HeldBytes && a.Sources[m.Source].PID != 0 && m.NS < end {
			rows = append(rows, m)
		}
	}
	slices.SortStableFunc(rows, func(x, y record.MetricRow) int { return cmp.Compare(x.NS, y.NS) })
	var out []float64
	latest := map[int]record.MetricRow{} // by source
	for i, m := range rows {
		latest[m.Source] = m
		if m.NS < begin || i+1 < len(rows) && rows[i+1].NS-m.NS < int64(time.Millisecond) {
			continue // readings at one time are summed once
		}
		out = append(out, gpuSum(a, latest, m.NS))
	}
	return out
}

// gpuStale is how many intervals old a reading may be: a process that ended has no new one.
const gpuStale = 4

func gpuSum(a *record.Attempt, latest map[int]record.MetricRow, now int64) float64 {
	highest := map[process]float64{}
	for id, m := range latest {
		s := a.Sources[id]
		if every := max(s.Every, 250*time.Millisecond); now-m.NS <= gpuStale*int64(every) {
			of := process{pid: s.PID, start: s.Start}
			highest[of] = max(highest[of], m.Value)
		}
	}
	sum := 0.0
	for _, v := range highest {
		sum += v // whole bytes: the order does not matter
	}
	return sum / record.MiB
}
