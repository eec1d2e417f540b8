//go:build !linux

package watch

import (
	"os"
	"os/exec"

	"golang.org/x/term"
)

// start starts a command, which can't be held here.
func start(fresh func() *exec.Cmd) (cmd *exec.Cmd, resume func(), err error) {
	cmd = fresh()
	return cmd, func() {}, cmd.Start()
}

// adopt does nothing: orphans become the system's children.
func adopt(bool) {}

func reaped(int) bool { return true }

// ofTerminal reports whether we have a terminal, which sends its signals to the whole group.
func ofTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }
