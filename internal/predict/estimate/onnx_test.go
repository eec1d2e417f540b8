package estimate

import (
	"math"
	"testing"

	"llmparity/internal/engine"
)

// onnxEngine is an engine on ONNX Runtime.
var onnxEngine = &engine.Memory{Name: "onnx", Title: "ONNX", Runtime: "onnx", Formats: []string{"onnx"}}

// Increases of PSS from baseline to peak in WebAssembly, of GGUF files in f32 (Chromium 156, one thread, 2 cores).
func TestONNXIncreasesMatchMeasurements(t *testing.T) {
	for _, c := range []struct {
		name            string
		layers, hidden  int
		heads, kvHeads  int
		headDim, inter  int
		vocab           int
		tied            bool
		context, tokens int
		mib             float64
	}{
		{"tiny", 2, 128, 4, 2, 32, 256, 512, false, 1024, 57, 242.3},
		{"SmolLM2-135M", 30, 576, 9, 3, 64, 1536, 49152, true, 512, 18, 1384.6}, // and WebAssembly 819 MiB
	} {
		m := random(c.layers, c.hidden, c.heads, c.kvHeads, c.headDim, c.inter, c.vocab, c.tied)
		m.Source, m.Only, m.Stored = "gguf", "", map[string]int64{"f32": 4 * m.Parameters}
		e := of(t, m, Setup{Engine: onnxEngine, Context: c.context, InputLen: c.tokens - 8, OutputLen: 8})
		inc := e.Component(Increase)
		got := float64(inc.Best) / mib
		t.Logf("%s: predicted %.0f MiB, measured %.0f (%+.1f%%)", c.name, got, c.mib, 100*(got/c.mib-1))
		if math.Abs(got-c.mib) > 0.15*c.mib || float64(inc.Low) > c.mib*mib || float64(inc.High) < c.mib*mib {
			t.Errorf("%s: predicted %.1f MiB (%.1f to %.1f), measured %.1f", c.name, got, float64(inc.Low)/mib,
				float64(inc.High)/mib, c.mib)
		}
		need, ok := e.NeedAt(Wasm)
		if weights := 4 * m.Parameters; !ok || need.Best < weights*3/2 || need.Best > weights*2 || !need.Hard {
			t.Errorf("%s: WebAssembly needs %+v for weights of %d", c.name, need, weights)
		}
	}
}

// Matrices in Q4_0 keep their bits; only scales become wider.
func TestONNXKeepsQ4(t *testing.T) {
	m := random(2, 256, 4, 2, 64, 512, 512, false)
	const rest = 1000
	m.Source, m.Only, m.Stored = "gguf", "", map[string]int64{"q4_0": (m.Parameters - rest) / 32 * 18, "f32": 4 * rest}
	got := of(t, m, Setup{Engine: onnxEngine, Context: 64}).Component(Weights).Best
	if want := m.Stored["q4_0"]/18*20 + 4*rest; math.Abs(float64(got-want)) > 200 {
		t.Errorf("%d bytes, want %d", got, want)
	}
}
