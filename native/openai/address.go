package openai

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"llmparity/internal/fault"
)

// address is where a server is.
type address struct {
	root string // what its own paths, such as /metrics, are appended to
	api  string // what /models and the rest are appended to; ends in /v1 unless the URL has a path of its own
	host string // with its port
	port int
	// local: on this machine's loopback interface.
	local bool
}

// parseAddress reads a server's URL. A key in it would be written down with it, and is refused.
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
		return wrong(strconv.Quote(raw) + " is no URL of a server")
	case u.RawQuery != "" || u.Fragment != "":
		return address{}, fault.New(fault.Usage, "leave it out", "--openai-url: it has a query or a fragment, which would be written down")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	a := address{host: net.JoinHostPort(u.Hostname(), port), local: loopback(u.Hostname())}
	if a.port, err = strconv.Atoi(port); err != nil || a.port < 1 || a.port > 65535 {
		return wrong("port " + port + " is none")
	}
	base := u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/")
	a.root, a.api = strings.TrimSuffix(base, "/v1"), base
	if strings.Trim(u.Path, "/") == "" {
		a.api = base + "/v1"
	}
	return a, nil
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
