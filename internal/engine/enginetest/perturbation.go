package enginetest

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
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

// Perturbed is how decoding that is measured was compared with decoding that is not. Two launches of one build differ
// by more than a measurement costs, so samplers are switched on and off within a launch, in turns that affect both
// equally. A paused sampler still wakes for its ticks, some ten microseconds of CPU time each. The ledger is there
// from a launch's start to its end: what it costs is found between launches, and less surely.
type Perturbed struct {
	Open            func(ledger bool) Side // closed by Run
	Launches, Pairs int                    // of each kind, and in each launch
	SamplersAlone   bool                   // nothing is opened without the ledger
	Request         engine.Request
}

// Side is a session with a model and what it reported.
type Side struct {
	Session engine.Session
	Probe   *Probe
	Root    int // process, with what it started, whose CPU time counts; 0: those that the probe's sources read
}

// Run reports the ratios of speeds and of CPU time a token, measured to unmeasured, with their intervals.
func (p Perturbed) Run(b *testing.B) {
	w, err := record.Create(b.TempDir(), record.Meta{Name: "perturbation", Started: time.Now()}, record.Environment{},
		nil)
	check.Err(b, err)
	var samplers, ledger ratios
	for i := range p.Launches {
		within, between := p.launch(b, w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: i + 1}))
		samplers.speed, samplers.cpu = append(samplers.speed, within.speed...), append(samplers.cpu, within.cpu...)
		if p.SamplersAlone {
			continue
		}
		ledger.speed = append(ledger.speed, stats.Median(between.speed))
		ledger.cpu = append(ledger.cpu, stats.Median(between.cpu))
	}
	check.Err(b, w.Close(record.OK))
	b.ReportMetric(0, "ns/op")
	speed, cpu := samplers.report(b, "samplers")
	if speed.Lo < leastSpeed || stats.Median(samplers.speed) < middleSpeed {
		b.Errorf("sampled, an engine decodes at %.3f (%.3f to %.3f) of the speed that it has unsampled, want %.2f and "+
			"at least %.2f", stats.Median(samplers.speed), speed.Lo, speed.Hi, middleSpeed, leastSpeed)
	}
	if got := stats.Median(samplers.cpu); got > mostCPU {
		b.Errorf("sampled, a token takes %.4f times the CPU time (%.4f to %.4f), want at most %.2f", got, cpu.Lo, cpu.Hi,
			mostCPU)
	}
	if p.SamplersAlone {
		return
	}
	if _, kept := ledger.report(b, "ledger"); kept.Lo > mostCPU {
		b.Errorf("with the ledger, a token takes %.4f to %.4f times the CPU time, want at most %.2f", kept.Lo, kept.Hi,
			mostCPU)
	}
}

// ratios are those of pairs: speeds, measured to unmeasured, and CPU times.
type ratios struct{ speed, cpu []float64 }

func (r *ratios) add(with, without cost) {
	r.speed = append(r.speed, without.wall.Seconds()/with.wall.Seconds())
	r.cpu = append(r.cpu, with.cpu.Seconds()/without.cpu.Seconds())
}

func (r *ratios) report(b *testing.B, of string) (speed, cpu *stats.Interval) {
	for name, values := range map[string][]float64{"speed": r.speed, "cpu": r.cpu} {
		in := stats.MedianInterval(values, stats.Confidence)
		b.ReportMetric(stats.Median(values), of+"-"+name)
		b.ReportMetric(in.Lo, of+"-"+name+"-low")
		b.ReportMetric(in.Hi, of+"-"+name+"-high")
	}
	return stats.MedianInterval(r.speed, stats.Confidence), stats.MedianInterval(r.cpu, stats.Confidence)
}

// launch compares generations with samplers and without them in one browser, and with the ledger and without it, both
// unsampled, in two.
func (p Perturbed) launch(b *testing.B, rec *record.Recording) (samplers, ledger ratios) {
	with := p.Open(true)
	bare := with
	if !p.SamplersAlone {
		bare = p.Open(false)
	}
	defer func() {
		err := with.Session.Close()
		if !p.SamplersAlone {
			err = errors.Join(err, bare.Session.Close())
		}
		check.Err(b, err)
	}()
	// One sampler, which reads at its usual times but pauses when nothing is sampled.
	sampler := sample.New(b.Context(), rec)
	for _, s := range with.Probe.Attached() {
		sampler.Attach(s)
	}
	sampler.Pause()
	for _, s := range []Side{with, bare, with, bare} { // compilers of a page warm up
		p.decode(b, s)
	}
	for range p.Pairs {
		var sampled, paused, without cost
		for i := range 6 {
			switch i {
			case 0, 5:
				sampler.Resume()
				sampled.add(p.decode(b, with))
				sampler.Pause()
			case 1, 4:
				paused.add(p.decode(b, with))
			case 2, 3:
				if !p.SamplersAlone {
					without.add(p.decode(b, bare))
				}
			}
		}
		samplers.add(sampled, paused)
		if !p.SamplersAlone {
			ledger.add(paused, without)
		}
	}
	rec.End(record.OK, "", nil, sampler.Stop())
	return samplers, ledger
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
	if s.Root != 0 {
		pids = child.Descendants(s.Root)
	}
	for _, source := range s.Probe.Attached() {
		if s.Root != 0 {
			break
		}
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
