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

// address is where a server is.
type address struct {
	root string // what its own paths, such as /metrics, are appended to
	api  string // what /models and the rest are appended to; ends in /v1 unless the URL has a path of its own
	host string // with its port
	port int
	// local: on this machine, by its address or by what its name stands for.
	local bool
}

// interfaces are the ends of URLs that are copied from a server's manual; ours are appended to what stands before them.
var interfaces = []string{"/chat/completions", "/completions", "/models"}

// parseAddress reads a server's URL. A key in it would be written down with it, and is refused; what is wrong with it
// is said without repeating it.
func parseAddress(raw string) (address, error) {
	wrong := func(what string) (address, error) {
		return address{}, fault.New(fault.Usage, "give one such as http://127.0.0.1:8080", "--openai-url: %s", what)
	}
	if raw == "" {
		return wrong("no server is named")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil: // its text may have a password in it
		return wrong("it is no URL")
	case u.User != nil:
		return address{}, fault.New(fault.Usage, "put the key into a variable and name it with --openai-key-env",
			"--openai-url: it has a user or a password in it, which would be written down")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return wrong("it is no URL of a server, which begins with http:// or https:// and a host")
	case u.RawQuery != "" || u.Fragment != "":
		return address{}, fault.New(fault.Usage, "leave it out",
			"--openai-url: it has a query or a fragment, which would be written down")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	a := address{host: net.JoinHostPort(u.Hostname(), port), local: wire.IsHere(u.Hostname())}
	if a.port, err = strconv.Atoi(port); err != nil || a.port < 1 || a.port > 65535 {
		return wrong("port " + port + " is none")
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

// resolved says of a name whether it stands for this machine.
func (a address) resolved(ctx context.Context) address {
	host, _, err := net.SplitHostPort(a.host)
	if err != nil || a.local {
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	a.local = err == nil && len(ips) > 0 &&
		!slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !wire.IsOurs(ip) })
	return a
}
