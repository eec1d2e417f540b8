package enginetest

import (
	"fmt"
	"slices"
	"time"

	"llmparity/internal/record"
)

// Generation is one request and what came of it.
type Generation struct {
	Called, Returned time.Time
	MaxTokens        int
	Tokens           []record.Token
	Usage            record.Usage
}

// IDs are the ids of the tokens, in order.
func (g Generation) IDs() []int {
	ids := make([]int, 0, len(g.Tokens))
	for _, t := range g.Tokens {
		ids = append(ids, t.ID)
	}
	return ids
}

// Faults lists what is wrong with a generation that ran to its number of tokens. Times of another clock than ours may lie
// outside by slack, which is the error that the engine itself gave for that clock.
func (g Generation) Faults(slack time.Duration) []string {
	f := &faults{slack: slack}
	if len(g.Tokens) != g.MaxTokens {
		f.add("%d tokens, want %d", len(g.Tokens), g.MaxTokens)
	}
	if g.Usage.Finish != "length" {
		f.add("finish is %q, want length", g.Usage.Finish)
	}
	if len(g.Usage.PromptIDs) == 0 {
		f.add("no prompt ids")
	}
	if g.Usage.CachedTokens != 0 {
		f.add("%d prompt tokens came from a cache", g.Usage.CachedTokens)
	}
	if len(g.Usage.Reported) == 0 {
		f.add("the engine's own counts and timings are missing")
	}
	g.times(f)
	return f.list
}

// BrokenFaults lists what is wrong with a generation that failed after some tokens: what a record tells of it must be as sound as
// that of any other.
func (g Generation) BrokenFaults(slack time.Duration) []string {
	f := &faults{slack: slack}
	g.times(f)
	return f.list
}

func (g Generation) times(f *faults) {
	f.exactly("call, sent", g.Called, g.Usage.Sent)
	f.ordered("sent, return", g.Usage.Sent, g.Returned)
	g.tokens(f)
	g.spans(f)
}

func (g Generation) tokens(f *faults) {
	last := g.Usage.Sent
	for i, t := range g.Tokens {
		if t.Index != i {
			f.add("token %d carries index %d", i, t.Index)
		}
		if i == 0 {
			f.ordered("sent, first token", last, t.At)
		} else {
			f.exactly(fmt.Sprintf("tokens %d and %d", i-1, i), last, t.At)
		}
		last = t.At
	}
	f.ordered("last token, return", last, g.Returned)
}

func (g Generation) spans(f *faults) {
	prefill, decode := g.span(f, record.Prefill), g.span(f, record.Decode)
	if prefill != nil {
		f.ordered("sent, prefill's begin", g.Usage.Sent, prefill.Begin)
		f.ordered("prefill's end, return", prefill.End, g.Returned)
	}
	switch {
	case decode != nil:
		f.ordered("decode's end, return", decode.End, g.Returned)
		if prefill != nil {
			f.exactly("prefill's end, decode's begin", prefill.End, decode.Begin)
		}
	case len(g.Tokens) > 1: // a single token comes from prefill alone
		f.add("no decode span")
	}
	if prefill == nil && len(g.Tokens) > 0 {
		f.add("no prefill span")
	}
}

func (g Generation) span(f *faults, name string) *record.Span {
	i := slices.IndexFunc(g.Usage.Spans, func(s record.Span) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	s := g.Usage.Spans[i]
	f.exactly(name+"'s begin and end", s.Begin, s.End)
	if s.How == "" {
		f.add("%s does not say how its ends were obtained", name)
	}
	return &s
}

type faults struct {
	slack time.Duration
	list  []string
}

func (f *faults) add(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// exactly is for two times of one clock.
func (f *faults) exactly(what string, a, b time.Time) {
	if b.Before(a) {
		f.add("%s: the second lies %v before the first", what, a.Sub(b))
	}
}

// ordered is for times that may come from two clocks.
func (f *faults) ordered(what string, a, b time.Time) {
	if b.Before(a.Add(-f.slack)) {
		f.add("%s: the second lies %v before the first, beyond the clocks' error of %v", what, a.Sub(b), f.slack)
	}
}
