package webllm

import (
	"time"

	"llmparity/browser"
	"llmparity/internal/engine"
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
	engine.Text
	at   func(float64) time.Time // converts a page clock reading
	sent time.Time               // by our clock, just before the call
}

// take reports tokens.
func (g *generation) take(told browser.Told) {
	for i := 0; i+1 < len(told.Tokens); i += 2 {
		g.Tell(int(told.Tokens[i]), g.at(told.Tokens[i+1]))
	}
}

// usage sums up. The page knows best when WebLLM got the request, but a failed request has no answer.
func (g *generation) usage(a answer) record.Usage {
	u := record.Usage{PromptIDs: a.PromptIDs, Text: a.Text, Finish: a.Finish, Reported: a.Reported, Sent: g.sent}
	if u.Finish == "abort" {
		u.Finish = "cancelled"
	}
	how := "our clock: call of the page; page clock: first token sampled"
	if a.Sent != 0 {
		u.Sent = g.at(a.Sent)
		how = "page clock: request passed to WebLLM to first token sampled"
	}
	u.Spans = g.Spans(u.Sent, g.N, how, "page clock: first token sampled to last token sampled")
	return u
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
