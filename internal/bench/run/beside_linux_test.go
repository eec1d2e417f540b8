package run_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// A launch of an engine of one process warns if its program also runs outside the launch.
func TestProgramThatAlsoRunsOutside(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	check.Err(t, err)
	server := filepath.Join(t.TempDir(), "server") // a copy, which nobody else runs
	check.Err(t, os.WriteFile(server, append(check.Read(t, sleep), make([]byte, 8<<20)...), 0o755))
	var pids [2]int
	for i := range pids {
		cmd := exec.Command(server, "600")
		check.Err(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
		pids[i] = cmd.Process.Pid
	}
	of := func(seen ...int) string {
		o := options(t, &scripted{name: "a", opened: func(p engine.Probe) {
			for _, pid := range seen {
				p.Attach(processSource(pid))
			}
		}})
		var r *record.Run
		synctest.Test(t, func(t *testing.T) { r = whole(t, o) })
		for _, w := range r.Attempts[0].Warnings {
			if w.Code == record.ProgramShared {
				return w.Text
			}
		}
		return ""
	}
	if got := of(pids[0]); !strings.HasPrefix(got, "another "+server+" is running: PSS splits a file's memory") {
		t.Errorf("beside another: %q", got)
	}
	if got := of(pids[:]...); got != "" {
		t.Errorf("both are the engine's: %q", got)
	}
}
