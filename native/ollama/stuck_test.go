package ollama

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
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
		t.Fatalf("given up: %v", err)
	}
}

// Of fifty generations that are given up one or two take Ollama's turn with them.
func TestAbandonedGenerationBlocksNoOther(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	s.stuck = time.Second
	for range 20 {
		giveUp(t, s, c.Prompt)
		if u := say(t, s, c.Prompt, 8); u.Text != c.Text || u.CachedTokens != 0 {
			t.Fatalf("%q with %d tokens from the cache, want %q with none", u.Text, u.CachedTokens, c.Text)
		}
	}
	t.Logf("%d of 20 times the runner had to be started anew", len(warned(p, "runner-renewed")))
}

// Where there are several turns, a generation that was given up takes one of them, and the others hide it.
func TestSlotsAnswerAfterAbandonedGeneration(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := opened(t, newEngine(t, func(o *Config) { o.Slots = 3 }))
	load(t, s, c.Model)
	for range 20 {
		giveUp(t, s, c.Prompt)
		say(t, s, c.Prompt, 8)
		if together, err := s.together(t.Context(), now(s)); err != nil || !together {
			t.Fatalf("three generations at once are answered together: %v, %v", together, err)
		}
	}
	t.Logf("%d of 20 times the runner had to be started anew", len(warned(p, "runner-renewed")))
}

// While others go on, nothing is taken from them to find out; that their times may have a wait in them is said.
func TestAbandonedGenerationBesideOthers(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := opened(t, newEngine(t, func(o *Config) { o.Slots = 3 }))
	load(t, s, c.Model)
	_, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 500}, func(tok record.Token) {
		if tok.Index == 2 { // what follows waits in its connection
			giveUp(t, s, c.Prompt)
			say(t, s, c.Prompt, 8)
			say(t, s, c.Prompt, 8)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if said := warned(p, "slot-unsure"); len(said) != 1 || !now(s).givenUp.Load() {
		t.Errorf("said %q; it is still to be looked into: %v", said, now(s).givenUp.Load())
	}
	if say(t, s, c.Prompt, 8); now(s).givenUp.Load() {
		t.Error("nobody looked whether a slot is lost once nothing else went on")
	}
}

func TestSilentRunnerIsRestarted(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	before := sampled(p, roleRunner)
	s.stuck = 1 // nothing answers as fast
	giveUp(t, s, c.Prompt)
	if u := say(t, s, c.Prompt, 8); u.Text != c.Text || u.CachedTokens != 0 {
		t.Errorf("%q with %d tokens from the cache, want %q with none", u.Text, u.CachedTokens, c.Text)
	}
	after := sampled(p, roleRunner)
	if len(before) != 1 || len(after) != 1 || before[0] == after[0] || int(now(s).runner.Load()) != after[0] {
		t.Errorf("runner %v, then %v; %d is taken for it", before, after, now(s).runner.Load())
	}
	say(t, s, c.Prompt, 8)
	if renewed, restarted := warned(p, "runner-renewed"), warned(p, "runner-restarted"); len(renewed) != 1 ||
		len(restarted) != 0 {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

// A model that was in another's server before must not be left with its turn taken.
func TestRunningServerAnswersAfterwards(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	theirs, _ := loadedSession(t, c.Model)
	for _, stuck := range []time.Duration{10 * time.Second, 1} {
		s, p := opened(t, newEngine(t, func(c *Config) { c.URL = theirs.client.Base }))
		load(t, s, engine.Model{Model: record.Model{Name: now(theirs).name, Format: record.Served, Context: 1024}})
		giveUp(t, s, c.Prompt)
		s.stuck = stuck
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		held, err := theirs.client.loaded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if renewed := warned(p, "runner-renewed"); len(held)+len(renewed) != 1 || len(warned(p, "left-behind")) != 0 {
			t.Errorf("an answer within %v: held %v, warnings %q", stuck, held, p.Warnings())
		}
		if u := say(t, theirs, c.Prompt, 8); u.Text != c.Text {
			t.Errorf("%q, want %q", u.Text, c.Text)
		}
	}
}

// Whether others' generations take its slots is not known: nothing of theirs is ended to find out.
func TestSlotsOfRunningServerAreLeftAlone(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	theirs, _ := opened(t, newEngine(t, func(o *Config) { o.Slots = 2 }))
	load(t, theirs, c.Model)
	s, p := opened(t, newEngine(t, func(o *Config) { o.URL, o.Slots = theirs.client.Base, 2 }))
	load(t, s, engine.Model{Model: record.Model{Name: now(theirs).name, Format: record.Served, Context: 1024}})
	for range 2 {
		giveUp(t, s, c.Prompt)
		say(t, s, c.Prompt, 8)
	}
	if said := warned(p, "slot-unsure"); len(said) != 1 || !strings.Contains(said[0], "ran already") {
		t.Errorf("said %q", said)
	}
}

func TestOverlapIsByTheServersClock(t *testing.T) {
	made := func(first, last string) *generation {
		return &generation{made: [2]string{"2026-01-02T03:04:" + first + "Z", "2026-01-02T03:04:" + last + "Z"}}
	}
	for _, c := range []struct {
		texts []*generation
		want  bool
	}{
		{[]*generation{made("01.000000001", "02"), made("01.5", "03"), made("01.999999999", "04")}, true},
		// the third waited for the first
		{[]*generation{made("01", "02"), made("01.5", "03"), made("02.000000001", "04")}, false},
		{[]*generation{made("01", "02"), {}}, false},
	} {
		if got := overlap(c.texts); got != c.want {
			t.Errorf("%v overlap: %v", c.texts, got)
		}
	}
}
