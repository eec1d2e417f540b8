package llamacpp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"llmparity/native/wire"
)

// client speaks to one server.
type client struct {
	base string
	key  string
	http *http.Client
}

func newClient(port int, key string) *client {
	// No proxy from the environment between us and the loopback interface.
	return &client{base: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), key: key,
		http: wire.NewClient(nil)}
}

func (c *client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	req, err := wire.NewRequest(ctx, method, c.base+path, body)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, err
}

// call sends body, if any, and reads the answer into into.
func (c *client) call(ctx context.Context, method, path string, body, into any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("llama-server's answer to %s: %w", path, err)
	}
	return nil
}

// refusal is the error in an answer that isn't 200.
func refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what could be read of it is said
	var e struct {
		Error *serverError `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error != nil {
		e.Error.Code = resp.StatusCode
		return e.Error
	}
	return &serverError{Code: resp.StatusCode, Message: fmt.Sprintf("%.200q", body), Type: resp.Status}
}

// health is whether somebody answers, and whether the model is loaded.
func (c *client) health(ctx context.Context) (answers, ready bool) {
	req, err := c.request(ctx, http.MethodGet, "/health", nil)
	if err != nil {
		return false, false
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, false
	}
	resp.Body.Close()
	return true, resp.StatusCode == http.StatusOK
}

// properties is what we read of /props.
type properties struct {
	Build    string `json:"build_info"`
	Slots    int    `json:"total_slots"`
	Model    string `json:"model_path"`
	Settings struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
}

func (c *client) props(ctx context.Context) (properties, error) {
	var p properties
	err := c.call(ctx, http.MethodGet, "/props", nil, &p)
	return p, err
}

// tokenize has the server decide on a BOS by the model's own flag.
func (c *client) tokenize(ctx context.Context, prompt string) ([]int, error) {
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	err := c.call(ctx, http.MethodPost, "/tokenize",
		map[string]any{"content": prompt, "add_special": true, "parse_special": true}, &answer)
	return answer.Tokens, err
}

// busy is how many slots are at work.
func (c *client) busy(ctx context.Context) (n int, err error) {
	var slots []struct {
		Busy bool `json:"is_processing"`
	}
	if err := c.call(ctx, http.MethodGet, "/slots", nil, &slots); err != nil {
		return 0, err
	}
	for _, s := range slots {
		if s.Busy {
			n++
		}
	}
	return n, nil
}

// completion is the body of a request for one.
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

// newCompletion leaves one sampler: the largest logit at temperature 0, else the whole distribution at the temperature.
// The server's own defaults (top-k 40, top-p, min-p) are no other engine's.
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

// stream sends a completion and gives its events; the body must be closed.
func (c *client) stream(ctx context.Context, body completion) (*stream, io.Closer, error) {
	req, err := c.request(ctx, http.MethodPost, "/completion", body)
	if err != nil {
		return nil, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	if err := refusal(resp); err != nil {
		resp.Body.Close()
		return nil, nil, err
	}
	return newStream(resp.Body), resp.Body, nil
}

// whole runs a completion without a stream and gives every id of it.
func (c *client) whole(ctx context.Context, body completion) ([]int, error) {
	body.Stream = false
	var e event
	if err := c.call(ctx, http.MethodPost, "/completion", body, &e); err != nil {
		return nil, err
	}
	return e.Tokens, nil
}
