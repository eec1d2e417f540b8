//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/internal/child"
	"llmparity/internal/fault"
)

// An interrupted drawing leaves no figure, browser or profile.
func TestSignalWhileDrawingFigures(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := comparetest.Write(t, root, "one", comparetest.Native(1))
	dir := filepath.Join(root, "figures")
	cmd := program(t, "report", run, "--figures", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	check(t, cmd.Start())
	waitFor(t, "a browser to run", func() bool { return len(child.Tagged(cmd.Process.Pid)) > 0 })
	groups := groupsOf(t, cmd.Process.Pid)
	check(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // its exit code is what counts
	if code := cmd.ProcessState.ExitCode(); code != fault.Interrupted.ExitCode() {
		t.Errorf("exit code %d\n%s", code, &stderr)
	}
	waitFor(t, "its processes to end", func() bool {
		return len(child.Tagged(cmd.Process.Pid))+
			len(members(groups, cmd.Dir)) == 0
	})
	if left := temporary(t, cmd.Dir); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dir, err)
	}
}
