package webllm

import (
	"io"
	"net/http"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/stats"
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
// A software adapter, which computes on the samplers' cores, is the worst case. A paused sampler still wakes for its
// ticks, some ten microseconds of CPU time each, on the unmeasured side too.
func BenchmarkPerturbation(b *testing.B) {
	const pairs = 48
	m := tinyModel(b)
	on, off := ready(b, ""), ready(b, noLedger)
	w, err := record.Create(b.TempDir(), record.Meta{Name: "perturbation", Started: time.Now()}, record.Environment{},
		nil)
	check.Err(b, err)
	for _, s := range []*open{on, off} {
		check.Err(b, s.session.Load(b.Context(), m))
		s.decode(b) // warm-up
	}
	// One sampler for all, which reads at its usual times but pauses when nothing is measured.
	rec := w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: 1})
	sampler := sample.New(b.Context(), rec)
	for _, s := range on.probe.Attached() {
		sampler.Attach(s)
	}
	sampler.Pause()
	var ratios []float64
	for range pairs {
		var with, without time.Duration
		for i := range 2 * rounds {
			if i%4 == 0 || i%4 == 3 {
				sampler.Resume()
				with += on.decode(b)
				sampler.Pause()
			} else {
				without += off.decode(b)
			}
		}
		ratios = append(ratios, without.Seconds()/with.Seconds())
	}
	rec.End(record.OK, "", nil, sampler.Stop())
	check.Err(b, w.Close(record.OK))
	ratio := stats.MedianInterval(ratios, stats.Confidence)
	b.ReportMetric(stats.Median(ratios), "ratio")
	b.ReportMetric(ratio.Lo, "ratio-low")
	b.ReportMetric(ratio.Hi, "ratio-high")
	if ratio.Lo < atLeast {
		b.Errorf("measured, an engine decodes at %.3f to %.3f of the speed that it has unmeasured, want at least %.2f",
			ratio.Lo, ratio.Hi, atLeast)
	}
}

type open struct {
	session *session
	probe   *enginetest.Probe
}

// ready returns a session, optionally with another ledger.js.
func ready(b *testing.B, ledger string) *open {
	b.Helper()
	probe := &enginetest.Probe{}
	s, err := opened(b.Context(), packed(b, Config{}), probe,
		answering(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if ledger == "" || r.URL.Path != "/ledger.js" {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, ledger) // fails if the browser has gone
		}))
	check.Err(b, err)
	b.Cleanup(func() {
		check.Also(b, s.Close())
	})
	return &open{s, probe}
}

// decode returns the time from the first token of a generation to its last.
func (o *open) decode(b *testing.B) time.Duration {
	b.Helper()
	var times []time.Time
	_, err := o.session.Generate(b.Context(),
		engine.Request{Prompt: "The quick brown fox", MaxTokens: long, IgnoreEOS: true},
		func(t record.Token) { times = append(times, t.At) })
	check.Err(b, err)
	return times[len(times)-1].Sub(times[0])
}
