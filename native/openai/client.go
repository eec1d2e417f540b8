package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"llmparity/native/wire"
)

const (
	connectPatience = 5 * time.Second
	askPatience     = 10 * time.Second
	// idleFor is how long a connection is kept. llama-server and uvicorn close idle ones after 5 s, and no request
	// should meet a connection that is just being closed.
	idleFor = 2 * time.Second
	// maxAnswer limits an answer that is not a stream.
	maxAnswer = 16 << 20
)

// client talks to one server.
type client struct {
	at      address
	key     Secret
	keyFrom string
	// patience is for questions that a server can answer at once. Generations wait until their context ends.
	patience time.Duration
	http     *http.Client // for questions
	alone    *http.Client // for generations
	proxies  func(*http.Request) (*url.URL, error)
}

func newClient(at address, key Secret, keyFrom string) *client {
	c := &client{at: at, key: key, keyFrom: keyFrom, patience: askPatience, proxies: http.ProxyFromEnvironment}
	c.http, c.alone = c.over(), c.over()
	c.alone.Transport.(*http.Transport).DisableKeepAlives = true
	return c
}

// over makes an HTTP client.
func (c *client) over() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               c.proxy,
			DialContext:         (&net.Dialer{Timeout: connectPatience}).DialContext,
			TLSHandshakeTimeout: connectPatience,
			IdleConnTimeout:     idleFor,
			ReadBufferSize:      wire.Buffer,
			DisableCompression:  true,
		},
		// A redirected request would measure another server, and a POST would become a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// proxy returns no proxy for a server on this machine, because it would be measured, too.
func (c *client) proxy(r *http.Request) (*url.URL, error) {
	if c.at.local {
		return nil, nil
	}
	return c.proxies(r)
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	c.alone.CloseIdleConnections()
}

// request is an HTTP request.
type request struct {
	method, address string
	body            any // nil: none
	// alone: use a new connection. A kept one may break before the answer's header; then it is unknown whether the
	// server has begun to generate, and a second try would make it generate twice.
	alone bool
}

// send returns an answer with status 200, whose body the caller closes, and when the request was sent. Other answers
// are refusals.
func (c *client) send(ctx context.Context, r request) (*http.Response, time.Time, error) {
	for try := 1; ; try++ {
		resp, sent, reused, err := c.once(ctx, r)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp, sent, nil
		}
		if err == nil {
			defer resp.Body.Close()
			return nil, sent, c.refused(resp)
		}
		// The server may just have closed a kept connection: try once more.
		if !reused || try > 1 || ctx.Err() != nil {
			return nil, sent, err
		}
		c.http.CloseIdleConnections()
	}
}

// once sends a request over a new or a kept connection. The time excludes connecting.
func (c *client) once(ctx context.Context, r request) (resp *http.Response, sent time.Time, reused bool, err error) {
	sent = time.Now()
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused, sent = i.Reused, time.Now() }})
	req, err := wire.NewRequest(ctx, r.method, r.address, r.body)
	if err != nil {
		return nil, sent, false, err
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+string(c.key))
	}
	by := c.http
	if r.alone {
		by = c.alone
	}
	resp, err = by.Do(req)
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err // callers add the address
	}
	return resp, sent, reused, err
}

// ask sends a request and parses the JSON answer. It returns the answer's header.
func (c *client) ask(ctx context.Context, method, address string, body, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, errSilent)
	defer cancel()
	resp, _, err := c.send(ctx, request{method: method, address: address, body: body})
	if err != nil {
		return nil, cause(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, cause(ctx, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, &malformed{what: "the answer to " + address, text: c.snippet(text), err: err}
	}
	return resp.Header, nil
}

// cause distinguishes the end of our own patience from the caller's.
func cause(ctx context.Context, err error) error {
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}
