package estimate

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Sizes of runs in Chromium 156, as wllama 3.8.1's log and the processes' PSS have them.
func TestWebAssemblyMatchesRuns(t *testing.T) {
	web := &engine.Memory{Name: "w", Title: "W", Runtime: "ggml-web", Before: 370 * mib,
		Program: engine.Program{Bytes: 136 * mib, Token: 360, Low: 0.6, High: 1.6, How: "measured"}}
	plain := func(m Model) Model {
		m.Only = "" // of any format
		return m
	}
	for name, c := range map[string]struct {
		model                     Model
		context                   int
		weights, kv, compute, all float64 // MiB; all: the increase
	}{
		"tiny": {plain(random(2, 128, 4, 2, 32, 256, 512, false)), 1024, 1.63, 1, 11.51, 152},
	} {
		e := of(t, c.model, Setup{Engine: web, Context: c.context, KVDType: "f32",
			Own: []any{GGMLSettings{UBatch: 512, NoFlash: true}}})
		for part, want := range map[string]float64{Weights: c.weights, KVReserved: c.kv, Activation: c.compute,
			Increase: c.all} {
			got := e.Component(part)
			if want *= mib; want < float64(got.Low)-1e4 || want > float64(got.High)+1e4 {
				t.Errorf("%s: %s is %.2f MiB, predicted %.2f to %.2f", name, part, want/mib, float64(got.Low)/mib,
					float64(got.High)/mib)
			}
		}
	}
	large := of(t, plain(random(32, 4096, 32, 32, 128, 11008, 32000, false)),
		Setup{Engine: web, Context: 1024, KVDType: "f32"})
	if risk := large.Risk(map[string]Room{Wasm: {Free: 4 * gib, How: "said"}}); risk.Level == record.RiskLow {
		t.Errorf("7B in WebAssembly: %+v", risk)
	}
}
