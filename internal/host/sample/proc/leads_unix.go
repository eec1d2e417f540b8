//go:build unix

package proc

import "golang.org/x/sys/unix"

// leads reports whether a process is the leader of its session.
func leads(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == pid
}
