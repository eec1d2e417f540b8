package wire

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
)

// ParseAddress parses the URL of a server, which a flag names. It is recorded, so it must not contain a secret, and
// errors do not repeat it.
func ParseAddress(flag, raw, example string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(raw), "/"))
	switch {
	case raw == "":
		return nil, fault.New(fault.Usage, "use one such as "+example, "%s: missing", flag)
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Port() == "0":
		return nil, fault.New(fault.Usage, "use one such as "+example,
			"%s: must begin with http:// or https:// and a host", flag)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fault.New(fault.Usage, "remove it", "%s contains a user name, a password, a query or a fragment, "+
			"which would be recorded", flag)
	}
	return u, nil
}

// HostPort returns a URL's host with its port.
func HostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// IsHere reports whether a host is this machine, without looking up names.
func IsHere(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && IsOurs(ip)
}

// IsOurs reports whether an address belongs to this machine.
func IsOurs(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		have, ok := netip.AddrFromSlice(n.IP)
		return ok && have.Unmap() == ip
	})
}
