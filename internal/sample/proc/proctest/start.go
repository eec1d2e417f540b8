// Package proctest starts commands that tests of processes communicate with.
package proctest

import (
	"bufio"
	"io"
	"os/exec"
	"testing"
)

// Start starts a command that a test communicates with, and kills it at the test's end.
func Start(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Scanner) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
		}
	})
	return in, bufio.NewScanner(pipe)
}
