package openai

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
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
	dial     wire.Dial
}

func newClient(at address, key, keyFrom string) *client {
	return &client{wire.Client{Key: key, HTTP: wire.NewClient(at.local)}, at, keyFrom, askPatience,
		(&net.Dialer{Timeout: time.Second}).DialContext}
}

// ask sends a question and parses the answer.
func (c *client) ask(ctx context.Context, method, address string, body, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, errSilent)
	defer cancel()
	err := c.Call(ctx, method, address, body, into)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// address is the address of a server.
type address struct {
	root  string // prefix of the server's own paths, such as /metrics
	api   string // prefix of /models and the like; ends in /v1 unless the URL has a path
	host  string // with its port
	local bool   // on this machine
}

// parseAddress parses a server's URL.
func parseAddress(raw string) (address, error) {
	u, err := wire.ParseAddress("--openai-url", raw, "http://127.0.0.1:8080")
	if err != nil {
		return address{}, err
	}
	path := u.Path
	for _, end := range []string{"/chat/completions", "/completions", "/models"} { // users copy them from manuals
		path = strings.TrimSuffix(path, end)
	}
	base := u.Scheme + "://" + u.Host + path
	a := address{strings.TrimSuffix(base, "/v1"), base, wire.HostPort(u), wire.IsHere(u.Hostname())}
	if path == "" {
		a.api = base + "/v1"
	}
	return a, nil
}

// resolved looks up whether a host name refers to this machine.
func (a address) resolved(ctx context.Context) address {
	host, _, err := net.SplitHostPort(a.host)
	if err != nil || a.local {
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, wire.Patience)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	a.local = err == nil && len(ips) > 0 &&
		!slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !wire.IsOurs(ip) })
	return a
}
