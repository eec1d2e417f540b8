package openai

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/fault"
	"llmparity/native/wire"
)

// address is the address of a server.
type address struct {
	root  string // prefix of the server's own paths, such as /metrics
	api   string // prefix of /models and the like; ends in /v1 unless the URL has a path
	host  string // with its port
	port  int
	local bool // on this machine
}

// interfaces are ends of URLs that users copy from manuals; they are removed.
var interfaces = []string{"/chat/completions", "/completions", "/models"}

// parseAddress parses a server's URL. A key in it would be recorded, so it is refused, and errors never repeat the
// URL.
func parseAddress(raw string) (address, error) {
	wrong := func(what string) (address, error) {
		return address{}, fault.New(fault.Usage, "use one such as http://127.0.0.1:8080", "--openai-url: %s", what)
	}
	if raw == "" {
		return wrong("missing")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil: // its text may contain a password
		return wrong("not a URL")
	case u.User != nil:
		return address{}, fault.New(fault.Usage, "put the key into a variable and name it with --openai-key-env",
			"--openai-url contains a user name or password, which would be recorded")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return wrong("must begin with http:// or https:// and a host")
	case u.RawQuery != "" || u.Fragment != "":
		return address{}, fault.New(fault.Usage, "remove it",
			"--openai-url contains a query or a fragment, which would be recorded")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	a := address{host: net.JoinHostPort(u.Hostname(), port), local: wire.IsHere(u.Hostname())}
	if a.port, err = strconv.Atoi(port); err != nil || a.port < 1 || a.port > 65535 {
		return wrong("invalid port " + port)
	}
	path := strings.TrimRight(u.Path, "/")
	for _, end := range interfaces {
		path = strings.TrimSuffix(path, end)
	}
	base := u.Scheme + "://" + u.Host + path
	a.root, a.api = strings.TrimSuffix(base, "/v1"), base
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
