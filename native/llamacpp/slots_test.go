package llamacpp

import (
	"os"
	"slices"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/estimate"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// loadedWith is a session of a server with a configuration of ours.
func loadedWith(t testing.TB, c Config, m engine.Model) (*Engine, *session, *enginetest.Probe) {
	t.Helper()
	c.Cache = cache.Dir(os.Getenv)
	l := New(c)
	s, p := opened(t, l)
	if err := s.Load(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return l, s, p
}

// logSizes is what the server's log told of its sizes.
func logSizes(t testing.TB, p *enginetest.Probe) map[string]float64 {
	t.Helper()
	for _, s := range p.Attached() {
		if s.Describe().Method != logs.Method {
			continue
		}
		sample := record.NewSample()
		if err := s.Read(t.Context(), &sample); err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, v := range sample.Values {
			values[v.Name] = v.Value
		}
		return values
	}
	t.Fatal("the log's sizes are no source")
	return nil
}

// Each slot has the context that was asked for, what is foretold of the KV cache is what the log says, and what is used
// of it is that of all slots.
func TestEachSlotHasItsContext(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, c := range []struct{ slots, context int }{{1, 512}, {2, 512}, {3, 300}, {4, 0}} {
		m.Context = c.context
		l, s, p := loadedWith(t, Config{Slots: c.slots}, m)
		want := c.context
		if want == 0 {
			want = 1024 // the model's own
		}
		if s.context != want || l.Caps().Requests != c.slots {
			t.Errorf("%+v: a slot has a context of %d, and %d go on at a time", c, s.context, l.Caps().Requests)
		}
		model, err := estimate.Open(m.Path)
		if err != nil {
			t.Fatal(err)
		}
		setup := estimate.Setup{Engine: Memory, Context: want, InputLen: 8, OutputLen: 8}
		setup.Take(l.Settings(m))
		e, err := estimate.Of(model, setup)
		if err != nil {
			t.Fatal(err)
		}
		got := logSizes(t, p)
		if reserved := e.Component(estimate.KVReserved); float64(reserved.Best) != got["kv_reserved_bytes"] {
			t.Errorf("%+v: a KV cache of %d bytes is foretold, and the log says %.0f", c, reserved.Best,
				got["kv_reserved_bytes"])
		}
		if policy, predicted := p.Engine().Policy["parallel"], e.Settings()["parallel"]; policy != predicted {
			t.Errorf("%+v: slots are %q, and foretold %q", c, policy, predicted)
		}
		if got["kv_used_bytes"] != 0 {
			t.Errorf("%+v: %.0f bytes are in use of a cache in which nothing is", c, got["kv_used_bytes"])
		}
		if _, err := generate(t, s, engine.Request{Prompt: "The small model answers", MaxTokens: 20,
			IgnoreEOS: true}); err != nil {
			t.Fatal(err)
		}
		// One slot's share: the last token is never looked at again.
		g, _ := generate(t, s, engine.Request{Prompt: "The small model answers", MaxTokens: 20, IgnoreEOS: true})
		tokens := float64(g.Prompted() + 19)
		got = logSizes(t, p)
		if each := float64(e.PerToken); got["kv_used_bytes"] != each*tokens &&
			(c.slots == 1 || got["kv_used_bytes"] != 2*each*tokens) {
			t.Errorf("%+v: %.0f bytes are in use, of %.0f tokens with %.0f bytes each", c, got["kv_used_bytes"], tokens,
				each)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What was primed is asked as it is otherwise, and forgotten with the next.
func TestPrimedPrompts(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	s, _ := loadedSession(t, c.Model)
	if err := s.Prime(t.Context(), []string{c.Prompt, "another", c.Prompt}); err != nil {
		t.Fatal(err)
	}
	if ids, ok := s.primed.Load(c.Prompt); !ok || !slices.Equal(ids.([]int), c.PromptIDs) {
		t.Errorf("the primed prompt's tokens are %v, want %v", ids, c.PromptIDs)
	}
	for range 2 {
		g, err := generate(t, s, engine.Request{Prompt: c.Prompt, MaxTokens: 16, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.Faults(g) {
			t.Error(f)
		}
	}
	if err := s.Prime(t.Context(), []string{"a third"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.primed.Load(c.Prompt); ok {
		t.Error("what was primed before is not forgotten")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Prime(t.Context(), nil); err == nil {
		t.Error("a session that is closed can be primed")
	}
}

// A prompt that begins as one before it is computed from where they part, if it is allowed to be: what is said is the
// same.
func TestATurnTakesWhatWasSaidFromTheCache(t *testing.T) {
	m := enginetest.TinyModel(t)
	texts := map[bool]string{}
	for _, keeps := range []bool{false, true} {
		l, s, p := loadedWith(t, Config{PromptCache: keeps}, m)
		if l.Caps().PromptCache != keeps ||
			p.Engine().Policy["prompt_cache"] != map[bool]string{false: "off", true: "on"}[keeps] {
			t.Errorf("the cache is kept: %v; caps %+v, policy %v", keeps, l.Caps(), p.Engine().Policy)
		}
		said, asked := "", 0
		for turn := range 3 {
			g, err := generate(t, s, engine.Request{Prompt: said + "Tell me more of the small model. ", MaxTokens: 24,
				IgnoreEOS: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range g.Faults(0) {
				t.Errorf("turn %d: %s", turn+1, f)
			}
			// The prompt before, at least: what was said behind it may fall into other tokens when it is read again.
			switch cached := g.Usage.CachedTokens; {
			case keeps && cached < asked-1, !keeps && cached != 0, cached >= g.Prompted():
				t.Errorf("the cache is kept: %v; turn %d: %d of %d tokens came from it; the turn before had %d", keeps,
					turn+1, cached, g.Prompted(), asked)
			}
			asked = g.Prompted()
			said += "Tell me more of the small model. " + g.Usage.Text
		}
		texts[keeps] = said
	}
	if texts[false] != texts[true] {
		t.Errorf("with a cache it says\n%q, without\n%q", texts[true], texts[false])
	}
}
