//go:build !linux

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// own has no parent-death signal to set here: a child outlives a SIGKILL of ours on these systems.
func own(*exec.Cmd, bool) {}

func signalGroup(p *os.Process, s syscall.Signal) {
	if s == syscall.SIGKILL {
		_ = p.Kill()
		return
	}
	_ = p.Signal(s)
}
