package wllama

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
	open := func(ledger bool) enginetest.Side {
		probe, e := &enginetest.Probe{}, with(WASM, 1)
		r, err := e.runtime()
		check.Err(b, err)
		if site := r.served.Handler; !ledger {
			r.served.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				enginetest.WithoutLedger(w, q, site)
			})
		}
		s, err := browser.Start(b.Context(), e.browser(), r, probe)
		check.Err(b, err)
		enginetest.Load(b, s, enginetest.TinyModel(b))
		return enginetest.Side{Session: s, Probe: probe}
	}
	p := enginetest.Perturbed{Open: open, Launches: 6, Pairs: 6,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 500, IgnoreEOS: true}}
	p.Run(b)
}
