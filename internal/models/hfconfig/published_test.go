package hfconfig_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/predict/estimate"
	"llmparity/native/huggingface"
	"llmparity/native/llamacpp"
)

const mib = 1 << 20

// figure is a published number.
type figure struct {
	As      string // of weights: a dtype or quantisation; "": the config's
	Value   int64
	Step    int64  // of rounding; 0: exact
	Printed string // what is printed, if Value is calculated from it
	Source  string // repository and path, or paper; "": from memory
}

// is reports whether a number rounds to the figure.
func (f figure) is(got int64) bool { return max(got-f.Value, f.Value-got) <= (f.Step+1)/2 }

// row is a model with a config of the same name in testdata, which has the published fields about sizes.
type row struct {
	Model      string
	Parameters figure
	Weights    figure
	// PerToken is layers × 2 × key-value heads × head size × 2, the bytes of a token in a KV cache of 16-bit values.
	PerToken int64 `json:"kv_bytes_per_token"`
	KV       figure
	Sizes    string // where the fields of the config are published
}

// figures has three lists: models with published figures, quantised files of some of them, and models whose figures are
// from memory.
var figures = sync.OnceValue(func() (all struct{ Published, Quantized, Remembered []row }) {
	text, err := os.ReadFile("testdata/published/figures.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		panic(err)
	}
	return all
})

func TestPublishedFigures(t *testing.T) {
	all := figures()
	for i, r := range slices.Concat(all.Published, all.Remembered) {
		m, err := hfconfig.Open(filepath.Join("testdata", r.Model+".json"))
		check.Err(t, err)
		if got := m.Parameters(); !r.Parameters.is(got) {
			t.Errorf("%s has %d parameters, want %+v", r.Model, got, r.Parameters)
		}
		if got := 2 * hfconfig.KVValues(m.Caches); got != r.PerToken || r.KV.Source != "" && !r.KV.is(got) {
			t.Errorf("a token of %s takes %d bytes, want %d, published %+v", r.Model, got, r.PerToken, r.KV)
		}
		if (r.Parameters.Source != "") != (i < len(all.Published)) {
			t.Errorf("%s: source %q", r.Model, r.Parameters.Source)
		}
	}
	for _, r := range slices.Concat(all.Published, all.Quantized) {
		if got := weights(t, r.Model, r.Weights.As); r.Weights.Source != "" && !r.Weights.is(got) {
			t.Errorf("weights of %s take %d bytes, want %+v", r.Model, got, r.Weights)
		}
	}
}

// weights returns the bytes of a model in a dtype or quantisation; "" is the config's.
func weights(t *testing.T, model, as string) int64 {
	t.Helper()
	setup := estimate.Setup{Engine: llamacpp.Memory, Context: 128} // keeps the weights of a GGUF as stored
	switch as {
	case "float32", "float16", "bfloat16":
		setup.DType = as
	default:
		setup.Quantization = as
	}
	return of(t, model, setup).Component(estimate.Weights).Best
}

func of(t *testing.T, model string, setup estimate.Setup) estimate.Estimate {
	t.Helper()
	m, err := models.Sizes(filepath.Join("testdata", model+".json"))
	check.Err(t, err)
	e, err := estimate.Of(m, setup)
	check.Err(t, err)
	return e
}

// An expanded latent takes heads × (nope + rope + v) values, as in llama.cpp's logs.
func TestExpandedLatents(t *testing.T) {
	for _, c := range []struct {
		model  string
		tokens int
		bytes  int64
		source string
	}{
		{"deepseek-v3", 2048, 9760 * mib, "ik_llama.cpp, issue 271, DeepSeek R1"},
		{"deepseek-v2-lite", 512, 135 * mib, "ik_llama.cpp, issue 230, DeepSeek-Coder-V2-Lite"},
	} {
		e := of(t, c.model, estimate.Setup{Engine: huggingface.Memory, Context: c.tokens, KVDType: "f16"})
		if got := e.Component(estimate.KVUsed).Best; got != c.bytes {
			t.Errorf("%d tokens of %s take %d bytes, %d are published (%s)", c.tokens, c.model, got, c.bytes, c.source)
		}
	}
}

// The published numbers are rounded.
func TestActiveParameters(t *testing.T) {
	for _, p := range []struct {
		model          string
		billions, half float64 // at the precision of
		source         string
	}{
		{"mixtral-8x7b", 12.9, 0.05, "arXiv 2401.04088: 13B; Mistral's announcement: 12.9B"},
		{"qwen1.5-moe-a2.7b", 2.7, 0.05, "its card: 2.7B"},
		{"qwen3-30b-a3b", 3.3, 0.06, "its card: 3.3B"},
		{"phi-3.5-moe", 6.6, 0.05, "arXiv 2404.14219: 6.6B"},
		{"deepseek-v3", 37, 0.6, "deepseek-ai/DeepSeek-V3, README.md: 37B; README_WEIGHTS.md: 36.7B"},
		{"gpt-oss-20b", 3.6, 0.6, "arXiv 2508.10925: 3.61B, the embedding not counted"},
	} {
		m, err := hfconfig.Open(filepath.Join("testdata", p.model+".json"))
		check.Err(t, err)
		if got := float64(m.ActiveParameters()) / 1e9; got < p.billions-p.half || got > p.billions+p.half {
			t.Errorf("a token passes %.2f billion parameters of %s, %g are published (%s)", got, p.model, p.billions,
				p.source)
		}
	}
}

func TestWindows(t *testing.T) {
	for model, want := range map[string]map[int]int{ // layers by window
		"mistral-7b": {4096: 32}, "mixtral-8x7b": {0: 32}, "gemma-2-2b": {4096: 13, 0: 13},
		"gemma-3-1b": {512: 22, 0: 4},
		"qwen2.5-7b": {0: 28}, "gpt-oss-20b": {128: 12, 0: 12}, "phi-3-mini": {2047: 32}, "llama-2-7b": {0: 32},
		"starcoder2-3b": {4096: 30},
	} {
		m, err := hfconfig.Open(filepath.Join("testdata", model+".json"))
		check.Err(t, err)
		got := map[int]int{}
		for _, c := range m.Caches {
			got[c.Window] += c.Layers
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s has layers by window %v, want %v", model, got, want)
		}
	}
}
