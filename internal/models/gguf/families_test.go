package gguf_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

// family returns an altered random model.
func family(t *testing.T, spec tiny.Spec, changes map[string]any, without string, more ...gguf.Weights) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, tiny.WriteRandom(&b, spec))
	return altered(t, b.Bytes(), changes, without, more...)
}

var (
	qwen2  = tiny.Spec{Architecture: gguf.Qwen2}
	qwen3  = tiny.Spec{Architecture: gguf.Qwen3}
	gemma2 = tiny.Spec{Architecture: gguf.Gemma2, Layers: 4, Window: 24, AttentionCap: 5, OutputCap: 7}
	gemma3 = tiny.Spec{Architecture: gguf.Gemma3, Layers: 8, Window: 24, RopeBase: 1e6}
	phi3   = tiny.Spec{Architecture: gguf.Phi3, RotaryDim: 24, RopeScaling: tiny.Long, RopeContext: 64}
)

func TestWindowsByLayer(t *testing.T) {
	for name, c := range map[string]struct {
		file   *gguf.File
		window int
		base   float64
		layers []int
	}{
		"gemma2": {family(t, gemma2, nil, ""), 24, 0, []int{0, 2}},
		"gemma2, its default": {family(t, tiny.Spec{Architecture: gguf.Gemma2, Context: 8192}, nil, ""), 4096, 0,
			[]int{0}},
		"gemma2, a default as long as the context": {family(t, tiny.Spec{Architecture: gguf.Gemma2, Context: 4096}, nil,
			""), 0, 0, []int{0}},
		"gemma2, pattern": {family(t, gemma2, map[string]any{"gemma2.attention.sliding_window_pattern": uint32(3)}, ""),
			24, 0, []int{0, 1, 3}},
		"gemma3": {family(t, gemma3, nil, ""), 24, 10000, []int{0, 1, 2, 3, 4, 6, 7}},
		"gemma3, list": {family(t, gemma3, map[string]any{"gemma3.attention.sliding_window_pattern": []bool{true, false,
			false, true, false, false, false, true}, "gemma3.rope.freq_base_swa": float32(5000)}, ""), 24, 5000,
			[]int{0, 3, 7}},
		"gemma3, the window longer than the context": {family(t, gemma3,
			map[string]any{"gemma3.attention.sliding_window": uint32(4096)}, ""), 0, 10000, []int{0, 1, 2, 3, 4, 6, 7}},
		"gemma3, none": {family(t, tiny.Spec{Architecture: gguf.Gemma3}, nil, ""), 0, 0, nil},
		"gemma3, none by pattern": {family(t, gemma3,
			map[string]any{"gemma3.attention.sliding_window_pattern": uint32(1)}, ""), 0, 0, []int{}},
		"phi3": {family(t, tiny.Spec{Architecture: gguf.Phi3, Window: 24}, nil, ""), 24, 0, nil},
	} {
		a, err := c.file.Architecture()
		if err != nil || a.SlidingWindow != c.window || a.LocalBase != c.base ||
			!reflect.DeepEqual(a.LocalLayers, c.layers) {
			t.Errorf("%s: %v: window %d, base %g, layers %v, want %+v", name, err, a.SlidingWindow, a.LocalBase,
				a.LocalLayers, c)
		}
	}
}

func TestCapsAndScales(t *testing.T) {
	for name, c := range map[string]struct {
		file              *gguf.File
		scores, logits    float64
		scalar            int
		embeddings        float64
		qk, post, gelu    bool
		fusedQKV, fusedUp bool
	}{
		"qwen3": {family(t, qwen3, nil, ""), 0, 0, 32, 0, true, false, false, false,
			false},
		"gemma2": {family(t, gemma2, nil, ""), 5, 7, 32, math.Sqrt(128), false, true, true, false, false},
		"gemma2, its defaults": {family(t, gemma2, map[string]any{"gemma2.attn_logit_softcapping": nil,
			"gemma2.final_logit_softcapping": nil}, ""), 50, 30, 32, math.Sqrt(128), false, true, true, false, false},
		"gemma2 of 46 layers": {family(t, tiny.Spec{Architecture: gguf.Gemma2, Layers: 46, HeadDim: 64, Heads: 4}, nil,
			""), 0, 0, 32, math.Sqrt(128), false, true, true, false, false},
		"gemma3": {family(t, gemma3, nil, ""), 0, 0, 32, math.Sqrt(128), true, true, true, false, false},
		"phi3":   {family(t, phi3, nil, ""), 0, 0, 32, 0, false, false, false, true, true},
	} {
		a, err := c.file.Architecture()
		has := a.Traits()
		got := []any{a.AttentionCap, a.OutputCap, a.QueryScalar(), a.EmbeddingScale(), has.QKNorm, has.PostNorms,
			has.GELU, a.FusedQKV, a.FusedGate}
		want := []any{c.scores, c.logits, c.scalar, c.embeddings, c.qk, c.post, c.gelu, c.fusedQKV, c.fusedUp}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v: got %v, want %v", name, err, got, want)
		}
	}
}

