package webllm

import (
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// atLeast is the fraction of its speed that an engine must keep when measured.
const atLeast = 0.95

// A pair is rounds generations of either kind, alternating, so that slow changes affect both equally. Together they
// take as long as the slowest source's interval.
const (
	rounds = 4
	long   = 100
)

// noLedger replaces ledger.js to patch nothing.
const noLedger = `
export const ledger = { brief: () => [], mark() {}, enter() {} };
globalThis.llmparityLedger = { history: () => [] };
`

// BenchmarkPerturbation generates with the ledger and all samplers, and without any, alternating in two open browsers.
// A software adapter, which computes on the samplers' cores, is the worst case. It also compares the CPU time of each
// process, which is reliable even on a busy machine.
//
// The median's interval is by order statistics, without assumptions and with all pairs. A paused sampler still wakes
// for its ticks, some ten microseconds of CPU time each, on the unmeasured side too.
func BenchmarkPerturbation(b *testing.B) {
	b.Run("everything", func(b *testing.B) {
		if p := perturbation(b, 48, true); p.low < atLeast {
			b.Errorf("measured, an engine decodes at %.3f (95 %%: %.3f to %.3f) of the speed that it has with neither ledger nor samplers, want at least %.2f", p.median, p.low, p.high, atLeast)
		}
	})
	b.Run("ledger", func(b *testing.B) { perturbation(b, 6, false) })
}

// spent is CPU time by process.
type spent map[string]time.Duration

func (s spent) add(other spent, sign time.Duration) {
	for role, d := range other {
		s[role] += sign * d
	}
}

// generations sums up generations: tokens after the first, and the time from the first to the last.
type generations struct {
	tokens int
	took   time.Duration
	cpu    spent
}

func (g *generations) add(other generations) {
	g.tokens += other.tokens
	g.took += other.took
	g.cpu.add(other.cpu, 1)
}

func (g generations) rate() float64 { return float64(g.tokens) / g.took.Seconds() }

func (s spent) sum() (sum time.Duration) {
	for _, d := range s {
		sum += d
	}
	return sum
}

// perturbation compares a page with the ledger, and optionally samplers, with one without both.
func perturbation(b *testing.B, pairs int, samplers bool) interval {
	m := tinyModel(b)
	on, off := opened(b, ""), opened(b, noLedger)
	w, err := record.Create(b.TempDir(), record.Meta{Name: "perturbation", Started: time.Now()}, record.Environment{},
		nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range []*open{on, off} {
		if err := s.session.Load(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		s.decode(b) // warm-up
	}
	// One sampler for all, which reads at its usual times but pauses when nothing is measured.
	rec := w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: 1})
	sampler := sample.New(b.Context(), rec)
	for _, s := range on.probe.Attached() {
		if samplers {
			sampler.Attach(s)
		}
	}
	sampler.Pause()
	var ratios, rates, cpu []float64
	onAll, offAll := generations{cpu: spent{}}, generations{cpu: spent{}}
	for range pairs {
		with, without := generations{cpu: spent{}}, generations{cpu: spent{}}
		for i := range 2 * rounds {
			if i%4 == 0 || i%4 == 3 {
				sampler.Resume()
				with.add(on.decode(b))
				sampler.Pause()
			} else {
				without.add(off.decode(b))
			}
		}
		onAll.add(with)
		offAll.add(without)
		cpu = append(cpu, float64(with.cpu.sum())/float64(without.cpu.sum()))
		ratios, rates = append(ratios, with.rate()/without.rate()), append(rates, without.rate())
	}
	cost := sampler.Stop()
	rec.End(record.OK, "", nil, cost)
	if err := w.Close(record.OK); err != nil {
		b.Fatal(err)
	}
	ratio, busy, rate := medianOf(ratios), medianOf(cpu), medianOf(rates)
	b.ReportMetric(ratio.median, "ratio")
	b.ReportMetric(ratio.low, "ratio-low")
	b.ReportMetric(ratio.high, "ratio-high")
	b.ReportMetric(busy.median, "cpu-ratio")
	b.ReportMetric(busy.high, "cpu-ratio-high")
	b.ReportMetric(rate.median, "tokens/s-unmeasured")
	b.Logf("%d pairs: rate %v of %.1f tokens/s; CPU time %v", pairs, ratio, rate.median, busy)
	b.Logf("%d reads in %.1f ms; %d answers waited for, %.1f ms", cost.Reads, float64(cost.ReadNS)/1e6, cost.Waits,
		float64(cost.WaitNS)/1e6)
	for _, role := range slices.Sorted(maps.Keys(onAll.cpu)) {
		each := func(g generations) float64 { return float64(g.cpu[role].Microseconds()) / float64(g.tokens) }
		b.Logf("CPU time a token, %s: %.0f µs measured, %.0f µs not", role, each(onAll), each(offAll))
	}
	return ratio
}

type open struct {
	session *session
	probe   *enginetest.Probe
}

// opened returns a session, optionally with another ledger.js.
func opened(b *testing.B, ledger string) *open {
	b.Helper()
	probe := &enginetest.Probe{}
	s, err := packed(b, Config{}).open(b.Context(), probe,
		answering(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if ledger == "" || r.URL.Path != "/ledger.js" {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, ledger) // fails if the browser has gone
		}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return &open{s, probe}
}

// decode runs a generation, with the CPU times of the browser and this program.
func (o *open) decode(b *testing.B) generations {
	b.Helper()
	before := o.cpu(b)
	var first, last time.Time
	n := 0
	_, err := o.session.Generate(b.Context(),
		engine.Request{Prompt: "The quick brown fox", MaxTokens: long, IgnoreEOS: true}, func(t record.Token) {
			if n == 0 {
				first = t.At
			}
			last = t.At
			n++
		})
	if err != nil {
		b.Fatal(err)
	}
	g := generations{tokens: n - 1, took: last.Sub(first), cpu: o.cpu(b)}
	g.cpu.add(before, -1)
	return g
}

// cpu returns the CPU times so far of the browser's processes and this one.
func (o *open) cpu(b *testing.B) spent {
	b.Helper()
	all := spent{}
	roles, err := o.session.Roles(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	roles[os.Getpid()] = "llmparity"
	for pid, role := range roles {
		p, err := procfs.NewProc(pid)
		if err != nil {
			b.Fatal(err)
		}
		stat, err := p.Stat()
		if err != nil {
			b.Fatal(err)
		}
		if role == "renderer" {
			role = "page"
		}
		all[role] += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	return all
}
