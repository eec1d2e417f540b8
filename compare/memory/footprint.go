package memory

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// NoBaseline is why an engine without a process before the load has no baseline.
const NoBaseline = "not available, because the engine had no process before the load of the model"

const noPSS = "PSS could not be read"

// footprint is one launch's memory, in MiB; NaN if not read.
type footprint struct {
	attempt int // that opened the launch
	pss     points
	rss     points
	peakUSS float64
	// of the peak: the part that was carried forward, and the distance of its bounds
	carried, below, above float64
	unborn                bool // no process was read before the load
}

// points are a launch's memory at the baseline, after the warm-up and at the peak.
type points struct{ baseline, warm, peak float64 }

// footprints has one a launch, in the order in which they were opened. Repetitions in the same launch are merged,
// because only the first has the load and the warm-up.
func footprints(counted []*record.Attempt) []footprint {
	var out []footprint
	for _, a := range counted {
		f := footprintOf(a)
		at := slices.IndexFunc(out, func(o footprint) bool { return o.attempt == f.attempt })
		if at < 0 {
			out = append(out, f)
			continue
		}
		o := &out[at]
		if f.pss.peak > o.pss.peak {
			o.carried, o.below, o.above = f.carried, f.below, f.above
		}
		o.pss.peak = evidence.MaxKnown(o.pss.peak, f.pss.peak)
		o.rss.peak = evidence.MaxKnown(o.rss.peak, f.rss.peak)
		o.peakUSS = evidence.MaxKnown(o.peakUSS, f.peakUSS)
	}
	return out
}

// footprintOf has the peaks of an attempt, with the baseline and warm-up of its launch.
func footprintOf(a *record.Attempt) footprint {
	launch, rss := a.Launch(), RSSMethod(a)
	f := footprint{attempt: launch.ID, unborn: unborn(launch), peakUSS: math.NaN(),
		pss: before(launch, record.MethodSmapsRollup, pssOf), rss: before(launch, RSSMethod(launch), rssOf)}
	for _, t := range a.Totals {
		if t.Method == rss {
			f.rss.peak = evidence.MaxKnown(f.rss.peak, t.RSS)
		}
		if math.IsNaN(f.pss.peak) || t.PSS > f.pss.peak {
			f.carried, f.below, f.above = 0, 0, 0
			if !math.IsNaN(t.Read) {
				f.carried, f.below, f.above = t.PSS-t.Read, t.PSS-t.Low, t.High-t.PSS
			}
		}
		f.pss.peak, f.peakUSS = evidence.MaxKnown(f.pss.peak, t.PSS), evidence.MaxKnown(f.peakUSS, t.USS)
	}
	return f
}

// before has the points before the peak, by the readings of their phases.
func before(launch *record.Attempt, method string, pick func(*record.TotalRow) float64) points {
	p := points{stats.Median(values(launch, record.Baseline, method, pick)), math.NaN(), math.NaN()}
	if warmup := values(launch, record.Warmup, method, pick); len(warmup) > 0 {
		p.warm = warmup[len(warmup)-1]
	}
	return p
}

func unborn(launch *record.Attempt) bool {
	load, loaded := launch.Phase(record.Load)
	return !slices.ContainsFunc(launch.Totals, func(t record.TotalRow) bool { return !loaded || t.NS < load.BeginNS })
}

// readings are the totals from the beginning of a phase to the beginning of the next, so that they include the reading
// at its end, which is taken just after the phase.
func readings(a *record.Attempt, p record.Phase) iter.Seq[*record.TotalRow] {
	begin, end, ok := evidence.Reach(a, p)
	return func(yield func(*record.TotalRow) bool) {
		for i := range a.Totals {
			if t := &a.Totals[i]; ok && t.NS >= begin && t.NS < end && !yield(t) {
				return
			}
		}
	}
}

func pssOf(t *record.TotalRow) float64 { return t.PSS }
func rssOf(t *record.TotalRow) float64 { return t.RSS }

