package transformersjs

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
	m := enginetest.TinyModel(b)
	ready := func(ledger bool) enginetest.Side {
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
		b.Cleanup(func() { check.Also(b, s.Close()) })
		enginetest.Load(b, s, m)
		return enginetest.Side{Session: s, Probe: probe}
	}
	p := enginetest.Perturbed{Pairs: 32,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 100, IgnoreEOS: true}}
	p.On, p.Off = ready(true), ready(false)
	p.Run(b)
}
