package estimate

import (
	"strings"
	"testing"

	"llmparity/internal/record"
)

func TestRiskOfPlaces(t *testing.T) {
	smollm := config(t, "smollm2-135m")
	roomy := map[string]Room{RAM: {64 * gib, "said"}, VRAM: {64 * gib, "said"}, Buffer: {gib, "said"},
		Wasm: {4 * gib, "said"}, Renderer: {4 * gib, "said"}}
	with := func(place string, free int64) map[string]Room {
		rooms := map[string]Room{}
		for name, r := range roomy {
			rooms[name] = r
		}
		if rooms[place] = (Room{free, "said"}); free < 0 {
			delete(rooms, place)
		}
		return rooms
	}
	for name, c := range map[string]struct {
		setup  Setup
		rooms  map[string]Room
		level  record.RiskLevel
		first  string // the tightest place
		reason string
		advice string
	}{
		"room": {Setup{Engine: LlamaCPP, Context: 8192}, roomy, record.RiskLow, RAM, "", ""},
		"long context": {Setup{Engine: LlamaCPP, DType: "float32", Context: 8192, KVDType: "f32", InputLen: 10,
			OutputLen: 10}, with(RAM, 750*mib), record.RiskHigh, RAM,
			"memory: needs 907", "--context 3584): 704.6 MiB instead of 907.1 MiB, tight"},
		"tight": {Setup{Engine: LlamaCPP, DType: "float32", Context: 512, InputLen: 10, OutputLen: 10},
			with(RAM, 640*mib), record.RiskMedium, RAM, "KV cache 11.2 MiB", "q4_k_m"},
		"quantised keys": {Setup{Engine: LlamaCPP, DType: "float16", Context: 8192, InputLen: 8000, OutputLen: 10},
			with(RAM, 480*mib), record.RiskHigh, RAM,
			"KV cache 180.0 MiB", "q8_0"},
		"unknown memory": {Setup{Engine: LlamaCPP, Context: 512}, with(RAM, -1), record.RiskUnknown,
			"", "is unknown", ""},
		"browser": {Setup{Engine: WebLLM, DType: "float32", Context: 512},
			with(RAM, 1000*mib), record.RiskHigh, RAM, "weights 513", "q4f32_1"},
		"small buffer": {Setup{Engine: WebLLM, DType: "float32", Context: 512},
			with(Buffer, 64*mib), record.RiskHigh, Buffer, "WebGPU buffer: needs 108.0 MiB", "--adapter"},
		"small buffer, unknown memory": {Setup{Engine: WebLLM, DType: "float32", Context: 512},
			map[string]Room{Buffer: {64 * mib, "said"}}, record.RiskHigh, Buffer, "is unknown", "--adapter"},
		"on a GPU": {Setup{Engine: WebLLM, DType: "float32", Context: 512, OnGPU: true},
			with(VRAM, 256*mib), record.RiskHigh, VRAM, "GPU memory: needs 5", "q4f32_1"},
		"half on a GPU": {Setup{Engine: LlamaCPP, DType: "float32", Context: 512, InputLen: 10,
			GPULayers: 15}, with(VRAM, 400*mib), record.RiskLow, VRAM, "", ""},
		"few layers on a GPU": {Setup{Engine: LlamaCPP, DType: "float32", Context: 512, InputLen: 10,
			GPULayers: 3}, with(RAM, 400*mib), record.RiskHigh, RAM,
			"memory: needs 505.4", "q4_k_m"},
		"a rule decides": {Setup{Engine: LlamaCPP, Context: 8192}, with(RAM, 500*mib), record.RiskHigh, RAM,
			" of 500.0 MiB available (said), of which 5% must stay free", "fits"},
		"vLLM": {Setup{Engine: VLLM, Context: 512}, with(VRAM, gib), record.RiskHigh, VRAM, "GPU memory: needs 1", ""},
	} {
		e := of(t, smollm, c.setup)
		r := e.Risk(c.rooms)
		if r.Level != c.level {
			t.Errorf("%s: %s, want %s: %+v", name, r.Level, c.level, r)
		}
		if c.first != "" && (len(r.Places) == 0 || r.Places[0].Name != c.first) {
			t.Errorf("%s: the tightest is %+v, want %s", name, r.Places, c.first)
		}
		if text := strings.Join(r.Reasons, "\n"); !strings.Contains(text, c.reason) || c.reason == "" && text != "" {
			t.Errorf("%s: reasons are %q, want %q", name, text, c.reason)
		}
		if text := strings.Join(r.Recommendations, "\n"); !strings.Contains(text, c.advice) ||
			c.level == record.RiskLow && text != "" {
			t.Errorf("%s: advice is %q, want %q", name, text, c.advice)
		}
	}
}

// Advice considers all places, not only the tightest.
func TestAdviceFitsEverywhere(t *testing.T) {
	m := config(t, "smollm2-135m")
	m.MaxContext = 1 << 18
	e := of(t, m, Setup{Engine: WebLLM, DType: "float32", Context: 1 << 18, InputLen: 10, OutputLen: 10})
	rooms := map[string]Room{RAM: {3 * gib, "said"}, Buffer: {128 * mib, "said"}}
	r := e.Risk(rooms)
	if r.Level != record.RiskHigh || len(r.Recommendations) == 0 ||
		!strings.HasPrefix(r.Recommendations[0], "a context of 28416 tokens") {
		t.Fatalf("%+v", r)
	}
	s := e.Setup
	// 256 tokens more need a larger buffer, and would fit into memory
	for context, want := range map[int]record.RiskLevel{28416 + 256: record.RiskMedium, 28416: record.RiskLow} {
		if s.Context = context; of(t, e.Model, s).Risk(rooms).Level != want {
			t.Errorf("%d tokens are not %s", context, want)
		}
	}
}
