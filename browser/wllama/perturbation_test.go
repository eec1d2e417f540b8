package wllama

import (
	"net/http"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

// BenchmarkPerturbation generates with the ledger and all samplers, and without any, in two open browsers.
func BenchmarkPerturbation(b *testing.B) {
	ready := func(ledger bool) enginetest.Side {
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
		b.Cleanup(func() { check.Also(b, s.Close()) })
		enginetest.Load(b, s, enginetest.TinyModel(b))
		return enginetest.Side{Session: s, Probe: probe}
	}
	p := enginetest.Perturbed{Pairs: 32,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 500, IgnoreEOS: true}}
	p.On, p.Off = ready(true), ready(false)
	p.Run(b)
}
