package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Patience is how long connecting to a server may take.
const Patience = 5 * time.Second

// Client talks to one server of language models.
type Client struct {
	Name string // of the server, for people; empty: errors do not name it
	Base string // base URL
	Key  string // bearer token, hidden in errors; empty: none
	HTTP *http.Client
}

// NewClient makes a client that uses a new connection for each request: servers close idle ones at any time, and a
// request at that moment fails or is sent twice. Redirects are not followed, because another server would be measured.
// Nor is a proxy used for a server that is here, on this machine.
func NewClient(here bool) *http.Client {
	c := ClientBy((&net.Dialer{Timeout: Patience}).DialContext)
	if !here {
		c.Transport.(*http.Transport).Proxy = http.ProxyFromEnvironment
	}
	return c
}

// Dial connects to an address.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// ClientBy is NewClient for a server that another way of connecting leads to.
func ClientBy(dial Dial) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		ReadBufferSize: Buffer, TLSHandshakeTimeout: Patience, DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Refusal is an error that a server reports, as an answer or in a stream.
type Refusal struct {
	Who     string
	Status  int // 0: in a stream
	Message string
	Kind    string // type and code
	Place   string // target of a redirect
}

func (r *Refusal) Error() string {
	text := cmp.Or(r.Message, "no reason given")
	if r.Status != 0 {
		text = fmt.Sprintf("%d %s: %s", r.Status, http.StatusText(r.Status), text)
	}
	if r.Who != "" {
		text = r.Who + ": " + text
	}
	return text
}

// Denied reports whether a key is missing or wrong; a nil refusal is none.
func (r *Refusal) Denied() bool {
	return r != nil && (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden)
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
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // as much as can be read
	r := c.Complaint(body)
	r.Status = resp.StatusCode
	if at, err := resp.Location(); err == nil {
		at.User, at.RawQuery = nil, ""
		r.Place = c.Hide(at.String())
	}
	return nil, r
}

// Complaint finds the message in the body of an error. Servers agree on little more than JSON.
func (c *Client) Complaint(body []byte) *Refusal {
	var said struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    any             `json:"code"`
	}
	r := &Refusal{Who: c.Name}
	if json.Unmarshal(body, &said) != nil {
		r.Message = c.Snippet(body)
		return r
	}
	inner := said.Error
	if len(inner) == 0 {
		inner = said.Detail
	}
	switch {
	case len(inner) > 0 && inner[0] == '{':
		return c.Complaint(inner)
	case len(inner) == 0:
		r.Message = said.Message
	case json.Unmarshal(inner, &r.Message) != nil:
		r.Message = c.Snippet(inner)
	}
	r.Message, r.Kind = c.Hide(fault.OneLine(r.Message)), said.Type
	if code, ok := said.Code.(string); ok {
		r.Kind += " " + code
	}
	return r
}

// Snippet returns the beginning of a server's text on one line. The key is hidden before the text is cut, because a
// cut might leave a part of it.
func (c *Client) Snippet(text []byte) string {
	return strings.ToValidUTF8(fmt.Sprintf("%.120s", fault.OneLine(c.Hide(string(text)))), "?")
}

// Hide removes the key from a server's text.
func (c *Client) Hide(text string) string {
	if c.Key == "" {
		return text
	}
	return strings.NewReplacer(c.Key, "[key]", url.QueryEscape(c.Key), "[key]").Replace(text)
}

// Send sends body, if any: a file as it is, everything else as JSON. The caller closes the answer's body.
func (c *Client) Send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	length, kind := int64(0), ""
	switch body := body.(type) {
	case nil:
	case *os.File:
		info, err := body.Stat()
		if err != nil {
			return nil, err
		}
		r, length, kind = body, info.Size(), "application/octet-stream"
	default:
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("making a request to %s: %w", path, err)
		}
		r, length, kind = bytes.NewReader(b), int64(len(b)), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, r)
	if err != nil {
		return nil, fmt.Errorf("making a request to %s: %w", path, err)
	}
	if req.ContentLength = length; kind != "" {
		req.Header.Set("Content-Type", kind)
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
		return engine.Fail(record.BadOutput, "the answer to %s is invalid: %w in %q", path, err, c.Snippet(answer))
	}
	return nil
}
