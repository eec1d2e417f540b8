package wire

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// IsHere tells whether a host is this machine, as far as that can be told without asking what a name stands for.
func IsHere(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && IsOurs(ip)
}

// IsOurs tells whether an address is one of this machine's own.
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
