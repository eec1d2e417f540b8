package webllm

import (
	"time"

	"llmparity/browser"
	"llmparity/internal/record"
)

// answer is what the page returns for a request; its tokens come before it, as events.
type answer struct {
	TooLong   int                `json:"tooLong"` // the prompt's length, where it does not fit
	Context   int                `json:"context"` // into this
	Sent      float64            `json:"sent"`
	Text      string             `json:"text"`
	Finish    string             `json:"finish"`
	Reported  map[string]float64 `json:"reported"`
	PromptIDs []int              `json:"promptIDs"`
}

// generation collects the tokens of a request.
type generation struct {
	at          func(float64) time.Time // which the page clock's number is
	token       func(record.Token)
	sent        time.Time // on our clock, just before the page was asked
	count       int
	first, last time.Time
}

// take passes tokens on.
func (g *generation) take(told browser.Told) {
	tokens := told.Tokens
	for i := 0; i+1 < len(tokens); i += 2 {
		t := record.Token{Index: g.count, ID: int(tokens[i]), At: g.at(tokens[i+1])}
		if g.count == 0 {
			g.first = t.At
		}
		g.last = t.At
		g.count++
		g.token(t)
	}
}

// usage sums up. The page itself says best when WebLLM got the request, but one that broke off has no answer.
func (g *generation) usage(a answer) record.Usage {
	u := record.Usage{PromptIDs: a.PromptIDs, Text: a.Text, Finish: finish(a.Finish), Reported: a.Reported,
		Sent: g.sent}
	how := "our clock: request handed to the page; page clock: first token sampled"
	if a.Sent != 0 {
		u.Sent = g.at(a.Sent)
		how = "page clock: request handed to WebLLM, first token sampled"
	}
	if g.count > 0 {
		u.Spans = append(u.Spans, record.Span{Name: record.Prefill, Begin: u.Sent, End: g.first, How: how})
	}
	if g.count > 1 {
		u.Spans = append(u.Spans, record.Span{Name: record.Decode, Begin: g.first, End: g.last,
			How: "page clock: first token sampled, last token sampled"})
	}
	return u
}

// finish puts WebLLM's words into ours.
func finish(s string) string {
	if s == "abort" {
		return "cancelled"
	}
	return s
}

// stageNames are the stages of a load in order; each ends where the next one that took place begins.
var stageNames = []struct{ name, how string }{
	{"fetch", "page clock: load called, wasm instantiation called"},
	{"wasm", "page clock: wasm instantiation called, adapter requested"},
	{"device", "page clock: adapter requested, device given"},
	{"tokenizer", "page clock: device given, WebLLM begins with the weights"},
	{"download", "page clock: WebLLM's progress, weights being fetched into the browser's cache"},
	{"upload", "page clock: WebLLM's progress, weights from the browser's cache to the GPU, which has done it"},
	{"pipeline", "page clock: weights uploaded, first shader compilation called; VM and KV cache"},
	{"shaders", "page clock: first shader compilation called, load done"},
}

// stages turns the page's marks into spans.
func stages(marks map[string]float64, at func(float64) time.Time) []record.Span {
	var spans []record.Span
	for _, s := range stageNames {
		begin, ok := marks[s.name]
		if !ok {
			continue
		}
		if n := len(spans); n > 0 {
			spans[n-1].End = at(begin)
		}
		spans = append(spans, record.Span{Name: s.name, Begin: at(begin), End: at(marks["end"]), How: s.how})
	}
	return spans
}
