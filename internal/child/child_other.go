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

// guard is none: a child outlives a SIGKILL of ours on these systems.
type guard struct{}

func newGuard(int) (*guard, error) { return nil, nil }

func (*guard) wait() {}

func marked(*exec.Cmd) string { return "" }

func killMarked(string) {}

// Tagged needs /proc and finds nothing elsewhere.
func Tagged(int) []int { return nil }

func endTagged() int { return 0 }

// Group needs /proc and finds nothing elsewhere: a browser's children are then only those that it names itself.
func Group(int) []int { return nil }

// Descendants finds nothing elsewhere.
func Descendants(int) []int { return nil }

// GroupNaming finds nothing elsewhere.
func GroupNaming(string) int { return 0 }

// Describe tells nothing elsewhere.
func Describe([]int) string { return "" }
