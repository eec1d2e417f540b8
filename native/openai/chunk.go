package openai

import (
	"encoding/json"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// chunk is an event of a stream, in either API.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings json.RawMessage `json:"timings"` // llama-server's own
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"` // "error" in servers without an error field
}

type choice struct {
	Index int    `json:"index"`
	Text  string `json:"text"` // of completions
	Delta struct {
		Content   string `json:"content"`
		Thinks    string `json:"reasoning_content"` // generated before the answer
		Reasoning string `json:"reasoning"`         // the same, by another name
	} `json:"delta"` // of chats
	Finish string `json:"finish_reason"`
}

// piece returns the text of a choice; empty if it only has a role or a finish reason.
func (c choice) piece() string { return c.Text + c.Delta.Thinks + c.Delta.Reasoning + c.Delta.Content }

// usage is the server's count.
type usage struct {
	Prompt     *int `json:"prompt_tokens"`
	Completion *int `json:"completion_tokens"`
	Total      *int `json:"total_tokens"`
	Details    *struct {
		Cached *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u usage) cached() *int {
	if u.Details == nil {
		return nil
	}
	return u.Details.Cached
}

// reported returns the counts under the server's own names.
func (u usage) reported() map[string]float64 {
	out := map[string]float64{}
	for name, n := range map[string]*int{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Total,
		"cached_tokens": u.cached(),
	} {
		if n != nil {
			out[name] = float64(*n)
		}
	}
	return out
}

// parseChunk parses an event. An error in it becomes a refusal.
func (c *client) parseChunk(data []byte) (chunk, error) {
	var e chunk
	if err := json.Unmarshal(data, &e); err != nil {
		return e, c.malformed(data, err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" || e.Object == "error" {
		return e, c.Complaint(data)
	}
	return e, nil
}

// malformed is the error for a chunk that is not JSON or has the wrong fields.
func (c *client) malformed(data []byte, err error) error {
	return engine.Fail(record.BadOutput, "a chunk of the stream is invalid: %w in %q", err, c.Snippet(data))
}
