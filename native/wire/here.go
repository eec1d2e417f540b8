package wire

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

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
