package enginetest

import (
	"fmt"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Generation is a request and its result.
type Generation struct {
	Caps             engine.Caps // of the engine
	Called, Returned time.Time
	MaxTokens        int
	Tokens           []record.Token
	Usage            record.Usage
}

// IDs returns the token ids in order.
func (g Generation) IDs() []int {
	ids := make([]int, 0, len(g.Tokens))
	for _, t := range g.Tokens {
		ids = append(ids, t.ID)
	}
	return ids
}

// String returns the ids and the text.
func (g Generation) String() string { return fmt.Sprintf("%v %q", g.IDs(), g.Usage.Text) }

// Count returns the number of tokens: those received, or, if the engine reports pieces, those it counted.
func (g Generation) Count() int {
	if g.Caps.Exact {
		return len(g.Tokens)
	}
	return g.Usage.Generated
}

// Prompted returns the number of prompt tokens.
func (g Generation) Prompted() int { return max(len(g.Usage.PromptIDs), g.Usage.PromptTokens) }

// Same reports whether two generations have the same ids, or, if the engine reports none, the same text.
func (g Generation) Same(o Generation) bool {
	if g.Caps.TokenIDs {
		return slices.Equal(g.IDs(), o.IDs())
	}
	return g.Usage.Text == o.Usage.Text && g.Count() == o.Count()
}

// Faults lists what is wrong with a complete generation. slack is the clock error that the engine reported: times from
// another clock may be off by that much.
func (g Generation) Faults(slack time.Duration) []string {
	f := &faults{slack: slack}
	g.length(f)
	g.prompt(f)
	g.ids(f)
	if len(g.Usage.Reported) == 0 {
		f.add("the engine's own counts and timings are missing")
	}
	g.times(f)
	g.prefilled(f)
	return f.list
}

// length checks the number of tokens and the reason for the end.
func (g Generation) length(f *faults) {
	n := g.Count()
	stopped := !g.Caps.IgnoreEOS && g.Usage.Finish == "stop" && n > 0
	switch {
	case n > g.MaxTokens || n < g.MaxTokens && !stopped:
		f.add("%d tokens, want %d", n, g.MaxTokens)
	case g.Usage.Finish != "length" && !stopped:
		f.add("finish is %q, want length", g.Usage.Finish)
	}
	if pieces := len(g.Tokens); !g.Caps.Exact && (pieces < 1 || pieces > n) {
		f.add("%d pieces of %d tokens", pieces, n)
	}
	if g.Caps.Exact && g.Usage.Generated != 0 && g.Usage.Generated != n {
		f.add("received %d tokens, but the engine counts %d", n, g.Usage.Generated)
	}
}

func (g Generation) prompt(f *faults) {
	switch {
	case g.Caps.TokenIDs && len(g.Usage.PromptIDs) == 0:
		f.add("no prompt ids")
	case g.Prompted() == 0:
		f.add("neither prompt ids nor their number")
	}
	cached := g.Usage.CachedTokens
	if cached == record.CacheUnknown && g.Caps.PromptCache {
		return
	}
	if cached != 0 && !g.Caps.PromptCache {
		f.add("%d prompt tokens came from a cache", cached)
	} else if cached < 0 || cached > g.Prompted() {
		f.add("%d of %d prompt tokens came from a cache", cached, g.Prompted())
	}
}

func (g Generation) ids(f *faults) {
	for i, t := range g.Tokens {
		if g.Caps.TokenIDs != (t.ID >= 0) || t.ID < record.NoID {
			f.add("token %d has the id %d, although Caps.TokenIDs is %v", i, t.ID, g.Caps.TokenIDs)
			return
		}
	}
}

// BrokenFaults lists what is wrong with a generation that failed after some tokens. Its times must be as consistent as
// those of any other. An engine that reports pieces may learn the begin of prefill only at the end.
func (g Generation) BrokenFaults(slack time.Duration) []string {
	f := &faults{slack: slack}
	g.times(f)
	if g.Caps.Exact {
		g.prefilled(f)
	}
	return f.list
}

func (g Generation) prefilled(f *faults) {
	if len(g.Tokens) > 0 && g.span(&faults{}, record.Prefill) == nil {
		f.add("no prefill span")
	}
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
	case g.Count() > 1 && !g.bunched(): // a single token comes out of prefill
		f.add("no decode span")
	}
}

// bunched reports whether an engine may omit decode because tokens were read in bunches, as on a busy machine: at a
// quarter as many times as there are tokens or fewer, with over a tenth of them at the first; or pieces at half as
// many times.
func (g Generation) bunched() bool {
	times, withFirst := 0, 0
	for i, t := range g.Tokens {
		if i == 0 || !t.At.Equal(g.Tokens[i-1].At) {
			times++
		}
		if times == 1 {
			withFirst++
		}
	}
	if g.Caps.Exact {
		return 4*times <= len(g.Tokens) && 10*withFirst > len(g.Tokens)
	}
	return times < 2 || 2*times <= len(g.Tokens) || g.contradicted()
}

// contradicted reports whether the engine's own decode time differs by a fifth or more from the time between its
// pieces.
func (g Generation) contradicted() bool {
	its, last := time.Duration(g.Usage.Reported["eval_duration"]), len(g.Tokens)-1
	return its > 0 && last > 0 && (g.Tokens[last].At.Sub(g.Tokens[0].At)-its).Abs() >= its/5
}

func (g Generation) span(f *faults, name string) *record.Span {
	i := slices.IndexFunc(g.Usage.Spans, func(s record.Span) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	s := g.Usage.Spans[i]
	f.exactly(name+"'s begin and end", s.Begin, s.End)
	if s.How == "" {
		f.add("%s does not say how its limits were measured", name)
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

// exactly checks the order of two times of one clock.
func (f *faults) exactly(what string, a, b time.Time) {
	if b.Before(a) {
		f.add("%s: the second is %v before the first", what, a.Sub(b))
	}
}

// ordered checks the order of times that may come from two clocks.
func (f *faults) ordered(what string, a, b time.Time) {
	if b.Before(a.Add(-f.slack)) {
		f.add("%s: the second is %v before the first, beyond the clock error of %v", what, a.Sub(b), f.slack)
	}
}
