package webllm

import (
	"time"

	"llmparity/browser"
	"llmparity/internal/record"
)

// answer is the page's answer to a request; tokens come before it as events.
type answer struct {
	TooLong   int                `json:"tooLong"` // prompt length if it does not fit
	Context   int                `json:"context"` // into this context
	Sent      float64            `json:"sent"`
	Text      string             `json:"text"`
	Finish    string             `json:"finish"`
	Reported  map[string]float64 `json:"reported"`
	PromptIDs []int              `json:"promptIDs"`
}

// generation collects the tokens of a request.
type generation struct {
	at          func(float64) time.Time // converts a page clock reading
	token       func(record.Token)
	sent        time.Time // by our clock, just before the call
	count       int
	first, last time.Time
}

// take reports tokens.
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

// usage sums up. The page knows best when WebLLM got the request, but a failed request has no answer.
func (g *generation) usage(a answer) record.Usage {
	u := record.Usage{PromptIDs: a.PromptIDs, Text: a.Text, Finish: finish(a.Finish), Reported: a.Reported,
		Sent: g.sent}
	how := "our clock: call of the page; page clock: first token sampled"
	if a.Sent != 0 {
		u.Sent = g.at(a.Sent)
		how = "page clock: request passed to WebLLM to first token sampled"
	}
	if g.count > 0 {
		u.Spans = append(u.Spans, record.Span{Name: record.Prefill, Begin: u.Sent, End: g.first, How: how})
	}
	if g.count > 1 {
		u.Spans = append(u.Spans, record.Span{Name: record.Decode, Begin: g.first, End: g.last,
			How: "page clock: first token sampled to last token sampled"})
	}
	return u
}

// finish converts WebLLM's finish reason.
func finish(s string) string {
	if s == "abort" {
		return "cancelled"
	}
	return s
}

// stageNames are the stages of a load in order. Each ends where the next one begins.
var stageNames = []struct{ name, how string }{
	{"fetch", "page clock: load called to wasm instantiation called"},
	{"wasm", "page clock: wasm instantiation called to adapter requested"},
	{"device", "page clock: adapter requested to device received"},
	{"tokenizer", "page clock: device received to WebLLM starting on the weights"},
	{"download", "page clock, WebLLM's progress: weights downloaded into the browser's cache"},
	{"upload", "page clock, WebLLM's progress: weights copied from the browser's cache to the GPU, until the GPU is done"},
	{"pipeline", "page clock: weights uploaded to first shader compilation called; VM and KV cache"},
	{"shaders", "page clock: first shader compilation called to load done"},
}

// stages converts the page's marks to spans.
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
