package transformersjs

import (
	"net/http"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

// BenchmarkPerturbation generates with all samplers and without, and with the ledger and without.
func BenchmarkPerturbation(b *testing.B) {
	m := enginetest.TinyModel(b)
	open := func(ledger bool) enginetest.Side {
		probe := &enginetest.Probe{}
		e := New(Config{Settings: browser.Defaults()}, engine.Settings{Threads: 1, Cache: b.TempDir()})
		r, err := newRuntime(e)
		check.Err(b, err)
		if site := r.Handler; !ledger {
			r.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				enginetest.WithoutLedger(w, q, site)
			})
		}
		s, err := browser.Start(b.Context(), e.browser(), r, probe)
		check.Err(b, err)
		enginetest.Load(b, s, m)
		return enginetest.Side{Session: s, Probe: probe}
	}
	p := enginetest.Perturbed{Open: open, Launches: 6, Pairs: 6,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 400, IgnoreEOS: true}}
	p.Run(b)
}
