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
	// idleFor is how long a connection is kept for the next request: less than the five seconds after which
	// llama-server and uvicorn close one, so that no request meets a connection that is just being closed.
	idleFor = 2 * time.Second
	// maxAnswer bounds an answer that is no stream.
	maxAnswer = 16 << 20
)

// client speaks to one server.
type client struct {
	at      address
	key     Secret
	keyFrom string
	// patience is for questions that a server answers from what it knows. Generations wait as long as their context
	// lets them.
	patience time.Duration
	http     *http.Client // of questions
	alone    *http.Client // of generations
	proxies  func(*http.Request) (*url.URL, error)
}

func newClient(at address, key Secret, keyFrom string) *client {
	c := &client{at: at, key: key, keyFrom: keyFrom, patience: askPatience, proxies: http.ProxyFromEnvironment}
	c.http, c.alone = c.over(), c.over()
	c.alone.Transport.(*http.Transport).DisableKeepAlives = true
	return c
}

// over makes what carries requests.
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
		// A request that goes elsewhere would be measured there, and a POST would become a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// proxy is none for a server on this machine: it would be measured too.
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

// request is what is asked.
type request struct {
	method, address string
	body            any // nil: none
	// alone gives the request a connection of its own. One that was kept may break before the answer's head, and
	// whether the server has begun to generate is not known then: asked again, it would do so twice.
	alone bool
}

// send gives the answer where it is 200, and when the request was handed to a connection; the answer's body must be
// closed. Errors are refusals or those of the connection.
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
		// A connection that was kept may have been closed by the server just now: that says nothing of the server.
		if !reused || try > 1 || ctx.Err() != nil {
			return nil, sent, err
		}
		c.http.CloseIdleConnections()
	}
}

// once sends a request over a connection of its own, or over any: a new one or one that was kept. Connecting is not in
// its time.
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
		err = e.Err // we say ourselves where it was
	}
	return resp, sent, reused, err
}

// ask reads a JSON answer into into. The header is that of the answer.
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
		return nil, &malformed{what: "its answer to " + address, text: c.snippet(text), err: err}
	}
	return resp.Header, nil
}

// cause tells our own patience's end from that of whoever called.
func cause(ctx context.Context, err error) error {
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}
