package ollama

import (
	"context"
	"errors"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// giveUp cancels a generation at its third piece.
func giveUp(t *testing.T, s *session, prompt string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.Generate(ctx, engine.Request{Prompt: prompt, MaxTokens: 500}, func(tok record.Token) {
		if tok.Index == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}

// theirModel is the model that another session has loaded.
func theirModel(s *session) models.Model {
	return models.Model{Model: record.Model{Name: now(s).name, Format: record.Served, Context: 1024}}
}

// About one in 30 cancelled generations blocks Ollama's slot.
func TestCancelledGenerationBlocksNoOther(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	s.stuck = time.Second
	for range 20 {
		giveUp(t, s, c.Prompt)
		if u := say(t, s, c.Prompt, 8); u.Text != c.Text || u.CachedTokens != 0 {
			t.Fatalf("%q with %d cached tokens, want %q with none", u.Text, u.CachedTokens, c.Text)
		}
	}
	t.Logf("the runner was restarted %d of 20 times", len(p.Warned("runner-renewed")))
}

// While others are running, no check disturbs them; a warning says that times may include a wait.
func TestCancelledGenerationBesideOthers(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := opened(t, newEngine(t, func(o *Config) { o.Slots = 3 }))
	enginetest.Load(t, s, c.Model)
	_, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 500}, func(tok record.Token) {
		if tok.Index == 2 { // later pieces wait in the connection
			giveUp(t, s, c.Prompt)
			say(t, s, c.Prompt, 8)
			say(t, s, c.Prompt, 8)
		}
	})
	check.Err(t, err)
	if said := p.Warned("slot-unsure"); len(said) != 1 || !now(s).givenUp.Load() {
		t.Errorf("warnings %q; check pending: %v", said, now(s).givenUp.Load())
	}
	if say(t, s, c.Prompt, 8); now(s).givenUp.Load() {
		t.Error("no check for a lost slot after the others ended")
	}
}

func TestSilentRunnerIsRestarted(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	before := p.PIDs(roleRunner)
	s.stuck = 1 // ns: any answer is too slow
	giveUp(t, s, c.Prompt)
	if u := say(t, s, c.Prompt, 8); u.Text != c.Text || u.CachedTokens != 0 {
		t.Errorf("%q with %d cached tokens, want %q with none", u.Text, u.CachedTokens, c.Text)
	}
	after := p.PIDs(roleRunner)
	if len(before) != 1 || len(after) != 1 || before[0] == after[0] || int(now(s).runner.Load()) != after[0] {
		t.Errorf("runner %v, then %v; known as %d", before, after, now(s).runner.Load())
	}
	say(t, s, c.Prompt, 8)
	if renewed, restarted := p.Warned("runner-renewed"), p.Warned("runner-restarted"); len(renewed) != 1 ||
		len(restarted) != 0 {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

// A model that was loaded before must not be left with a blocked slot.
func TestRunningServerAnswersAfterwards(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	theirs, _ := loadedSession(t, c.Model)
	for _, stuck := range []time.Duration{10 * time.Second, 1} {
		s, p := opened(t, newEngine(t, func(c *Config) { c.URL = theirs.client.Base }))
		enginetest.Load(t, s, theirModel(theirs))
		giveUp(t, s, c.Prompt)
		s.stuck = stuck
		check.Also(t, s.Close())
		held, err := theirs.client.loaded(t.Context())
		check.Err(t, err)
		if renewed := p.Warned("runner-renewed"); len(held)+len(renewed) != 1 || len(p.Warned("left-behind")) != 0 {
			t.Errorf("limit %v: loaded %v, warnings %q", stuck, held, p.Warnings())
		}
		if u := say(t, theirs, c.Prompt, 8); u.Text != c.Text {
			t.Errorf("%q, want %q", u.Text, c.Text)
		}
	}
}