func TestQwen2(t *testing.T) {
	a, err := family(t, qwen2, nil, "").Architecture()
	if err != nil || !a.AttentionBias || a.Traits().Interleaved {
		t.Errorf("%+v, %v", a, err)
	}
}

// The factors depend on the context that an engine is started with.
func TestLongRope(t *testing.T) {
	a, err := family(t, phi3, nil, "").Architecture()
	check.Err(t, err)
	if a.RotaryDim != 24 || a.Long == nil {
		t.Fatalf("rotated %d, %+v", a.RotaryDim, a.Long)
	}
	for context, last := range map[int]float64{32: 1.5, 64: 1.5, 65: 8, 1024: 8} {
		factors, magnitude := a.Factors(context)
		if want := math.Sqrt(1 + math.Log(8)/math.Log(64)); len(factors) != 12 || factors[0] != 1 ||
			factors[11] != last || math.Abs(magnitude-want) > 1e-6 {
			t.Errorf("context %d: %v, magnitude %g, want %g", context, factors, magnitude, want)
		}
	}
}

func TestFamiliesRefuse(t *testing.T) {
	for _, c := range []struct {
		says, key string
		value     any
		spec      tiny.Spec
		without   string
		with      []gguf.Weights
		kind      fault.Kind
	}{
		{"sliding windows are not supported in qwen3", "qwen3.attention.sliding_window", uint32(24), qwen3, "", nil,
			fault.UnknownArch},
		{"tensor blk.0.attn_q.bias of shape [128] is missing", "", nil, qwen2, "blk.0.attn_q.bias", nil,
			fault.BadModel},
		{"sliding windows are not supported in qwen2", "qwen2.attention.sliding_window", uint32(24), qwen2, "", nil,
			fault.UnknownArch},
		{"is string yarn", "qwen2.rope.scaling.type", "yarn", qwen2, "", nil, fault.UnknownArch},
		{"is float32 30", "qwen3.final_logit_softcapping", float32(30), qwen3, "", nil, fault.UnknownArch},
		{"is 16", "qwen3.rope.dimension_count", uint32(16), qwen3, "", nil, fault.UnknownArch},
		{"does not belong to a plain qwen3 model", "", nil, qwen3, "",
			[]gguf.Weights{one("blk.0.ffn_gate_inp.weight")}, fault.UnknownArch},
		{"is float32 10000", "gemma2.rope.freq_base_swa", float32(10000), gemma2, "", nil, fault.UnknownArch},
		{"is float32 50", "gemma3.attn_logit_softcapping", float32(50), gemma3, "", nil, fault.UnknownArch},
		{"is string yarn", "phi3.rope.scaling.type", "yarn", phi3, "", nil, fault.UnknownArch},
		{"does not belong to a plain gemma3 model", "", nil, gemma3, "", []gguf.Weights{one("blk.0.attn_norm.bias")},
			fault.UnknownArch},
		{"tensor blk.1.post_ffw_norm.weight of shape [128] is missing", "", nil, gemma2, "blk.1.post_ffw_norm.weight",
			nil, fault.BadModel},
		{"tensor blk.0.attn_k_norm.weight of shape [32] is missing", "", nil, qwen3, "blk.0.attn_k_norm.weight", nil,
			fault.BadModel},
		{"has 2 values for 8 layers", "gemma3.attention.sliding_window_pattern", []bool{true, false}, gemma3, "", nil,
			fault.BadModel},
		{"only one of the tensors", "", nil, phi3, "rope_factors_long.weight", nil, fault.BadModel},
		{"is -1, want", "gemma2.attn_logit_softcapping", float32(-1), gemma2, "", nil, fault.BadModel},
		{"is 34, want", "phi3.rope.dimension_count", uint32(34), phi3, "", nil, fault.BadModel},
		{"is 0, want", "phi3.rope.scaling.attn_factor", float32(0), phi3, "", nil, fault.BadModel},
	} {
		_, err := family(t, c.spec, map[string]any{c.key: c.value}, c.without, c.with...).Architecture()
		if fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.key) {
			t.Errorf("got %v, want %s %s", err, c.key, c.says)
		}
	}
}
