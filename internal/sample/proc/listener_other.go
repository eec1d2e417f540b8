//go:build !linux

package proc

import (
	"fmt"

	"github.com/shirou/gopsutil/v3/net"
)

// PIDOfListener gives the process that listens on a TCP port of this machine. Where several hold the socket, such as a server and its
// workers, it is the one that was started first.
func PIDOfListener(port int) (int, error) {
	all, err := net.Connections("tcp")
	if err != nil {
		return 0, fmt.Errorf("who listens on port %d: %w", port, err)
	}
	var first Process
	for _, c := range all {
		if c.Status != "LISTEN" || int(c.Laddr.Port) != port || c.Pid == 0 {
			continue
		}
		if p, err := Look(int(c.Pid)); err == nil && (first.PID == 0 || p.Start < first.Start) {
			first = p
		}
	}
	if first.PID == 0 {
		return 0, fmt.Errorf("nobody is seen to listen on port %d of this machine", port)
	}
	return first.PID, nil
}
