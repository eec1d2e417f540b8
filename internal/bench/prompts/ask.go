package prompts

import (
	"cmp"
	"sync"

	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Asker returns the prompt of each request of a cell's traffic. It caches generated prompts, so that no request waits
// for its prompt if all were requested before. It is safe for concurrent use.
type Asker struct {
	Maker *Maker   // for prompts of a given length; nil: none
	Items []Item   // entries of a data set, used in turn
	Turns []string // turns of the same conversation for all

	mu   sync.Mutex
	made map[textKey]string
}

type textKey struct {
	length int
	seed   uint64
}

// Ask returns a request's prompt and output length. The prompt of a turn is everything before it and, on a new line,
// the new text.
func (a *Asker) Ask(c record.Cell, q traffic.Request) (engine.Request, error) {
	r := engine.Request{Prompt: c.Prompt, MaxTokens: c.MaxTokens}
	length, t := Length(c, q), c.Traffic
	switch {
	case q.Conversation < len(t.Trace):
		r.MaxTokens = t.Trace[q.Conversation].MaxTokens
	case q.Kind < len(t.Mix):
		r.Prompt = cmp.Or(t.Mix[q.Kind].Prompt, r.Prompt)
		r.MaxTokens = cmp.Or(t.Mix[q.Kind].MaxTokens, r.MaxTokens)
	case len(a.Items) > 0:
		item := a.Items[q.Conversation%len(a.Items)]
		r.Prompt, length = item.Turns[max(0, q.Turn-1)%len(item.Turns)], 0
		r.MaxTokens = cmp.Or(item.MaxTokens, r.MaxTokens)
	case len(a.Turns) > 0:
		r.Prompt, length = a.Turns[max(0, q.Turn-1)%len(a.Turns)], 0
	}
	if length > 0 && a.Maker != nil {
		// All engines get the same prompts. Cells that may share a server get different ones.
		text, err := a.fresh(length, t.Seed<<48+uint64(t.Concurrency)<<34+uint64(c.MaxTokens)<<20+uint64(q.Index))
		if err != nil {
			return r, err
		}
		r.Prompt = text
	}
	if q.Before != "" {
		r.Prompt = q.Before + "\n" + r.Prompt
	}
	return r, nil
}

// Length returns the requested length of a request's prompt, without earlier turns; 0: its text is given.
func Length(c record.Cell, q traffic.Request) int {
	switch t := c.Traffic; {
	case q.Conversation < len(t.Trace):
		return t.Trace[q.Conversation].InputTokens
	case q.Kind < len(t.Mix):
		return t.Mix[q.Kind].InputTokens
	}
	return c.InputTokens
}

// fresh returns a text of the given length that no other request begins with.
func (a *Asker) fresh(length int, seed uint64) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := textKey{length, seed}
	if text, ok := a.made[key]; ok {
		return text, nil
	}
	text, err := a.Maker.OfLength(length, seed)
	if err != nil {
		return "", err
	}
	if a.made == nil {
		a.made = map[textKey]string{}
	}
	a.made[key] = text
	return text, nil
}
