//go:build !linux

package proc

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"
)

// answering returns the process that holds the other end of a connection, else one that listens on that address, else
// one that listens on all addresses.
func answering(ours, theirs netip.AddrPort) (int, error) {
	all, err := net.Connections("tcp")
	if err != nil {
		return 0, fmt.Errorf("finding the listener at %v: %w", theirs, err)
	}
	var first Process
	rank := 0
	for _, c := range all {
		r := 0
		switch local, remote := end(c.Laddr), end(c.Raddr); {
		case c.Pid == 0 || local.Port() != theirs.Port():
		case c.Status == "ESTABLISHED" && local == theirs && remote == ours:
			r = 3
		case c.Status == "LISTEN" && local == theirs:
			r = 2
		case c.Status == "LISTEN" && (!local.Addr().IsValid() || local.Addr().IsUnspecified()):
			r = 1
		}
		if r == 0 || r < rank {
			continue
		}
		if p, err := Look(int(c.Pid)); err == nil && (r > rank || p.Start < first.Start) {
			first, rank = p, r
		}
	}
	if first.PID == 0 {
		return 0, fmt.Errorf("no process found that listens at %v on this machine", theirs)
	}
	return first.PID, nil
}

func end(a net.Addr) netip.AddrPort {
	ip, _ := netip.ParseAddr(a.IP) // "*" is invalid
	return netip.AddrPortFrom(ip.Unmap(), uint16(a.Port))
}

// program returns the file that a process runs; nil if unknown.
func program(pid int) os.FileInfo {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return nil
	}
	path, err := p.Exe()
	if err != nil {
		return nil
	}
	f, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return f
}
