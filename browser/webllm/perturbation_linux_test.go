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

// atLeast is the share of its speed that an engine must keep while it is measured.
const atLeast = 0.95

// A pair is rounds generations of either kind, of so many tokens each, in turn: what is slow to change meets both
// alike, and together they take as long as the dearest source has between two readings.
const (
	rounds = 4
	long   = 100
)

// noLedger stands in for ledger.js where nothing shall be patched.
const noLedger = `
export const ledger = { brief: () => [], mark() {}, enter() {} };
globalThis.llmparityLedger = { history: () => [] };
`

// BenchmarkPerturbation generates with the ledger and all samplers, and without any of them, in turn, in two browsers
// that are both open all the time. On a software adapter, which computes on the cores that samplers run on, this is the
// hard case. The CPU time of browser and sampler is compared beside the rate, process by process: it tells the same on
// a machine that is busy with other things.
//
// The median's interval is that of order statistics: it assumes nothing, and no pair is left out. A sampler that rests
// still wakes for its ticks, some ten microseconds of CPU time each, which the unmeasured side has too.
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

// generations sums up some: tokens behind the first, in the time from the first to the last.
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

// perturbation compares a page with the ledger, and with samplers where it is told so, with one without either.
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
		s.decode(b) // warm
	}
	// One sampler for all: it reads at the times at which it would, and rests while nothing is measured.
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

// BenchmarkReads tells what one reading of each source takes: until it is there, and of the browser's and this
// program's CPU time.
func BenchmarkReads(b *testing.B) {
	m := tinyModel(b)
	o := opened(b, "")
	if err := o.session.Load(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	o.decode(b)
	seen := map[string]bool{}
	for _, s := range o.probe.Attached() {
		d := s.Describe()
		name := d.Method + "/" + d.Role
		if seen[name] {
			continue
		}
		seen[name] = true
		b.Run(name, func(b *testing.B) {
			before := o.cpu(b)
			for b.Loop() {
				r := record.NewSample()
				if err := s.Read(b.Context(), &r); err != nil {
					b.Fatal(err)
				}
			}
			took := o.cpu(b)
			took.add(before, -1)
			for _, role := range []string{"llmparity", "browser", "page"} {
				b.ReportMetric(float64(took[role].Microseconds())/float64(b.N), role+"-µs/op")
			}
			b.ReportMetric(float64(took.sum().Microseconds())/float64(b.N), "CPU-µs/op")
		})
	}
}

type open struct {
	session *session
	probe   *enginetest.Probe
}

// opened is a session whose page has another ledger, where one is given.
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

// decode is one generation, with the CPU time that the browser and this program took for it.
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

// cpu is the CPU time so far of the browser's processes and of this one.
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
