package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Client talks to one of an engine's own servers.
type Client struct {
	Name string // of the server, for people
	Base string // base URL
	Key  string // bearer token; empty: none
	HTTP *http.Client
}

// Refusal is an error that a server reports, as an answer or in a stream.
type Refusal struct {
	Who     string `json:"-"`
	Status  int    `json:"-"` // 0: in a stream
	Message string `json:"message"`
	Kind    string `json:"type"`
}

func (r *Refusal) Error() string {
	kind := r.Kind
	if r.Status != 0 {
		kind = cmp.Or(kind, strconv.Itoa(r.Status))
	}
	if kind == "" {
		return r.Who + ": " + fault.OneLine(r.Message)
	}
	return fmt.Sprintf("%s: %s (%s)", r.Who, fault.OneLine(r.Message), kind)
}

// RefusalOf returns the refusal in an error's chain; nil: none.
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// Do sends a request. Answers with another status than 2xx become refusals. The caller closes the body.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok && req.Context().Err() == nil {
			err = u.Err // callers add the address
		}
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refused(resp)
}

// refused reads an error's body, in which the error is a string or an object.
func (c *Client) refused(resp *http.Response) *Refusal {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // as much as can be read
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	r := &Refusal{Who: c.Name, Status: resp.StatusCode}
	if json.Unmarshal(body, &said) == nil && len(said.Error) > 0 &&
		(json.Unmarshal(said.Error, r) == nil || json.Unmarshal(said.Error, &r.Message) == nil) && r.Message != "" {
		return r
	}
	r.Message, r.Kind = "no reason given", resp.Status
	if text := fault.OneLine(string(body)); text != "" {
		r.Message = fmt.Sprintf("%.200q", text)
	}
	return r
}

// Send sends body, if any. The caller closes the answer's body.
func (c *Client) Send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := NewRequest(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}

// Call sends body, if any, and parses the answer into into, unless that is nil.
func (c *Client) Call(ctx context.Context, method, path string, body, into any) error {
	resp, err := c.Send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxLine))
	if err != nil {
		return fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return engine.Fail(record.BadOutput, "invalid answer of %s to %s: %w (%.80q)", c.Name, path, err, answer)
	}
	return nil
}
