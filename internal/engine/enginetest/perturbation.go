package enginetest

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// What an engine must keep of its speed when it is measured, and what a token may cost more of CPU time.
const (
	leastSpeed  = 0.90 // at the interval's lower end
	middleSpeed = 0.97
	mostCPU     = 1.02 // in the middle
)

// A pair is rounds generations of either kind, alternating, so that slow changes affect both equally.
const rounds = 4

// Perturbed is how decoding with all sources sampled was compared with decoding that is not measured, in alternating
// generations of two sessions. A paused sampler still wakes for its ticks, some ten microseconds of CPU time each, on
// the unmeasured side too.
type Perturbed struct {
	On, Off Side
	Pairs   int
	Request engine.Request
}

// Side is a session with a model and what it reported. That of Off is not read.
type Side struct {
	Session engine.Session
	Probe   *Probe
}

// Run reports the ratios of speeds and of CPU time a token, measured to unmeasured, with their intervals.
func (p Perturbed) Run(b *testing.B) {
	w, err := record.Create(b.TempDir(), record.Meta{Name: "perturbation", Started: time.Now()}, record.Environment{},
		nil)
	check.Err(b, err)
	for _, s := range []Side{p.On, p.Off} {
		p.decode(b, s) // warm-up
	}
	// One sampler for all, which reads at its usual times but pauses when nothing is measured.
	rec := w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: 1})
	sampler := sample.New(b.Context(), rec)
	for _, s := range p.On.Probe.Attached() {
		sampler.Attach(s)
	}
	sampler.Pause()
	var speeds, costs []float64
	for range p.Pairs {
		var with, without cost
		for i := range 2 * rounds {
			if i%4 == 0 || i%4 == 3 {
				sampler.Resume()
				with.add(p.decode(b, p.On))
				sampler.Pause()
			} else {
				without.add(p.decode(b, p.Off))
			}
		}
		speeds = append(speeds, without.wall.Seconds()/with.wall.Seconds())
		costs = append(costs, with.cpu.Seconds()/without.cpu.Seconds())
	}
	rec.End(record.OK, "", nil, sampler.Stop())
	check.Err(b, w.Close(record.OK))
	speed, cpu := stats.MedianInterval(speeds, stats.Confidence), stats.MedianInterval(costs, stats.Confidence)
	for name, value := range map[string]float64{"speed": stats.Median(speeds), "speed-low": speed.Lo,
		"speed-high": speed.Hi, "cpu": stats.Median(costs), "cpu-low": cpu.Lo, "cpu-high": cpu.Hi, "ns/op": 0} {
		b.ReportMetric(value, name)
	}
	if speed.Lo < leastSpeed || stats.Median(speeds) < middleSpeed {
		b.Errorf("measured, an engine decodes at %.3f (%.3f to %.3f) of the speed that it has unmeasured, want %.2f and "+
			"at least %.2f", stats.Median(speeds), speed.Lo, speed.Hi, middleSpeed, leastSpeed)
	}
	if got := stats.Median(costs); got > mostCPU {
		b.Errorf("measured, a token takes %.4f times the CPU time (%.4f to %.4f), want at most %.2f", got, cpu.Lo, cpu.Hi,
			mostCPU)
	}
}

// cost is what generations took between their first tokens and their last, and of CPU time in all.
type cost struct{ wall, cpu time.Duration }

func (c *cost) add(d cost) { c.wall, c.cpu = c.wall+d.wall, c.cpu+d.cpu }

func (p Perturbed) decode(b *testing.B, s Side) cost {
	b.Helper()
	var times []time.Time
	before := s.cpu()
	_, err := s.Session.Generate(b.Context(), p.Request, func(t record.Token) { times = append(times, t.At) })
	check.Err(b, err)
	return cost{times[len(times)-1].Sub(times[0]), s.cpu() - before}
}

// cpu is the CPU time of the session's processes.
func (s Side) cpu() (all time.Duration) {
	var pids []int
	for _, source := range s.Probe.Attached() {
		pids = append(pids, source.Describe().PID)
	}
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		took, _ := proc.CPUTime(pid) // one that has ended counts as nothing before and after
		all += took
	}
	return all
}

// noLedger replaces a page's ledger.js to patch nothing.
const noLedger = `
export const ledger = { brief: () => [], mark() {}, enter() {}, read: () => ({ figures: {} }), history: () => [], wasm: () => ({}) };
globalThis.llmparityLedger = ledger;
`

// WithoutLedger serves a page that counts nothing.
func WithoutLedger(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.URL.Path != "/ledger.js" {
		next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/javascript")
	_, _ = io.WriteString(w, noLedger) // fails if the browser has gone
}
