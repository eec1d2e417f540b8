package openai

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"llmparity/native/wire"
)

// address is the address of a server.
type address struct {
	root  string // prefix of the server's own paths, such as /metrics
	api   string // prefix of /models and the like; ends in /v1 unless the URL has a path
	host  string // with its port
	local bool   // on this machine
}

// interfaces are ends of URLs that users copy from manuals; they are removed.
var interfaces = []string{"/chat/completions", "/completions", "/models"}

// parseAddress parses a server's URL.
func parseAddress(raw string) (address, error) {
	u, err := wire.ParseAddress("--openai-url", raw, "http://127.0.0.1:8080")
	if err != nil {
		return address{}, err
	}
	path := u.Path
	for _, end := range interfaces {
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
