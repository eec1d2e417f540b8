//go:build slow

package webllm

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Load speeds are compared in pairs until the interval is narrow enough, up to mostPairs.
const (
	leastPairs = 12
	mostPairs  = 48
	halfWidth  = 0.03
	mostOfCore = 2.0 // percent
)

// BenchmarkLoad loads SmolLM2 with all samplers and without any, alternating, each time in a new browser. It fails if
// sampled loads may be slower than 95%, or if sampling takes more than 2% of a core. Both sides serve the weights, so
// the difference of their CPU times is the samplers'.
func BenchmarkLoad(b *testing.B) {
	p, m := smolLM2(b)
	w, err := record.Create(b.TempDir(), record.Meta{Name: "load", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	loadOnce(b, p, m, &enginetest.Probe{}) // warms the disk cache
	var speeds, shares []float64
	for n := range mostPairs {
		var with, without loading
		for i := range 2 {
			if i == n%2 {
				without = loadOnce(b, p, m, &enginetest.Probe{})
				continue
			}
			rec := w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: n + 1})
			sampler := sample.New(b.Context(), rec)
			with = loadOnce(b, p, m, &samplingProbe{sampler: sampler})
			rec.End(record.OK, "", nil, sampler.Stop())
		}
		speeds = append(speeds, without.took.Seconds()/with.took.Seconds())
		busier := with.cpu.Seconds()/with.took.Seconds() - without.cpu.Seconds()/without.took.Seconds()
		shares = append(shares, 100*busier)
		if i := medianOf(speeds); n+1 >= leastPairs && i.high-i.low <= 2*halfWidth {
			break
		}
	}
	if err := w.Close(record.OK); err != nil {
		b.Fatal(err)
	}
	speed, share := medianOf(speeds), medianOf(shares)
	b.ReportMetric(speed.median, "ratio")
	b.ReportMetric(speed.low, "ratio-low")
	b.ReportMetric(speed.high, "ratio-high")
	b.ReportMetric(share.median, "%core")
	b.Logf("%d pairs: speed %v; sampling takes %v %% of a core", len(speeds), speed, share)
	if speed.low < atLeast {
		b.Errorf("a sampled load has %v of the speed, want at least %.2f", speed, atLeast)
	}
	if share.median > mostOfCore {
		b.Errorf("sampling takes %v %% of a core during a load, want at most %.0f", share, mostOfCore)
	}
}

// smolLM2 is SmolLM2-135M-Instruct with float32 weights, packaged.
func smolLM2(b *testing.B) (Package, engine.Model) {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join(cache.Dir(os.Getenv), "models", "smollm2", "*.gguf"))
	if err != nil || len(paths) != 1 {
		b.Fatalf("SmolLM2 is missing (%v, %v); run scripts/setup smollm2", paths, err)
	}
	p, err := packFile(paths[0], filepath.Join(b.TempDir(), "package"), "smollm2", window, func(s string) { b.Log(s) })
	if err != nil {
		b.Fatal(err)
	}
	return p, engine.Model{Path: paths[0], Model: record.Model{Name: "smollm2", Context: window}}
}

// samplingProbe is a probe whose sources are sampled as in a run.
type samplingProbe struct {
	enginetest.Probe
	sampler *sample.Sampler
}

func (s *samplingProbe) Attach(src sample.Source) func() { return s.sampler.Attach(src) }

// loading is the duration of a load and this program's CPU time.
type loading struct{ took, cpu time.Duration }

func loadOnce(b *testing.B, p Package, m engine.Model, probe engine.Probe) loading {
	b.Helper()
	w := New(Config{}, engine.Settings{})
	w.pack = packaged(p)
	if err := w.Prepare(b.Context(), m, quiet); err != nil {
		b.Fatal(err)
	}
	session, err := w.Open(b.Context(), probe)
	if err != nil {
		b.Fatal(err)
	}
	began, cpu := time.Now(), ownCPU(b)
	if err := session.Load(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	l := loading{took: time.Since(began), cpu: ownCPU(b) - cpu}
	if err := session.Close(); err != nil {
		b.Fatal(err)
	}
	return l
}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
