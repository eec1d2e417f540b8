//go:build !linux

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// own cannot set a parent-death signal here: children survive our SIGKILL.
func own(*exec.Cmd) {}

func signalGroup(p *os.Process, s syscall.Signal) {
	if s == syscall.SIGKILL {
		_ = p.Kill()
		return
	}
	_ = p.Signal(s)
}

// guard does nothing: children survive our SIGKILL.
type guard struct{}

func newGuard(int) (*guard, error) { return nil, nil }

func (*guard) wait() {}

func killMarked(string) int { return 0 }

func carries(int, string) bool { return false }

// Tagged finds nothing without /proc.
func Tagged(int) []int { return nil }

// Group finds nothing without /proc; a browser's children are then only those that it lists.
func Group(int) []int { return nil }

// Descendants finds nothing without /proc.
func Descendants(int) []int { return nil }

// GroupNaming finds nothing without /proc.
func GroupNaming(string) int { return 0 }

// Describe finds nothing without /proc.
func Describe([]int) string { return "" }
