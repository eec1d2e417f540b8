//go:build unix

package proctest

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
)

// Family starts a shell that starts n-1 processes, and returns all pids, the shell's first.
func Family(b testing.TB, n int) (pids []int) {
	b.Helper()
	cmd := exec.Command("sh", "-c", fmt.Sprintf("for i in $(seq %d); do sleep 600 & echo $!; done; wait", n-1))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the shell and what it started
		_ = cmd.Wait()                                      // killed
	})
	pids = append(pids, cmd.Process.Pid)
	for range n - 1 {
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			b.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
