package hardware

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aclements/go-moremath/vec"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// hardwareLog has an attempt's values of GPUs and energy, by source.
type hardwareLog struct {
	attempt    *record.Attempt
	rows       map[hardwareKey][]record.MetricRow // in order of time
	begin, end int64                              // of the measure phase
	until      int64                              // of the reading at its end
	measured   bool
}

type hardwareKey struct{ role, method, name string }

func newHardwareLog(a *record.Attempt) *hardwareLog {
	l := &hardwareLog{attempt: a, rows: map[hardwareKey][]record.MetricRow{}}
	for _, m := range a.Metrics {
		if !ofHardware(m.Name) {
			continue // most of a long record is what pages tell
		}
		s := a.Sources[m.Source]
		k := hardwareKey{s.Role, s.Method, m.Name}
		l.rows[k] = append(l.rows[k], m)
	}
	for _, rows := range l.rows {
		slices.SortStableFunc(rows, func(a, b record.MetricRow) int { return cmp.Compare(a.NS, b.NS) })
	}
	if p, ok := a.Phase(record.Measure); ok {
		l.begin, l.end, l.measured = p.BeginNS, p.EndNS, true
		_, l.until, _ = evidence.Reach(a, record.Measure)
	}
	return l
}

func ofHardware(name string) bool {
	switch name {
	case usedBytes, freeBytes, busyPercent, watts, celsius, joules, HeldBytes, systemBytes:
		return true
	}
	return strings.HasSuffix(name, heldOfDevice)
}

func (l *hardwareLog) of(s record.Source, name string) []record.MetricRow {
	return l.rows[hardwareKey{s.Role, s.Method, name}]
}

// within are the readings of the measure phase and the one at its end.
func (l *hardwareLog) within(s record.Source, name string) []float64 {
	var out []float64
	for _, m := range l.of(s, name) {
		if l.measured && m.NS >= l.begin && m.NS < l.until {
			out = append(out, m.Value)
		}
	}
	return out
}

// pass has the values that were read in one pass over sources.
type pass struct {
	at     int64 // when it began
	values []float64
}

// passes lists the passes over sources, each of which reads a source once, shortly after the previous one.
func (l *hardwareLog) passes(of []record.Source, name string) []pass {
	var rows []record.MetricRow
	every := int64(time.Second)
	for _, s := range of {
		rows = append(rows, l.of(s, name)...)
		if s.Every > 0 {
			every = min(every, int64(s.Every))
		}
	}
	slices.SortStableFunc(rows, func(a, b record.MetricRow) int { return cmp.Compare(a.NS, b.NS) })
	var out []pass
	seen := map[int]bool{}
	for _, m := range rows {
		if len(out) == 0 || seen[m.Source] || m.NS-out[len(out)-1].at > every/2 {
			out = append(out, pass{at: m.NS})
			clear(seen)
		}
		seen[m.Source] = true
		now := &out[len(out)-1]
		now.values = append(now.values, m.Value)
	}
	return out
}

// memoryAt is what all sources held at a point, by the pass that counts: the last one of the phase, or without one the
// highest of the attempt. It is nil if no pass read all of them.
func (l *hardwareLog) memoryAt(p Point, of []record.Source) (held []float64) {
	begin, end := int64(math.MinInt64), int64(math.MaxInt64)
	if p.phase != "" {
		launch := l.attempt.Launch()
		if launch != l.attempt {
			l = newHardwareLog(launch)
		}
		var ok bool
		if begin, end, ok = evidence.Reach(launch, p.phase); !ok {
			return nil
		}
	}
	for _, pass := range l.passes(of, usedBytes) {
		if pass.at < begin || pass.at >= end || len(pass.values) < len(of) {
			continue
		}
		if held == nil || p.phase != "" || vec.Sum(pass.values) > vec.Sum(held) {
			held = pass.values
		}
	}
	return held
}

// tokens are the tokens generated in the measure phase.
func (l *hardwareLog) tokens() int {
	n := 0
	for _, r := range l.attempt.Measured() {
		n += r.Tokened()
	}
	return n
}

// How energy is computed.
const (
	byCounter = "the increase of the energy counter"
	byPower   = "the integral of the power readings (linear interpolation)"
)

// coverage is the share of the phase that readings must cover. The rest is assumed to use the same power.
const coverage = 0.95

// energy is a source's energy over the measure phase, by its counter if it has one; NaN if unknown.
func (l *hardwareLog) energy(s record.Source) (v float64, way string) {
	if !l.measured || l.end <= l.begin {
		return math.NaN(), ""
	}
	grown, spanned, ok := 0.0, 0.0, true
	rows, counts := l.of(s, joules), true
	if len(rows) < 2 {
		rows, counts = l.of(s, watts), false
	}
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		from, to := max(a.NS, l.begin), min(b.NS, l.end)
		if to <= from {
			continue
		}
		length := float64(to - from)
		spanned += length
		if counts {
			ok = ok && b.Value >= a.Value // it does not begin anew
			grown += (b.Value - a.Value) * length / float64(b.NS-a.NS)
			continue
		}
		at := func(ns int64) float64 { return a.Value + (b.Value-a.Value)*float64(ns-a.NS)/float64(b.NS-a.NS) }
		grown += (at(from) + at(to)) / 2 * length / float64(time.Second)
	}
	if way = byPower; counts {
		way = byCounter
	}
	if whole := float64(l.end - l.begin); ok && spanned >= coverage*whole {
		return grown * whole / spanned, way
	}
	return math.NaN(), way
}

func first(rows []record.MetricRow) float64 {
	if len(rows) == 0 {
		return math.NaN()
	}
	return rows[0].Value
}

func highest(rows []record.MetricRow) float64 {
	out := math.NaN()
	for _, m := range rows {
		out = evidence.MaxKnown(out, m.Value)
	}
	return out
}

// sum is NaN of nothing.
func sum(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return vec.Sum(values)
}
