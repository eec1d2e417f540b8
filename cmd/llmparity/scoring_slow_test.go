//go:build slow

package main

import (
	"context"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/model"
	"llmparity/internal/record"
)

// SmolLM2 in Q4_1 and dequantised to float32: outputs differ only at near ties, and scores of the same text are close.
// The bounds are several times the observed values: 0.15 at a divergence, 23 of 24 places.
func TestQuantisedWeightsPartAtNearTies(t *testing.T) {
	const n, near, share = 24, 0.6, 0.8
	path, err := model.Path(model.SmolLM2)
	check(t, err)
	m, err := model.Open(path, 256)
	check(t, err)
	prompts := []string{"Why is the sky blue? In short,", "The capital of France is"}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	web, llama := bothEngines()[0], bothEngines()[1]
	native := load(t, ctx, llama, m)
	var texts []answer
	for _, p := range prompts {
		texts = append(texts, ask(t, ctx, native, p, n))
	}
	browser := load(t, ctx, web, m)
	for i, p := range prompts {
		score := func(s engine.Session) (out []record.Score) {
			f := engine.Forced{Prompt: texts[i].promptIDs, IDs: texts[i].ids, Top: 20}
			check(t, s.(engine.Scorer).Score(ctx, f, func(sc record.Score) { out = append(out, sc) }))
			return out
		}
		free, a, b := ask(t, ctx, browser, p, n), score(browser), score(native)
		agreed := 0
		for at := range a {
			if a[at].Chosen() == b[at].Chosen() {
				agreed++
			}
		}
		t.Logf("%q: forced, they agree at %d of %d places", p, agreed, n)
		if float64(agreed) < share*n {
			t.Errorf("%q: on the same text they agree at %d of %d places", p, agreed, n)
		}
		at := firstDifference(free.ids, texts[i].ids)
		if at < 0 {
			continue
		}
		t.Logf("%q: they part at token %d, where the top two are %.3f and %.3f apart", p, at+1, a[at].Margin(),
			b[at].Margin())
		if a[at].Margin() > near || b[at].Margin() > near {
			t.Errorf("%q: they part at token %d, where the top two are %.3f and %.3f apart", p, at+1, a[at].Margin(),
				b[at].Margin())
		}
		if a[at].Chosen() != free.ids[at] || b[at].Chosen() != texts[i].ids[at] {
			t.Errorf("%q: asked again they would say %d and %d; they said %d and %d", p, a[at].Chosen(), b[at].Chosen(),
				free.ids[at], texts[i].ids[at])
		}
	}
}
