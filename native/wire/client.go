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

// Client asks one server that is an engine's own.
type Client struct {
	Name string // of the server, for people
	Base string // its URL, which paths are appended to
	Key  string // sent as a bearer's; empty: none
	HTTP *http.Client
}

// Refusal is how a server says that it can't, as an answer or within a stream.
type Refusal struct {
	Who     string `json:"-"`
	Status  int    `json:"-"` // 0: within a stream
	Message string `json:"message"`
	Kind    string `json:"type"` // empty: it does not say
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

// RefusalOf is the refusal in an error's chain; nil: there is none.
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// Do gives an answer that is no refusal; its body must be closed.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok && req.Context().Err() == nil {
			err = u.Err // without the address, which the caller says
		}
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refused(resp)
}

// refused reads an error's body, in which the error is a text or an object.
func (c *Client) refused(resp *http.Response) *Refusal {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what could be read of it is said
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	r := &Refusal{Who: c.Name, Status: resp.StatusCode}
	if json.Unmarshal(body, &said) == nil && len(said.Error) > 0 &&
		(json.Unmarshal(said.Error, r) == nil || json.Unmarshal(said.Error, &r.Message) == nil) && r.Message != "" {
		return r
	}
	r.Message, r.Kind = "it does not say why", resp.Status
	if text := fault.OneLine(string(body)); text != "" {
		r.Message = fmt.Sprintf("%.200q", text)
	}
	return r
}

// Send sends body, if any, and gives an answer that is no refusal; its body must be closed.
func (c *Client) Send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := NewRequest(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}

// Call sends body, if any, and reads the whole answer into into, if that is not nil.
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
		return engine.Fail(record.BadOutput, "the answer to %s is not %s's: %w (%.80q)", path, c.Name, err, answer)
	}
	return nil
}
