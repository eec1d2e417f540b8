package prompts

import (
	"testing"

	"llmparity/internal/bench/traffic"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

func ask(t *testing.T, a *Asker, c record.Cell, q traffic.Request) (string, int) {
	t.Helper()
	r, err := a.Ask(c, q)
	check.Err(t, err)
	return r.Prompt, r.MaxTokens
}

func TestAsk(t *testing.T) {
	tokens := tokenizer.New(vocabularies(t)["tiny"])
	m, err := NewMaker(tokens)
	check.Err(t, err)
	a := &Asker{Maker: m}
	c := record.Cell{Prompt: "the cell's", MaxTokens: 4, Traffic: &record.Traffic{Loop: record.ClosedLoop, Seed: 3}}
	if text, n := ask(t, a, c, traffic.Request{Index: 7}); text != "the cell's" || n != 4 {
		t.Errorf("the cell's own: %q, %d", text, n)
	}

	c.InputTokens = 20
	seen := map[int]bool{}
	for i := range 50 {
		text, n := ask(t, a, c, traffic.Request{Index: i})
		ids := tokens.Prompt(text)
		if len(ids) != 20 || n != 4 || seen[ids[0]] {
			t.Errorf("request %d: %d tokens, %d, begins as another: %v", i, len(ids), n, seen[ids[0]])
		}
		seen[ids[0]] = true
		if again, _ := ask(t, a, c, traffic.Request{Index: i}); again != text {
			t.Errorf("request %d asks something else the second time", i)
		}
	}

	c.Traffic = &record.Traffic{Mix: []record.Kind{{Name: "short", InputTokens: 5, MaxTokens: 2},
		{Name: "given", Prompt: "a text", MaxTokens: 3}}}
	if text, n := ask(t, a, c, traffic.Request{}); len(tokens.Prompt(text)) != 5 || n != 2 {
		t.Errorf("a short one: %q, %d", text, n)
	}
	if text, n := ask(t, a, c, traffic.Request{Kind: 1}); text != "a text" || n != 3 {
		t.Errorf("one that is given: %q, %d", text, n)
	}

	c.Traffic = &record.Traffic{Arrivals: record.TraceArrivals,
		Trace: []record.Arrival{{InputTokens: 3, MaxTokens: 1}, {At: 1, InputTokens: 9, MaxTokens: 6}}}
	if text, n := ask(t, a, c, traffic.Request{Index: 1, Conversation: 1}); len(tokens.Prompt(text)) != 9 || n != 6 {
		t.Errorf("of a trace: %q, %d", text, n)
	}

	c.Traffic = &record.Traffic{Turns: 2}
	a = &Asker{Items: []Item{{Turns: []string{"one", "two"}}, {Turns: []string{"three"}, MaxTokens: 8}}}
	for q, want := range map[traffic.Request]string{{Turn: 1}: "one",
		{Turn: 2, Before: "one and more"}: "one and more\ntwo", {Conversation: 1, Turn: 1}: "three",
		{Conversation: 2}: "one"} {
		if text, n := ask(t, a, c, q); text != want || n != 4+4*(q.Conversation%2) {
			t.Errorf("%+v: %q, %d; want %q", q, text, n, want)
		}
	}
	a = &Asker{Turns: []string{"one", "two"}}
	if text, _ := ask(t, a, c, traffic.Request{Conversation: 5, Turn: 2, Before: "said"}); text != "said\ntwo" {
		t.Errorf("a conversation that all have: %q", text)
	}
}
