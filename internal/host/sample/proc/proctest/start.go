// Package proctest starts commands that tests of processes communicate with.
package proctest

import (
	"bufio"
	"io"
	"os/exec"
	"testing"

	"llmparity/internal/kit/check"
)

// Start starts a command that a test communicates with, and kills it at the test's end.
func Start(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Scanner) {
	t.Helper()
	in, err := cmd.StdinPipe()
	check.Err(t, err)
	pipe, err := cmd.StdoutPipe()
	check.Err(t, err)
	check.Err(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
		}
	})
	return in, bufio.NewScanner(pipe)
}
