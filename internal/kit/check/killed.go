//go:build unix

package check

import (
	"bufio"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Killed starts a program, kills it and all that it has started at a random moment, and returns the lines that it
// printed until then.
func Killed(t testing.TB, c *exec.Cmd, from, to time.Duration) (printed []string) {
	t.Helper()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	Err(t, err)
	Err(t, c.Start())
	timer := time.AfterFunc(from+rand.N(to-from), func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		printed = append(printed, lines.Text())
	}
	_ = c.Wait() // it was killed, or had ended
	return printed
}
