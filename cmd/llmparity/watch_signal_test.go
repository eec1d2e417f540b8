//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"llmparity/internal/child"
)

func TestSignalsEndWatchingWithWholeRows(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		for _, started := range []bool{false, true} {
			name := uniqueName()
			cmd := program(t, "watch", "--name", name, "--interval", "0.02", "--output", "out.csv")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal's
			if started {
				cmd.Args = append(cmd.Args[:2], "--interval", "0.02", "--output", "out.csv", "--", "sleep", name)
			} else {
				asleep(t, name)
			}
			check(t, cmd.Start())
			path := filepath.Join(cmd.Dir, "out.csv")
			waitFor(t, "rows", func() bool {
				text, _ := os.ReadFile(path) // not there yet: not yet
				return bytes.Count(text, []byte("\n")) > 5
			})
			check(t, cmd.Process.Signal(signal))
			_ = cmd.Wait() // its exit code is what counts
			want := map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGKILL: -1}[signal]
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("%v: exit code %d, want %d\n%s", signal, code, want, &stderr)
			}
			if signal != syscall.SIGKILL && !strings.Contains(stderr.String(), "rows in out.csv") {
				t.Errorf("%v: no summary\n%s", signal, &stderr)
			}
			if rows := rowsOf(t, path); len(rows) < 5 {
				t.Errorf("%v: %d rows", signal, len(rows))
			}
			waitFor(t, "the command to end", func() bool { return len(child.Tagged(cmd.Process.Pid)) == 0 })
		}
	}
}
