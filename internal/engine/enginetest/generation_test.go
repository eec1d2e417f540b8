package enginetest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
)

// sound is a generation of three tokens with nothing wrong with it.
func sound() enginetest.Generation {
	zero := time.Now()
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	return enginetest.Generation{
		Caps:   engine.Caps{IgnoreEOS: true, TokenIDs: true, Exact: true, Requests: 1},
		Called: at(0), Returned: at(50), MaxTokens: 3,
		Tokens: []record.Token{{Index: 0, ID: 5, At: at(20)}, {Index: 1, ID: 6, At: at(30)},
			{Index: 2, ID: 7, At: at(40)}},
		Usage: record.Usage{
			PromptIDs: []int{1, 2}, Finish: "length", Sent: at(10), Reported: map[string]float64{"n": 3},
			Spans: []record.Span{
				{Name: record.Prefill, Begin: at(10), End: at(20), How: "by hand"},
				{Name: record.Decode, Begin: at(20), End: at(40), How: "by hand"},
			},
		},
	}
}

func TestFaultsAreFound(t *testing.T) {
	early := func(t time.Time) time.Time { return t.Add(-15 * time.Millisecond) }
	for want, spoil := range map[string]func(*enginetest.Generation){
		"":                    func(*enginetest.Generation) {},
		"2 tokens, want 3":    func(g *enginetest.Generation) { g.Tokens = g.Tokens[:2] },
		"carries index 7":     func(g *enginetest.Generation) { g.Tokens[1].Index = 7 },
		"tokens 0 and 1":      func(g *enginetest.Generation) { g.Tokens[1].At = early(g.Tokens[1].At) },
		"sent, first token":   func(g *enginetest.Generation) { g.Tokens[0].At = early(g.Tokens[0].At) },
		"last token, return":  func(g *enginetest.Generation) { g.Returned = early(g.Returned) },
		"call, sent":          func(g *enginetest.Generation) { g.Usage.Sent = early(g.Usage.Sent) },
		"finish is \"stop\"":  func(g *enginetest.Generation) { g.Usage.Finish = "stop" },
		"no prompt ids":       func(g *enginetest.Generation) { g.Usage.PromptIDs = nil },
		"came from a cache":   func(g *enginetest.Generation) { g.Usage.CachedTokens = 1 },
		"timings are missing": func(g *enginetest.Generation) { g.Usage.Reported = nil },
		"no decode span":      func(g *enginetest.Generation) { g.Usage.Spans = g.Usage.Spans[:1] },
		"no prefill span":     func(g *enginetest.Generation) { g.Usage.Spans = g.Usage.Spans[1:] },
		"prefill's end, decode's": func(
			g *enginetest.Generation) {
			g.Usage.Spans[1].Begin = early(g.Usage.Spans[1].Begin)
		},
		"decode's begin and end": func(g *enginetest.Generation) { g.Usage.Spans[1].End = g.Usage.Sent },
		"does not say how":       func(g *enginetest.Generation) { g.Usage.Spans[0].How = "" },
		"token 1 has the id -1":  func(g *enginetest.Generation) { g.Tokens[1].ID = record.NoID },
		"the engine counts 4":    func(g *enginetest.Generation) { g.Usage.Generated = 4 },
	} {
		g := sound()
		spoil(&g)
		faults := g.Faults(0)
		found := slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, want) })
		if found != (want != "") {
			t.Errorf("spoilt by %q: %q", want, faults)
		}
	}
}

func TestFaultsOfABrokenGenerationAreFound(t *testing.T) {
	broken := sound()
	broken.MaxTokens, broken.Usage.Finish, broken.Usage.PromptIDs, broken.Usage.Reported = 9, "", nil, nil
	if f := broken.BrokenFaults(0); len(f) != 0 {
		t.Errorf("sound generation: %q", f)
	}
	broken.Usage.Sent, broken.Usage.Spans = time.Time{}, nil
	if f := broken.BrokenFaults(0); len(f) != 3 {
		t.Errorf("without send time, prefill and decode: %q", f)
	}
}

func TestCaseFaults(t *testing.T) {
	c := enginetest.Case{PromptIDs: []int{1, 2}, Expected: []int{5, 6, 7}, Text: "abc"}
	g := sound()
	g.Usage.Text = "abc"
	if f := c.Faults(g); len(f) != 0 {
		t.Errorf("matching the reference: %q", f)
	}
	g.Tokens[2].ID, g.Usage.Text, g.Usage.PromptIDs = 8, "abd", []int{1}
	if f := c.Faults(g); len(f) != 3 {
		t.Errorf("wrong ids, text and prompt ids: %q", f)
	}
}
