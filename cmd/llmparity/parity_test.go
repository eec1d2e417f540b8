package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
)

// Every engine says what the reference says, id by id, on every prompt of the tiny model: the one promise that all comparing
// rests on.
func TestEnginesGiveTheReferencesTokens(t *testing.T) {
	const n = 64
	cases := enginetest.Tiny(t, n)
	if len(cases) < 8 {
		t.Fatalf("%d prompts, at least 8 are wanted", len(cases))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, e := range (&engineFlags{adapter: "auto", threads: 1}).all() {
		t.Run(e.Name(), func(t *testing.T) {
			session := load(t, ctx, e, cases[0].Model)
			for _, c := range cases {
				var ids []int
				usage, err := session.Generate(ctx, engine.Request{Prompt: c.Prompt, MaxTokens: n, IgnoreEOS: true}, func(k record.Token) { ids = append(ids, k.ID) })
				if err != nil {
					t.Fatalf("%.40q: %v", c.Prompt, err)
				}
				if !slices.Equal(usage.PromptIDs, c.PromptIDs) {
					t.Errorf("%.40q: prompt ids %v, the reference has %v", c.Prompt, usage.PromptIDs, c.PromptIDs)
				}
				if !slices.Equal(ids, c.Expected) {
					t.Errorf("%.40q: %v, the reference has %v", c.Prompt, ids, c.Expected)
				}
			}
		})
	}
}

func load(t *testing.T, ctx context.Context, e engine.Engine, m engine.Model) engine.Session {
	t.Helper()
	if err := e.Check(ctx, m); err != nil {
		t.Fatal(err)
	}
	if p, ok := e.(engine.Preparer); ok {
		if err := p.Prepare(ctx, m, func(s string) { t.Log(s) }); err != nil {
			t.Fatal(err)
		}
	}
	session, err := e.Open(ctx, &enginetest.Probe{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := session.Load(ctx, m); err != nil {
		t.Fatal(err)
	}
	return session
}
