package llamacpp

import (
	"os"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/predict/estimate"
	"llmparity/native/logs"
)

// loadedWith returns a session of a server with this configuration.
func loadedWith(t testing.TB, c Config, m models.Model) (*Engine, *session, *enginetest.Probe) {
	t.Helper()
	c.Cache = cache.Dir(os.Getenv)
	l := New(c)
	s, p := opened(t, l)
	enginetest.Load(t, s, m)
	return l, s, p
}

// Each slot has the requested context. The predicted KV cache is what the log says. Its used part covers all slots.
func TestEachSlotHasTheWholeContext(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, c := range []struct{ slots, context int }{{1, 512}, {2, 512}, {3, 300}} {
		m.Context = c.context
		l, s, p := loadedWith(t, Config{Slots: c.slots}, m)
		want := c.context
		if s.context != want || l.Caps().Requests != c.slots {
			t.Errorf("%+v: context %d per slot, %d requests at a time", c, s.context, l.Caps().Requests)
		}
		model, err := models.Sizes(m.Path)
		check.Err(t, err)
		setup := estimate.Setup{Engine: Memory, Context: want, InputLen: 8, OutputLen: 8}
		setup.Take(l.Settings(m))
		e, err := estimate.Of(model, setup)
		check.Err(t, err)
		got := p.Values(t, logs.Method)
		if reserved := e.Component(estimate.KVReserved); float64(reserved.Best) != got["kv_reserved_bytes"] {
			t.Errorf("%+v: predicted KV cache of %d bytes, the log says %.0f", c, reserved.Best,
				got["kv_reserved_bytes"])
		}
		if policy, predicted := p.Engine().Policy["parallel"], e.Settings()["parallel"]; policy != predicted {
			t.Errorf("%+v: %q slots, predicted %q", c, policy, predicted)
		}
		if got["kv_used_bytes"] != 0 {
			t.Errorf("%+v: %.0f bytes used of an empty cache", c, got["kv_used_bytes"])
		}
		if _, err := generate(t, s, engine.Request{Prompt: "The small model answers", MaxTokens: 20,
			IgnoreEOS: true}); err != nil {
			t.Fatal(err)
		}
		// In one slot; the last token is never evaluated.
		g, _ := generate(t, s, engine.Request{Prompt: "The small model answers", MaxTokens: 20, IgnoreEOS: true})
		tokens := float64(g.Prompted() + 19)
		got = p.Values(t, logs.Method)
		if each := float64(e.PerToken); got["kv_used_bytes"] != each*tokens &&
			(c.slots == 1 || got["kv_used_bytes"] != 2*each*tokens) {
			t.Errorf("%+v: %.0f bytes used by %.0f tokens of %.0f bytes", c, got["kv_used_bytes"], tokens,
				each)
		}
		check.Also(t, s.Close())
	}
}

// With a prompt cache, a prompt is computed from where it differs from the one before. The answer is the same.
func TestPromptCache(t *testing.T) {
	m := enginetest.TinyModel(t)
	texts := map[bool]string{}
	for _, keeps := range []bool{false, true} {
		l, s, p := loadedWith(t, Config{PromptCache: keeps}, m)
		if l.Caps().PromptCache != keeps ||
			p.Engine().Policy["prompt_cache"] != map[bool]string{false: "off", true: "on"}[keeps] {
			t.Errorf("prompt cache %v: caps %+v, policy %v", keeps, l.Caps(), p.Engine().Policy)
		}
		said, asked := "", 0
		for turn := range 3 {
			g, err := generate(t, s, engine.Request{Prompt: said + "Tell me more of the small model. ", MaxTokens: 24,
				IgnoreEOS: true})
			check.Err(t, err)
			for _, f := range g.Faults(0) {
				t.Errorf("turn %d: %s", turn+1, f)
			}
			// At least the previous prompt; the answer may be tokenised differently when it is read again.
			switch cached := g.Usage.CachedTokens; {
			case keeps && cached < asked-1, !keeps && cached != 0, cached >= g.Prompted():
				t.Errorf("prompt cache %v, turn %d: %d of %d tokens cached; the previous turn had %d", keeps,
					turn+1, cached, g.Prompted(), asked)
			}
			asked = g.Prompted()
			said += "Tell me more of the small model. " + g.Usage.Text
		}
		texts[keeps] = said
	}
	if texts[false] != texts[true] {
		t.Errorf("with a cache\n%q, without\n%q", texts[true], texts[false])
	}
}
