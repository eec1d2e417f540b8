package webllm

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

// BenchmarkPerturbation generates with all samplers and without, and with the ledger and without. A software adapter,
// which computes on the samplers' cores, is the worst case.
func BenchmarkPerturbation(b *testing.B) {
	m := tinyModel(b)
	open := func(ledger bool) enginetest.Side {
		between := asServed
		if !ledger {
			between = enginetest.WithoutLedger
		}
		probe := &enginetest.Probe{}
		s, err := opened(b.Context(), packed(b, Config{}), probe, answering(between))
		check.Err(b, err)
		check.Err(b, s.Load(b.Context(), m))
		return enginetest.Side{Session: s, Probe: probe}
	}
	p := enginetest.Perturbed{Open: open, Launches: 6, Pairs: 6,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 100, IgnoreEOS: true}}
	p.Run(b)
}
