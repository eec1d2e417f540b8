package estimate_test

import (
	"math"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
)

// A wrong shape, or one of another model, needs less or more than WebLLM states.
func TestShapesNeedWhatWebLLMStates(t *testing.T) {
	text, err := bundle.Catalogue()
	check.Err(t, err)
	all, err := catalogue.Parse(text)
	check.Err(t, err)
	t.Setenv(cache.Variable, t.TempDir())
	f := models.Finder{Say: func(string) {}, Catalogue: func() (catalogue.Catalogue, error) { return all, nil }}
	known := 0
	for _, e := range all.Models {
		of, ok := f.Published(e.ID)
		if !ok {
			continue
		}
		known++
		if of.MaxContext < e.Context() {
			t.Errorf("%s: at most %d tokens, but WebLLM sets %d", e.ID, of.MaxContext, e.Context())
		}
		m, _, err := f.Estimated(t.Context(), e.ID)
		check.Err(t, err)
		got, err := estimate.Of(of, estimate.Setup{Engine: &engine.Memory{Name: "webllm", Runtime: "mlc"},
			Context: e.Context(), OnGPU: true, Quantization: m.DType})
		check.Err(t, err)
		// Some libraries have logits for all of the 1024 tokens that they compute at once.
		least := float64(got.Component(estimate.Weights).Best + got.Component(estimate.KVReserved).Best)
		most := float64(got.Component(estimate.Activation).Best+4*1024*int64(of.Vocab)) + least
		if stated := e.VRAM * record.MiB; stated < 0.87*least || stated > 1.31*most {
			t.Errorf("%s: WebLLM states %.0f MiB; weights and KV cache have %.0f, with workspaces %.0f", e.ID, e.VRAM,
				least/record.MiB, most/record.MiB)
		}
	}
	if known < 130 {
		t.Errorf("%d shapes", known)
	}
	// These packages have a twin that differs only in the context.
	for id, bytes := range map[string]int64{"Llama-3.1-8B-Instruct-q4f32_1-MLC": 4,
		"Phi-3.5-mini-instruct-q4f16_1-MLC": 2, "gemma-2-2b-it-q4f16_1-MLC": 2} {
		long, err := all.Find(id)
		check.Err(t, err)
		short, err := all.Find(id + "-1k")
		check.Err(t, err)
		of, _ := f.Published(id)
		cache := float64(3072*bytes*hfconfig.KVValues(of.Caches)) / record.MiB
		if stated := long.VRAM - short.VRAM; math.Abs(stated-cache) > 0.05*cache {
			t.Errorf("%s: 3072 tokens are %.0f MiB by WebLLM, %.0f by the shape", id, stated, cache)
		}
	}
}
