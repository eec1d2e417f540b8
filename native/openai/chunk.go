package openai

import "encoding/json"

// chunk is an event of a stream, of either interface.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings json.RawMessage `json:"timings"` // llama-server's own
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"` // "error" where a server has no field for one
}

type choice struct {
	Index int    `json:"index"`
	Text  string `json:"text"` // of completions
	Delta struct {
		Content   string `json:"content"`
		Thinks    string `json:"reasoning_content"` // what comes before the answer is generated like it
		Reasoning string `json:"reasoning"`         // by its other name
	} `json:"delta"` // of chats
	Finish string `json:"finish_reason"`
}

// piece is the text that a choice brings; empty for one that only says who speaks, or why it ends.
func (c choice) piece() string { return c.Text + c.Delta.Thinks + c.Delta.Reasoning + c.Delta.Content }

// usage is the server's own count.
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

// reported gives the counts under the server's own names.
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

// parseChunk reads an event's data. An error that the server sends in it is a refusal.
func (c *client) parseChunk(data []byte) (chunk, error) {
	var e chunk
	if err := json.Unmarshal(data, &e); err != nil {
		return e, &malformed{what: "a chunk of the stream", text: c.snippet(data), err: err}
	}
	if len(e.Error) > 0 && string(e.Error) != "null" || e.Object == "error" {
		return e, c.complaint(data)
	}
	return e, nil
}
