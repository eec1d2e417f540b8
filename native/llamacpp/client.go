package llamacpp

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"

	"llmparity/native/wire"
)

// client talks to one llama-server.
type client struct{ wire.Client }

func newClient(port int, key string) *client {
	return &client{wire.Client{Name: "llama-server", Key: key, HTTP: wire.NewClient(true),
		Base: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}}
}

// properties holds the fields of /props that we use.
type properties struct {
	Build    string `json:"build_info"`
	Slots    int    `json:"total_slots"`
	Settings struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
}

func (c *client) props(ctx context.Context) (properties, error) {
	var p properties
	err := c.Call(ctx, http.MethodGet, "/props", nil, &p)
	return p, err
}

// tokenize leaves it to the model's own flag whether a BOS is added.
func (c *client) tokenize(ctx context.Context, prompt string) ([]int, error) {
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	err := c.Call(ctx, http.MethodPost, "/tokenize",
		map[string]any{"content": prompt, "add_special": true, "parse_special": true}, &answer)
	return answer.Tokens, err
}

// busy returns how many slots are working.
func (c *client) busy(ctx context.Context) (n int, err error) {
	var slots []struct {
		Busy bool `json:"is_processing"`
	}
	if err := c.Call(ctx, http.MethodGet, "/slots", nil, &slots); err != nil {
		return 0, err
	}
	for _, s := range slots {
		if s.Busy {
			n++
		}
	}
	return n, nil
}

// completion is the body of a /completion request.
type completion struct {
	Prompt       []int    `json:"prompt"`
	NPredict     int      `json:"n_predict"`
	Temperature  float64  `json:"temperature"`
	TopK         int      `json:"top_k"`
	Samplers     []string `json:"samplers"`
	Seed         uint32   `json:"seed"`
	CachePrompt  bool     `json:"cache_prompt"`
	ReturnTokens bool     `json:"return_tokens"`
	Stream       bool     `json:"stream"`
}

// newCompletion uses a single sampler: the largest logit at temperature 0, otherwise the whole distribution at that
// temperature. The server's defaults (top-k 40, top-p, min-p) match no other engine.
func newCompletion(prompt []int, n int, temperature float64, seed uint32) completion {
	c := completion{
		Prompt: prompt, NPredict: n, Temperature: temperature, Samplers: []string{"temperature"}, Seed: seed,
		ReturnTokens: true, Stream: true,
	}
	if temperature <= 0 {
		c.Temperature, c.TopK, c.Samplers = 0, 1, []string{"top_k", "temperature"}
	}
	return c
}

// event holds the fields of a /completion event that we use. Missing fields are zero.
type event struct {
	Content   string          `json:"content"`
	Tokens    []int           `json:"tokens"`
	Predicted int             `json:"tokens_predicted"` // so far, including this event
	Evaluated int             `json:"tokens_evaluated"`
	Cached    int             `json:"tokens_cached"` // in the slot's KV cache after the completion
	Slot      int             `json:"id_slot"`       // from 0
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Timings   json.RawMessage `json:"timings"`
	Error     json.RawMessage `json:"error"`
}

// together adds the counts and times of several completions; those of a single one keep their rates, too.
func together(before, now map[string]float64) map[string]float64 {
	if before == nil {
		return now
	}
	sum := map[string]float64{}
	for _, name := range []string{"prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "cache_n",
		"tokens_predicted"} {
		sum[name] = before[name] + now[name]
	}
	return sum
}
