package openai

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"time"

	"llmparity/native/wire"
)

// askPatience is how long a server may take for a question that it can answer at once. Generations wait until their
// context ends.
var askPatience = 10 * time.Second

// errSilent is the end of our own patience.
var errSilent = errors.New("no answer in time")

// client talks to one server.
type client struct {
	wire.Client
	at       address
	keyFrom  string
	patience time.Duration
}

func newClient(at address, key, keyFrom string) *client {
	proxy := http.ProxyFromEnvironment
	if at.local { // a proxy would be measured, too
		proxy = nil
	}
	return &client{wire.Client{Key: key, HTTP: wire.NewClient(proxy)}, at, keyFrom, askPatience}
}

// post sends a generation request. It returns an answer, whose body the caller closes, and when the request was sent,
// connecting excluded.
func (c *client) post(ctx context.Context, address string, body any) (*http.Response, time.Time, error) {
	sent := time.Now()
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = time.Now() }})
	resp, err := c.Send(ctx, http.MethodPost, address, body)
	return resp, sent, err
}

// ask sends a question and parses the answer.
func (c *client) ask(ctx context.Context, method, address string, body, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, errSilent)
	defer cancel()
	err := c.Call(ctx, method, address, body, into)
	if err != nil && context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}
