package estimate

import (
	"maps"
	"math"
	"strings"
	"testing"
)

// Increases of PSS from baseline to peak, measured with SmolLM2-135M on Linux with two cores, no GPU, and a prompt of 5
// or 645 tokens.
func TestIncreasesMatchMeasurements(t *testing.T) {
	smollm := config(t, "smollm2-135m")
	for _, c := range []struct {
		name   string
		s      Setup
		mib    float64
		within float64
	}{
		{"llama.cpp, 512", Setup{Engine: LlamaCPP, Context: 512, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32",
			Own:     []any{GGMLSettings{NoFlash: true}}}, 568.3, 0.05},
		{"llama.cpp, 2048", Setup{Engine: LlamaCPP, Context: 2048, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32",
			Own:     []any{GGMLSettings{NoFlash: true}}}, 636.1, 0.05},
		{"llama.cpp, 8192", Setup{Engine: LlamaCPP, Context: 8192, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32",
			Own:     []any{GGMLSettings{NoFlash: true}}}, 904.5, 0.05},
		{"llama.cpp, mmap off", Setup{Engine: LlamaCPP, Context: 2048, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32",
			Own:     []any{GGMLSettings{NoFlash: true, NoMmap: true}}}, 635.8, 0.05},
		// Weights of Q4_1 took 421 MiB less.
		{"llama.cpp, a long prompt", Setup{Engine: LlamaCPP, Context: 2048, InputLen: 645, OutputLen: 15,
			DType: "float32", KVDType: "f32",
			Own: []any{GGMLSettings{NoFlash: true}}}, 232.4 + 421.0, 0.05},
		{"llama.cpp, a long prompt in 8192",
			Setup{Engine: LlamaCPP, Context: 8192, InputLen: 645, OutputLen: 15, DType: "float32", KVDType: "f32",
				Own: []any{GGMLSettings{NoFlash: true}}}, 502.3 + 421.0, 0.05},
		{"Ollama, 2048", Setup{Engine: Ollama, Context: 2048, InputLen: 5, OutputLen: 15, DType: "float32"},
			190.1 + 421.0, 0.1},
		{"Ollama, 8192", Setup{Engine: Ollama, Context: 8192, InputLen: 5, OutputLen: 15, DType: "float32"},
			324.3 + 421.0, 0.1},
		{"WebLLM, 2048", Setup{Engine: WebLLM, Context: 2048, InputLen: 5, OutputLen: 7, DType: "float32"}, 943.1, 0.1},
		{"WebLLM, 8192", Setup{Engine: WebLLM, Context: 8192, InputLen: 5, OutputLen: 7, DType: "float32"}, 1182, 0.1},
	} {
		inc := of(t, smollm, c.s).Component(Increase)
		if got := float64(inc.Best) / mib; math.Abs(got-c.mib) > c.within*c.mib {
			t.Errorf("%s: predicted %.1f MiB, measured %.1f", c.name, got, c.mib)
		}
		if float64(inc.Low) > c.mib*mib || float64(inc.High) < c.mib*mib {
			t.Errorf("%s: %.1f MiB is outside %.1f to %.1f", c.name, c.mib, float64(inc.Low)/mib,
				float64(inc.High)/mib)
		}
	}
}

func TestMmapAndRepackingChangeWeights(t *testing.T) {
	m := config(t, "smollm2-135m")
	m.Stored, m.Matrices = map[string]int64{"q4_0": 80 * mib, "f32": mib},
		map[string]int64{"q4_0": 57 * mib, "f32": mib}
	for _, c := range []struct {
		s                  Setup
		weights            int64
		mmap, repacks, say string
	}{
		{Setup{Own: []any{GGMLSettings{Repacks: []string{"q4_0"}}}}, 138, "on", "on",
			"the whole mapped file, because all of it is read; 57.00 MiB of q4_0 repacked, in addition"},
		{Setup{Own: []any{GGMLSettings{Repacks: []string{"q4_0"}, NoMmap: true}}}, 81, "off", "on",
			"weights read into memory (no mmap); 57.00 MiB of q4_0 repacked"},
		{Setup{Own: []any{GGMLSettings{Repacks: []string{"q4_k"}}}}, 81, "on", "off", "no repacking"},
		{Setup{}, 81, "on", "off", "no repacking"},
	} {
		c.s.Engine, c.s.Context = LlamaCPP, 512
		e := of(t, m, c.s)
		set := e.Settings()
		if got := e.Component(Weights).Best; got != c.weights*mib || set["mmap"] != c.mmap ||
			set["repacking"] != c.repacks {
			t.Errorf("%+v: %d bytes of weights, %v", c.s, got, set)
		}
		if text := e.Component(Increase).Method; !strings.Contains(text, c.say) {
			t.Errorf("%+v: %q lacks %q", c.s, text, c.say)
		}
	}
}

func TestSettingsAreInverseOfTake(t *testing.T) {
	for _, given := range []map[string]string{
		{"context": "1024", "kv_dtype": "f32", "flash_attention": "off", "mmap": "on", "gpu_layers": "0",
			"ubatch": "128", "weights_dtype": "f32", "repacking": "off", "activations_dtype": "f32"},
		{"context": "512", "kv_dtype": "K q8_0, V f16", "flash_attention": "on", "mmap": "off", "gpu_layers": "3",
			"ubatch": "512", "weights_dtype": "f32", "repacking": "off", "activations_dtype": "f32"},
	} {
		s := Setup{Engine: LlamaCPP, DType: "float32"}
		s.Take(given)
		if got := of(t, config(t, "smollm2-135m"), s).Settings(); !maps.Equal(got, given) {
			t.Errorf("took %v, got %v", given, got)
		}
	}
	s := Setup{Engine: LlamaCPP, Context: 64}
	s.Take(map[string]string{"context": "unknown", "gpu_layers": "2 of 30", "kv_dtype": "f16", "ubatch": "-5",
		"prefill_chunk": "99999999999999999999"})
	if s.Context != 64 || s.GPULayers != 2 || Own[GGMLSettings](s).UBatch != 0 ||
		Own[MLCSettings](s).PrefillChunk != 0 {
		t.Errorf("%+v", s)
	}
}
