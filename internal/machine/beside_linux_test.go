package machine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/machine"
)

// A large program that others run, too, is named; not where all of its processes are ours, or where it is small.
func TestProgramsBesideOurs(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	check.Err(t, err)
	large, small := filepath.Join(t.TempDir(), "large"), filepath.Join(t.TempDir(), "small")
	text := check.Read(t, sleep)
	check.Err(t, os.WriteFile(small, text, 0o755))
	check.Err(t, os.WriteFile(large, append(text, make([]byte, 8<<20)...), 0o755))
	start := func(program string) int {
		cmd := exec.Command(program, "600")
		check.Err(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
		return cmd.Process.Pid
	}
	one, other, tiny := start(large), start(large), start(small)
	start(small)
	if got := machine.Beside([]int{one, tiny}); got != large {
		t.Errorf("%q, want %q", got, large)
	}
	if got := machine.Beside([]int{one, other, tiny}); got != "" {
		t.Errorf("all are ours: %q", got)
	}
}
