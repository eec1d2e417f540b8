package memory

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/hardware"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// gpuMethod is that of the GPU memory of an engine's processes, as drivers report it.
const gpuMethod = "gpu_memory_of_processes"

// VRAM has the figures of the GPU memory of an engine's processes, if a driver listed any: the three points of the
// totals of PSS, and the increase. Without a process on a GPU before the load, the increase is the whole peak.
func VRAM(counted []*record.Attempt) []evidence.Figure {
	var all []points
	var ids []int
	any := false
	for _, l := range evidence.Launches(counted) {
		p := vramOf(l)
		any = any || p.peak > 0
		all, ids = append(all, p), append(ids, l.ID)
	}
	if !any {
		return nil
	}
	var out []evidence.Figure
	for _, r := range []struct {
		name string
		of   func(points) float64
	}{
		{figure.PeakVRAM, func(p points) float64 { return p.peak }},
		{figure.VRAMIncrease, func(p points) float64 { return p.peak - p.baseline }},
		{figure.BaselineVRAM, func(p points) float64 { return p.baseline }},
		{figure.PostWarmupVRAM, func(p points) float64 { return p.warm }},
	} {
		f := evidence.New(r.name)
		f.Method = gpuMethod
		for i, p := range all {
			f.Add(ids[i], r.of(p))
		}
		out = append(out, f)
	}
	return out
}

// vramOf is the GPU memory of an engine's processes in a launch, in MiB; the peak is NaN if no driver listed them, the
// baseline 0. It sums processes at each time, each with its latest fresh reading. If two drivers report a process, the
// higher value counts.
func vramOf(l evidence.Launch) points {
	p := points{baseline: 0, warm: math.NaN(), peak: math.NaN()}
	if base := gpuSums(l.Opener, record.Baseline); len(base) > 0 {
		p.baseline = base[len(base)-1]
	}
	if warm := gpuSums(l.Opener, record.Warmup); len(warm) > 0 {
		p.warm = warm[len(warm)-1]
	}
	members := l.Attempts
	if !slices.Contains(members, l.Opener) && l.Opener.Status == record.OK {
		members = append([]*record.Attempt{l.Opener}, members...)
	}
	for _, a := range members {
		for _, sum := range gpuSums(a, "") {
			p.peak = evidence.MaxKnown(p.peak, sum)
		}
	}
	return p
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