// values lists what a method read in a phase, in order of time.
func values(a *record.Attempt, p record.Phase, method string, pick func(*record.TotalRow) float64) []float64 {
	var out []float64
	for t := range readings(a, p) {
		if v := pick(t); t.Method == method && !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// PhasePeaks gives the highest total PSS and the highest sum of RSS in a phase; NaN if nothing was read.
func PhasePeaks(a *record.Attempt, p record.Phase) (pss, rss float64) {
	pss, rss = math.NaN(), math.NaN()
	method := RSSMethod(a)
	for t := range readings(a, p) {
		pss = evidence.MaxKnown(pss, t.PSS)
		if t.Method == method {
			rss = evidence.MaxKnown(rss, t.RSS)
		}
	}
	return pss, rss
}

// RSSMethod is the method that reads RSS most often.
func RSSMethod(a *record.Attempt) string {
	for _, t := range a.Totals {
		if t.Method == record.MethodStatm || t.Method == record.MethodForeign {
			return t.Method
		}
	}
	return record.MethodSmapsRollup
}

func (f footprint) increase(p points) float64 {
	if f.unborn {
		return p.peak
	}
	return p.peak - p.baseline
}

// row is a figure that a footprint has.
type row struct {
	name, how string
	of        func(footprint) float64
}

// rowsOf has the figures of footprints; rss is the method that read RSS.
func rowsOf(all []footprint, rss string, rows ...row) []evidence.Figure {
	var out []evidence.Figure
	for _, r := range rows {
		f := evidence.New(r.name)
		f.How += r.how
		if f.Method = record.MethodSmapsRollup; strings.HasSuffix(f.Name, "_rss_sum") {
			f.Method = rss
		}
		for _, launch := range all {
			f.Add(launch.attempt, r.of(launch))
		}
		out = append(out, f)
	}
	return out
}

// Figures are a cell's totals, one value a launch, in the order of reports.
func Figures(attempts []*record.Attempt) []evidence.Figure {
	all, how, method := footprints(attempts), memoryHow(attempts), record.MethodStatm
	if len(attempts) > 0 {
		method = RSSMethod(attempts[0])
	}
	how.rss = ". " + how.rss + ". A page that n processes share counts n times"
	unborn := slices.ContainsFunc(all, func(f footprint) bool { return f.unborn && !math.IsNaN(f.pss.peak) })
	wholePeak := ""
	if unborn {
		wholePeak = ". If no process ran before the load, the increase is the whole peak"
	}
	out := rowsOf(all, method,
		row{figure.PeakPSS, ". " + how.pss + how.blind + carriedHow(all),
			func(f footprint) float64 { return f.pss.peak }},
		row{figure.Increase, wholePeak, func(f footprint) float64 { return f.increase(f.pss) }},
		row{figure.Baseline, "", func(f footprint) float64 { return f.pss.baseline }},
		row{figure.PostWarmup, "", func(f footprint) float64 { return f.pss.warm }},
		row{figure.PeakUSS, ". " + how.pss + ". Shared memory, such as staging buffers, is not included",
			func(f footprint) float64 { return f.peakUSS }},
		row{figure.PeakRSS, how.rss, func(f footprint) float64 { return f.rss.peak }})
	peak, base, rss := named(out, figure.PeakPSS), named(out, figure.Baseline), named(out, figure.PeakRSS)
	if unborn && len(base.Values) == 0 {
		base.Absent, base.Lacks = NoBaseline, evidence.NoProcess
	}
	retained := evidence.New(figure.Retained)
	retained.Method = record.MethodSmapsRollup
	out = append(out, retained.Over(attempts, retainedBy))
	if evidence.Rejoined(attempts) {
		for i := range out {
			out[i].How += reusedHow
		}
	}
	out = append(out, imported(attempts, figure.PeakHeap, "The heap is not the memory of a process", heapValue)...)
	out = append(out, imported(attempts, figure.PeakWebGPU, "WebGPU was asked for so much; what the driver adds is not known",
		"webgpu_bytes", "webgpu_peak_bytes")...)
	if len(peak.Values) > 0 || len(rss.Values) == 0 {
		return out
	}
	// PSS can't be read of processes of another user, nor outside Linux.
	instead := rowsOf(all, method,
		row{figure.BaselineRSS, how.rss, func(f footprint) float64 { return f.rss.baseline }},
		row{figure.PostWarmupRSS, how.rss, func(f footprint) float64 { return f.rss.warm }},
		row{figure.IncreaseRSS, "", func(f footprint) float64 { return f.increase(f.rss) }})
	if !slices.ContainsFunc(all, func(f footprint) bool { return !f.unborn }) {
		rss := named(instead, figure.BaselineRSS)
		rss.Absent, rss.Lacks = NoBaseline, evidence.NoProcess
	}
	return append(out, instead...)
}

// named returns one of the figures, to change it.
func named(all []evidence.Figure, name string) *evidence.Figure {
	return &all[slices.IndexFunc(all, func(f evidence.Figure) bool { return f.Name == name })]
}

// carriedHow says how much of the peaks was carried forward, with bounds; empty if all was read.
func carriedHow(of []footprint) string {
	var carried, below, above []float64
	for _, f := range of {
		if !math.IsNaN(f.pss.peak) {
			carried, below, above = append(carried, f.carried), append(below, f.below), append(above, f.above)
		}
	}
	if len(carried) == 0 || slices.Max(above) == 0 && slices.Min(carried) == 0 && slices.Max(carried) == 0 {
		return ""
	}
	return fmt.Sprintf(". In the median launch, %s MiB of the peak are growth since the last PSS reading (too high by at most %s MiB, too low by at most %s)",
		explain.Short(stats.Median(carried)),
		explain.Short(stats.Median(below)), explain.Short(stats.Median(above)))
}

const reusedHow = ". Each launch has one value, over all repetitions in the launch"

// Points are a cell's memory at three points and its increase; Of says what was summed.
type Points struct {
	Of                             string
	Baseline, Warm, Peak, Increase evidence.Figure
}

// PointsOf uses PSS, else RSS, else the page's heap. get finds a cell's figure.
func PointsOf(get func(name string) evidence.Figure) Points {
	pss, rss, heap := get(figure.PeakPSS), get(figure.PeakRSS), get(figure.PeakHeap)
	switch {
	case pss.Known() || !rss.Known() && !heap.Known():
		return Points{"total PSS", get(figure.Baseline), get(figure.PostWarmup), pss, get(figure.Increase)}
	case rss.Known():
		return Points{"RSS sum", get(figure.BaselineRSS), get(figure.PostWarmupRSS), rss, get(figure.IncreaseRSS)}
	}
	none := func(title string) evidence.Figure { return evidence.Figure{Title: title, Absent: noPhases} }
	return Points{"JavaScript heap", none("baseline"), none("after warm-up"), heap, none("increase")}
}

type how struct{ pss, rss, blind string }

// memoryHow says how often memory was read, and of which processes.
func memoryHow(attempts []*record.Attempt) how {
	h := how{pss: reading(attempts, record.MethodSmapsRollup) + ". Peaks between two readings are missed",
		rss: reading(attempts, record.MethodStatm), blind: ". Not included: swapped pages, kernel memory"}
	for _, a := range attempts {
		if slices.ContainsFunc(a.Totals, func(t record.TotalRow) bool { return !math.IsNaN(t.Read) }) {
			h.pss = reading(attempts, record.MethodSmapsRollup) +
				". Peaks between two readings are estimated from the growth of private pages (statm) and from the kernel's " +
				"counters of peak RSS"
		}
	}
	if slices.ContainsFunc(attempts, func(a *record.Attempt) bool {
		d, ok := a.Device()
		return ok && d.Class == record.GPU
	}) {
		h.blind += ", GPU memory"
	}
	if foreign(attempts) {
		h.rss = written
	}
	return h
}

func reading(attempts []*record.Attempt, method string) string {
	var every time.Duration
	roles := map[string]bool{}
	for _, a := range attempts {
		for _, s := range a.Sources {
			if s.Method == method {
				every = max(every, s.Every)
				roles[s.Role] = true
			}
		}
	}
	if len(roles) == 0 {
		return "Memory is read from " + method
	}
	return fmt.Sprintf("Memory is read from %s at least every %s and at the end of each phase, for these processes: %s", method,
		every, strings.Join(slices.Sorted(maps.Keys(roles)), ", "))
}

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

// heapValue is the record's name for it.
const heapValue = "heap_used_bytes"

// noPhases is why only a peak is known.
const noPhases = "imported rows have no phases"

// written is how imported figures were obtained.
const written = "imported from another program; peaks between two rows are missed"

// foreign reports whether figures were imported.
func foreign(attempts []*record.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a *record.Attempt) bool {
		return slices.ContainsFunc(a.Totals, func(t record.TotalRow) bool { return t.Method == record.MethodForeign })
	})
}

// imported is the highest of some imported values, if there are any. what says what the figure is not.
func imported(attempts []*record.Attempt, name, what string, values ...string) []evidence.Figure {
	f := evidence.New(name)
	f.Method = record.MethodForeign
	f.How += ". " + written + ". " + what
	for _, a := range attempts {
		peak := math.NaN()
		for _, m := range a.Metrics {
			if slices.Contains(values, m.Name) && a.Sources[m.Source].Method == record.MethodForeign {
				peak = evidence.MaxKnown(peak, evidence.Mebi(m.Value))
			}
		}
		f.Add(a.ID, peak)
	}
	if len(f.Values) == 0 {
		return nil
	}
	return []evidence.Figure{f}
}
