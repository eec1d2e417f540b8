package estimate

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/gguf"
)

// Increases of PSS from the baseline to the peak as they were measured with SmolLM2-135M on Linux with two cores, no
// GPU, a prompt of 5 tokens and 16 generated; with the long one 645.
func TestIncreasesAreNear(t *testing.T) {
	smollm := config(t, "smollm2-135m")
	for _, c := range []struct {
		name   string
		s      Setup
		mib    float64
		within float64
	}{
		{"llama.cpp, 512", Setup{Engine: LlamaCPP, Context: 512, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32", NoFlash: true}, 568.3, 0.05},
		{"llama.cpp, 2048", Setup{Engine: LlamaCPP, Context: 2048, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32", NoFlash: true}, 636.1, 0.05},
		{"llama.cpp, 8192", Setup{Engine: LlamaCPP, Context: 8192, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32", NoFlash: true}, 904.5, 0.05},
		{"llama.cpp, mmap off", Setup{Engine: LlamaCPP, Context: 2048, InputLen: 5, OutputLen: 15, DType: "float32",
			KVDType: "f32", NoFlash: true, NoMmap: true}, 635.8, 0.05},
		// Weights of Q4_1 took 421 MiB less.
		{"llama.cpp, a long prompt", Setup{Engine: LlamaCPP, Context: 2048, InputLen: 645, OutputLen: 15,
			DType: "float32", KVDType: "f32", NoFlash: true}, 232.4 + 421.0, 0.05},
		{"llama.cpp, a long prompt in 8192",
			Setup{Engine: LlamaCPP, Context: 8192, InputLen: 645, OutputLen: 15, DType: "float32", KVDType: "f32",
				NoFlash: true}, 502.3 + 421.0, 0.05},
		{"Ollama, 2048", Setup{Engine: Ollama, Context: 2048, InputLen: 5, OutputLen: 15, DType: "float32"},
			190.1 + 421.0, 0.1},
		{"Ollama, 8192", Setup{Engine: Ollama, Context: 8192, InputLen: 5, OutputLen: 15, DType: "float32"},
			324.3 + 421.0, 0.1},
		{"WebLLM, 2048", Setup{Engine: WebLLM, Context: 2048, InputLen: 5, OutputLen: 7, DType: "float32"}, 943.1, 0.1},
		{"WebLLM, 8192", Setup{Engine: WebLLM, Context: 8192, InputLen: 5, OutputLen: 7, DType: "float32"}, 1182, 0.1},
	} {
		inc := of(t, smollm, c.s).Component(Increase)
		if got := float64(inc.Best) / mib; math.Abs(got-c.mib) > c.within*c.mib {
			t.Errorf("%s: %.1f MiB is predicted, %.1f was measured", c.name, got, c.mib)
		}
		if float64(inc.Low) > c.mib*mib || float64(inc.High) < c.mib*mib {
			t.Errorf("%s: %.1f MiB is not from %.1f to %.1f", c.name, c.mib, float64(inc.Low)/mib,
				float64(inc.High)/mib)
		}
	}
}

// Nothing is said where nothing is known: of memory on a GPU, of engines whose processes grow as they like.
func TestNoIncreaseIsMadeUp(t *testing.T) {
	for name, s := range map[string]Setup{"layers on a GPU": {Engine: LlamaCPP, GPULayers: 3},
		"an adapter that is a GPU": {Engine: WebLLM, OnGPU: true},
		"vLLM":                     {Engine: VLLM}, "transformers": {Engine: Transformers}} {
		s.Context = 512
		if c := of(t, config(t, "smollm2-135m"), s).Component(Increase); c.Name != "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestStatesOfMmapAndRepackingAreNamed(t *testing.T) {
	m := config(t, "smollm2-135m")
	m.Stored, m.Matrices = map[string]int64{"q4_0": 80 * mib, "f32": mib},
		map[string]int64{"q4_0": 57 * mib, "f32": mib}
	for _, c := range []struct {
		s                  Setup
		weights            int64
		mmap, repacks, say string
	}{
		{Setup{Repacks: []string{"q4_0"}}, 138, "on", "on",
			"mmap on: the whole file is mapped and read at the load; repacking on: 57.00 MiB of q4_0 laid out anew, beside"},
		{Setup{Repacks: []string{"q4_0"}, NoMmap: true}, 81, "off", "on",
			"mmap off: the weights are read into memory; repacking on: 57.00 MiB"},
		{Setup{Repacks: []string{"q4_k"}}, 81, "on", "off", "repacking off"},
		{Setup{}, 81, "on", "off", "repacking off"},
	} {
		c.s.Engine, c.s.Context = LlamaCPP, 512
		e := of(t, m, c.s)
		set := e.Settings()
		if got := e.Component(Weights).Best; got != c.weights*mib || set["mmap"] != c.mmap ||
			set["repacking"] != c.repacks {
			t.Errorf("%+v: %d bytes of weights, %v", c.s, got, set)
		}
		if text := e.Component(Increase).Method; !strings.Contains(text, c.say) {
			t.Errorf("%+v: %q doesn't say %q", c.s, text, c.say)
		}
	}
}

func TestMatricesThatMayBeLaidOutAnew(t *testing.T) {
	tensor := func(name string, size int64, shape ...uint64) gguf.Tensor {
		return gguf.Tensor{Name: name, Size: size, Shape: shape, Type: gguf.Q4_0}
	}
	layer := []gguf.Tensor{tensor("blk.0.attn_q.weight", 1, 64, 64), tensor("blk.0.attn_norm.weight", 2, 64),
		tensor("blk.0.odd.weight", 4, 64, 12),
		tensor("blk.0.ffn_up_exps.weight", 8, 64, 64, 4), tensor("blk.0.conv.weight", 16, 64, 64, 4),
		tensor("token_embd.weight", 32, 64, 512)}
	if got := matrices(layer); !maps.Equal(got, map[string]int64{"q4_0": 1 + 8 + 32}) {
		t.Errorf("an embedding that is the head: %v", got)
	}
	if got := matrices(append(slices.Clone(layer), tensor("output.weight", 64, 64, 512))); !maps.Equal(
		got, map[string]int64{"q4_0": 1 + 8 + 64}) {
		t.Errorf("a head of its own: %v", got)
	}
}

// What an engine says of itself, taken and said again, is the same under the same names.
func TestSettingsAreThoseOfPolicies(t *testing.T) {
	for _, given := range []map[string]string{
		{"context": "1024", "kv_dtype": "f32", "flash_attention": "off", "mmap": "on", "gpu_layers": "0",
			"ubatch": "128", "weights_dtype": "f32", "repacking": "off", "activations_dtype": "f32"},
		{"context": "512", "kv_dtype": "K q8_0, V f16", "flash_attention": "on", "mmap": "off", "gpu_layers": "3",
			"ubatch": "512", "weights_dtype": "f32", "repacking": "off", "activations_dtype": "f32"},
	} {
		s := Setup{Engine: LlamaCPP, DType: "float32"}
		s.Take(given)
		if got := of(t, config(t, "smollm2-135m"), s).Settings(); !maps.Equal(got, given) {
			t.Errorf("took %v and says %v", given, got)
		}
	}
	s := Setup{Engine: LlamaCPP, Context: 64}
	s.Take(map[string]string{"context": "not told", "gpu_layers": "2 of 30", "kv_dtype": "f16", "ubatch": "-5",
		"prefill_chunk": "99999999999999999999"})
	if s.Context != 64 || s.GPULayers != 2 || s.UBatch != 0 || s.PrefillChunk != 0 {
		t.Errorf("%+v", s)
	}
}

func TestHalvesOfACacheMayDiffer(t *testing.T) {
	m := config(t, "smollm2-135m")
	both := of(t, m, Setup{Engine: LlamaCPP, Context: 1024, KVDType: "q8_0", ValueType: "f16"}).Component(
		KVReserved).Best
	f16 := of(t, m, Setup{Engine: LlamaCPP, Context: 1024}).Component(KVReserved).Best
	q8 := of(t, m, Setup{Engine: LlamaCPP, Context: 1024, KVDType: "q8_0"}).Component(KVReserved).Best
	if both != (f16+q8)/2 {
		t.Errorf("%d, %d and %d", q8, both, f16)
	}
	if _, err := Of(m, Setup{Engine: LlamaCPP, KVDType: "f16", ValueType: "q9"}); err == nil ||
		!strings.Contains(err.Error(), "q9") {
		t.Errorf("%v", err)
	}
}
