package memory

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// NoBaseline is why an engine without a process before the load has no baseline.
const NoBaseline = "none: no process before the load"

const noPSS = "PSS could not be read"

// footprint is one launch's memory, in MiB; NaN if not read.
type footprint struct {
	attempt                                         int // that opened the launch
	peakPSS, peakUSS, peakRSS, baseline, postWarmup float64
	baselineRSS, postWarmupRSS                      float64
	// of the peak: the part that was carried forward, and the distance of its bounds
	carried, below, above float64
	unborn                bool // no process was read before the load
}

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
		if f.peakPSS > o.peakPSS {
			o.carried, o.below, o.above = f.carried, f.below, f.above
		}
		o.peakPSS = evidence.MaxKnown(o.peakPSS, f.peakPSS)
		o.peakUSS = evidence.MaxKnown(o.peakUSS, f.peakUSS)
		o.peakRSS = evidence.MaxKnown(o.peakRSS, f.peakRSS)
	}
	return out
}

// footprintOf has the peaks of an attempt, with the baseline and warm-up of its launch.
func footprintOf(a *record.Attempt) footprint {
	nan := math.NaN()
	launch := a.Launch()
	f := footprint{attempt: launch.ID, peakPSS: nan, peakUSS: nan, peakRSS: nan, postWarmup: nan, postWarmupRSS: nan,
		unborn: unborn(launch)}
	rss := RSSMethod(a)
	for _, t := range a.Totals {
		if t.Method == rss {
			f.peakRSS = evidence.MaxKnown(f.peakRSS, t.RSS)
		}
		if math.IsNaN(f.peakPSS) || t.PSS > f.peakPSS {
			f.carried, f.below, f.above = 0, 0, 0
			if !math.IsNaN(t.Read) {
				f.carried, f.below, f.above = t.PSS-t.Read, t.PSS-t.Low, t.High-t.PSS
			}
		}
		f.peakPSS, f.peakUSS = evidence.MaxKnown(f.peakPSS, t.PSS), evidence.MaxKnown(f.peakUSS, t.USS)
	}
	f.baseline, f.baselineRSS = stats.Median(totalPSS(launch, record.Baseline)), medianRSS(launch, record.Baseline)
	for t := range readings(launch, record.Warmup) {
		if t.Method == rss && !math.IsNaN(t.RSS) {
			f.postWarmupRSS = t.RSS
		}
	}
	if warm := totalPSS(launch, record.Warmup); len(warm) > 0 {
		f.postWarmup = warm[len(warm)-1]
	}
	return f
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

// totalPSS lists the readings of a phase in order of time.
func totalPSS(a *record.Attempt, p record.Phase) []float64 {
	var out []float64
	for t := range readings(a, p) {
		if t.Method == record.MethodSmapsRollup && !math.IsNaN(t.PSS) {
			out = append(out, t.PSS)
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

func (f footprint) increase() float64 {
	if f.unborn {
		return f.peakPSS
	}
	return f.peakPSS - f.baseline
}

func (f footprint) increaseRSS() float64 {
	if f.unborn {
		return f.peakRSS
	}
	return f.peakRSS - f.baselineRSS
}

// figures are in the order of reports.
func figures(attempts []*record.Attempt) []evidence.Figure {
	how := memoryHow(attempts)
	peak, inc, base := evidence.New(figure.PeakPSS), evidence.New(figure.Increase), evidence.New(figure.Baseline)
	warm, uss, rss := evidence.New(figure.PostWarmup), evidence.New(figure.PeakUSS), evidence.New(figure.PeakRSS)
	peak.How += ". " + how.pss + how.blind
	uss.How += ". " + how.pss + ". Shared memory, such as staging buffers, is not included"
	rss.How += ". " + how.rss + ". A page that n processes share counts n times"
	all := footprints(attempts)
	peak.How += carriedHow(all)
	unborn := 0
	for _, f := range all {
		peak.Add(f.attempt, f.peakPSS)
		inc.Add(f.attempt, f.increase())
		base.Add(f.attempt, f.baseline)
		warm.Add(f.attempt, f.postWarmup)
		uss.Add(f.attempt, f.peakUSS)
		rss.Add(f.attempt, f.peakRSS)
		if f.unborn && !math.IsNaN(f.peakPSS) {
			unborn++
		}
	}
	if unborn > 0 {
		inc.How += ". If no process ran before the load, the whole peak"
		if len(base.Values) == 0 {
			base.Absent = NoBaseline
		}
	}
	out := []evidence.Figure{peak, inc, base, warm, uss, rss, retainedFigure(attempts)}
	if evidence.Rejoined(attempts) {
		for i := range out {
			out[i].How += reusedHow
		}
	}
	out = append(out, heapFigure(attempts)...)
	if len(peak.Values) == 0 && len(rss.Values) > 0 {
		return append(out, rssFigures(attempts, how.rss)...)
	}
	return out
}

// carriedHow says how much of the peaks was carried forward, with bounds; empty if all was read.
func carriedHow(of []footprint) string {
	var carried, below, above []float64
	for _, f := range of {
		if !math.IsNaN(f.peakPSS) {
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

const reusedHow = ". One value per launch, over all of its repetitions"

// rssFigures replace those of PSS if it cannot be read: for processes of another user, and outside Linux.
func rssFigures(attempts []*record.Attempt, how string) []evidence.Figure {
	const twice = ". A page that n processes share counts n times"
	base, warm := evidence.New(figure.BaselineRSS), evidence.New(figure.PostWarmupRSS)
	inc := evidence.New(figure.IncreaseRSS)
	base.How += ". " + how + twice
	warm.How += ". " + how + twice
	born := false
	for _, f := range footprints(attempts) {
		base.Add(f.attempt, f.baselineRSS)
		warm.Add(f.attempt, f.postWarmupRSS)
		inc.Add(f.attempt, f.increaseRSS())
		born = born || !f.unborn
	}
	if !born {
		base.Absent = NoBaseline
	}
	return []evidence.Figure{base, warm, inc}
}

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
	gpu := false
	for _, a := range attempts {
		d, ok := a.Device()
		gpu = gpu || ok && d.Class == record.GPU
	}
	h := how{
		pss: reading(attempts, record.MethodSmapsRollup) + untilRead(attempts),
		rss: reading(attempts, record.MethodStatm),
	}
	if foreign(attempts) {
		h.rss = written
	}
	h.blind = ". Not included: swapped pages, kernel memory"
	if gpu {
		h.blind += ", GPU memory"
	}
	return h
}

// untilRead says what is known about PSS between two readings.
func untilRead(attempts []*record.Attempt) string {
	for _, a := range attempts {
		for _, t := range a.Totals {
			if !math.IsNaN(t.Read) {
				return ". Between readings, the growth of private pages (from statm) and the kernel's own peak counters are added"
			}
		}
	}
	return ". Peaks between readings are missed"
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
		return "Read from " + method
	}
	names := make([]string, 0, len(roles))
	for r := range roles {
		names = append(names, r)
	}
	slices.Sort(names)
	return fmt.Sprintf("Read from %s at least every %s and at the end of each phase, for these processes: %s", method, every,
		strings.Join(names, ", "))
}
