package estimate

import (
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/record"
)

func TestFitAnswersInALine(t *testing.T) {
	smollm := config(t, "smollm2-135m")
	stated := modelsize.FromStatement("X-q4f16_1",
		modelsize.Stated{By: "a list", Bytes: 800 * mib, Context: 4096, F16: true, Buffer: 200 * mib})
	ram := func(n int64) map[string]Room { return map[string]Room{RAM: {n, ""}} }
	plain := Setup{Engine: LlamaCPP, Context: 512}
	for name, c := range map[string]struct {
		m       Model
		s       Setup
		rooms   map[string]Room
		refused string
		want    string
	}{
		"enough": {smollm, plain, ram(8 * gib), "", "fits: needs about 316.6 MiB, 8 GiB available"},
		"too long": {smollm, Setup{Engine: LlamaCPP, Context: 32768}, ram(8 * gib), "",
			"fits: needs about 1 GiB, 8 GiB available; a run refuses more than the model's maximum of 8192"},
		"not enough":     {smollm, plain, ram(256 * mib), "", "does not fit: needs about 316.6 MiB, 256 MiB available"},
		"refused":        {smollm, plain, ram(8 * gib), "needs f16", "cannot run here: needs f16"},
		"unknown memory": {smollm, plain, nil, "", "unknown: needs about 316.6 MiB; free memory is unknown, set --ram-gb"},
		"unknown GPU": {smollm, Setup{Engine: LlamaCPP,
			GPULayers: 15}, ram(8 * gib), "", "unknown: needs about"},
		"stated": {stated, Setup{OnGPU: true}, map[string]Room{VRAM: {gib, ""}, RAM: {8 * gib, ""}}, "",
			"fits: needs about 800 MiB, 1 GiB of GPU memory available"},
		"stated buffer": {stated, Setup{OnGPU: true},
			map[string]Room{VRAM: {4 * gib, ""}, RAM: {8 * gib, ""}, Buffer: {128 * mib, ""}}, "",
			"does not fit: the model, as a list states, needs a WebGPU buffer of 200 MiB; the limit is 128 MiB"},
		"stated for fewer tokens": {stated, Setup{OnGPU: true, Context: 8192},
			map[string]Room{VRAM: {4 * gib, ""}, RAM: {8 * gib, ""}}, "",
			"unknown: a list has a context of 4096 tokens and states no size for 8192; that needs more than 800 MiB, 4 GiB available"},
	} {
		e := of(t, c.m, c.s)
		if got := e.Fit(e.Risk(c.rooms), c.refused).String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, c := range []struct {
		a, b int64
		want string
	}{
		{9 * gib / 5, 8 * gib, "1.8 GiB/8 GiB"}, {52 * mib, 8 * gib, "52 MiB/8 GiB"},
		{8*gib + 8*mib, 8 * gib, "8.01 GiB/8 GiB"}, {10 * gib, 0, "10 GiB/0 MiB"}, {5 * gib, 5 * gib, "5 GiB/5 GiB"},
	} {
		if a, b := pair(c.a, c.b); a+"/"+b != c.want {
			t.Errorf("%d and %d: %s/%s, want %s", c.a, c.b, a, b, c.want)
		}
	}
}

// In WebLLM, a GGUF has four bytes per value, or two with f16; an MLC package keeps its format.
func TestWebLLMDequantisesGGUFs(t *testing.T) {
	m := config(t, "llama-3.1-8b")
	file := m
	file.Source, file.DType, file.Stored = "gguf", "q4_0", map[string]int64{"q4_0": m.Parameters * 18 / 32}
	for name, c := range map[string]struct {
		m       Model
		s       Setup
		bytes   int64
		weights string
		compute string
		label   string
	}{
		"a file":            {file, Setup{}, 4 * m.Parameters, "f32", "f32", calculated},
		"a file, in halves": {file, Setup{DType: "f16"}, 2 * m.Parameters, "f16", "f16", calculated},
		"a name": {m, Setup{Quantization: "q4_0",
			Own: []any{MLCSettings{Weights: "f32"}}}, 4 * m.Parameters, "f32", "f32", calculated},
		"a mixture's name": {m, Setup{Quantization: "Q4_K_M", DType: "float16",
			Own: []any{MLCSettings{Weights: "f16"}}}, 2 * m.Parameters,
			"f16", "f16", calculated},
		"a package": {m, Setup{Quantization: "q4f16_1"}, m.Parameters * 9 / 16, "q4f16_1", "f16",
			calculated},
		"a package of wide scales": {m, Setup{Quantization: "q4f32_1"}, m.Parameters * 10 / 16, "q4f32_1", "f32",
			calculated},
		"a package of the same file": {file, Setup{Quantization: "q4f32_1"}, m.Parameters * 10 / 16, "q4f32_1", "f32",
			calculated},
	} {
		c.s.Engine, c.s.Context = WebLLM, 512
		e := of(t, c.m, c.s)
		w := e.Component(Weights)
		if d := w.Best - c.bytes; max(d, -d) > c.bytes/500 || e.DTypes.Weights != c.weights ||
			e.DTypes.Activations != c.compute || w.Label != c.label {
			t.Errorf("%s: %d bytes (%s), %+v, want %d", name, w.Best, w.Label, e.DTypes, c.bytes)
		}
		if e.NeedsF16() != (c.compute == "f16") {
			t.Errorf("%s: needs f16: %v", name, e.NeedsF16())
		}
	}
	file.Quantized = nil
	if w := of(t, file, Setup{Engine: Ollama, Context: 512}).Component(Weights); w.Label != fileSize {
		t.Errorf("as stored: %+v", w)
	}
}

// MLC stores some float32 weights as bfloat16; in memory they are float32.
func TestFromListsCountsBytesInMemory(t *testing.T) {
	config := `{"model_type":"llama","quantization":"q0f32","context_window_size":512,"vocab_size":100,"prefill_chunk_size":64,` +
		`"model_config":{"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"tie_word_embeddings":true}}`
	weights := `{"records":[{"dataPath":"params_shard_0.bin","format":"raw-shard","nbytes":12832,"md5sum":"0123456789abcdef0123456789abcdef","records":[` +
		`{"name":"a","shape":[100,64],"dtype":"float32","format":"f32-to-bf16","nbytes":12800,"byteOffset":0},` +
		`{"name":"b","shape":[16],"dtype":"float32","format":"f32-to-bf16","nbytes":32,"byteOffset":12800}]}]}`
	m, err := modelsize.FromLists("X", []byte(config), []byte(weights))
	check.Err(t, err)
	e := of(t, m, Setup{})
	if w := e.Component(Weights); w.Best != 4*6416 || w.Label != fileSize || m.Largest != 4*6400 ||
		e.Setup.Context != 512 {
		t.Errorf("%+v, the largest tensor %d, %+v", w, m.Largest, e.Setup)
	}
	if kv := e.Component(KVReserved).Best; kv != 2*2*2*16*4*16*33 {
		t.Errorf("%d bytes of KV cache", kv)
	}
	for _, bad := range []string{"{", `{"model_type":"llama"}`} {
		if _, err := modelsize.FromLists("X", []byte(bad), []byte(weights)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// The catalogue states 719.38 MB for SmolLM2 in q0f32; the formulas agree.
func TestCatalogueAgreesWithFormulas(t *testing.T) {
	e := of(t, config(t, "smollm2-135m"),
		Setup{Engine: WebLLM, Context: 4096, Quantization: "q0f32", Own: []any{MLCSettings{PrefillChunk: 1024}}})
	got := e.Component(Weights).Best + e.Component(KVReserved).Best + e.Component(Activation).Best
	if off := float64(got)/(719.38*mib) - 1; off > 0.05 || off < -0.05 {
		t.Errorf("%.1f MiB", float64(got)/mib)
	}
}

func TestLayersIn(t *testing.T) {
	e := of(t, config(t, "llama-3.1-8b"), Setup{Engine: Ollama, OnGPU: true, Quantization: "q4_0", Context: 4096})
	last := -1
	for _, free := range []int64{0, gib, 2 * gib, 4 * gib, 8 * gib, 80 * gib} {
		n := e.LayersIn(free)
		if n < last || n > 32 {
			t.Errorf("%d layers in %d bytes, %d in less", n, free, last)
		}
		s := e.Setup
		if s.GPULayers = n; n > 0 && of(t, e.Model, s).vram().level(free) != record.RiskLow {
			t.Errorf("%d layers are tight in %d bytes", n, free)
		}
		last = n
	}
	if e.LayersIn(0) != 0 || last != 32 {
		t.Errorf("%d layers in 80 GiB", last)
	}
}
