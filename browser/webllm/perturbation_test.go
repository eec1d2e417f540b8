package webllm

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

// BenchmarkPerturbation generates with the ledger and all samplers, and without any, in two open browsers. A software
// adapter, which computes on the samplers' cores, is the worst case.
func BenchmarkPerturbation(b *testing.B) {
	m := tinyModel(b)
	ready := func(between answers) enginetest.Side {
		probe := &enginetest.Probe{}
		s, err := opened(b.Context(), packed(b, Config{}), probe, answering(between))
		check.Err(b, err)
		b.Cleanup(func() { check.Also(b, s.Close()) })
		check.Err(b, s.Load(b.Context(), m))
		return enginetest.Side{Session: s, Probe: probe}
	}
	p := enginetest.Perturbed{Pairs: 48,
		Request: engine.Request{Prompt: "The quick brown fox", MaxTokens: 100, IgnoreEOS: true}}
	p.On, p.Off = ready(asServed), ready(enginetest.WithoutLedger)
	p.Run(b)
}
