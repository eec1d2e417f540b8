package machine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/internal/host/machine"
	"llmparity/internal/kit/check"
)

// A large program that others run, too, is named; not where all of its processes are ours, or where it is small.
func TestProgramsBesideOurs(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	check.Err(t, err)
	large, small := filepath.Join(t.TempDir(), "large"), filepath.Join(t.TempDir(), "small")
	text := check.Read(t, sleep)
	check.Err(t, os.WriteFile(small, text, 0o755))
	check.Err(t, os.WriteFile(large, append(text, make([]byte, 8<<20)...), 0o755))
	start := func(program string, args ...string) int {
		cmd := exec.Command(program, args...)
		check.Err(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
		return cmd.Process.Pid
	}
	one, other, tiny := start(large, "600"), start(large, "600"), start(small, "600")
	start(small, "600")
	if got := machine.Beside([]int{one, tiny}, nil); got != "another "+large+" is running" {
		t.Errorf("%q, want %q", got, large)
	}
	if got := machine.Beside([]int{one, other, tiny}, []string{large + "-not"}); got != "" {
		t.Errorf("all are ours: %q", got)
	}
	weights := filepath.Join(t.TempDir(), "weights")
	check.Err(t, os.Symlink(small, weights)) // the program's own file is one that it maps
	const says = " outside the launch, too"
	if got := machine.Beside([]int{one, other, tiny}, []string{weights}); got != small+" maps "+small+says {
		t.Errorf("weights that others map: %q", got)
	}
	if got := machine.Beside([]int{one, other}, []string{weights}); got != "" {
		t.Errorf("weights that only others map: %q", got)
	}
}
