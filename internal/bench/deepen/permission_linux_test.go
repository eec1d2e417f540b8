package deepen

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
)

// unprivileged has the process that a test without permission is to sample.
const unprivileged = "LLMPARITY_TEST_UNPRIVILEGED"

func TestMain(m *testing.M) {
	if os.Getenv(unprivileged) != "" {
		sampleOther()
		return
	}
	childtest.Main(m)
}

// sampleOther samples init, which belongs to root, and prints why it can't.
func sampleOther() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := sampling(ctx, []int{1})
	if err == nil {
		_, err = s.stop(ctx, nil)
	}
	os.Stdout.WriteString(err.Error())
}

// A user who may not sample reads what to do, on a system that lets users sample what is their own.
func TestSamplingNeedsPermission(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip("perf is not here")
	}
	dir, err := os.MkdirTemp("", "unprivileged")
	check.Err(t, err)
	defer os.RemoveAll(dir)
	check.Err(t, os.Chmod(dir, 0o777))
	self, err := os.Executable()
	check.Err(t, err)
	test := filepath.Join(dir, "test")
	check.Err(t, os.WriteFile(test, check.Read(t, self), 0o755))
	cmd := exec.Command(test)
	cmd.Env = append(os.Environ(), unprivileged+"=1", "HOME="+dir, "TMPDIR="+dir)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "perf could not sample: ") ||
		!strings.Contains(string(out), "; run as root, or set kernel.perf_event_paranoid to 1, which is ") ||
		strings.Contains(string(out), "\n") || len(out) > 300 {
		t.Errorf("%v: %s", err, out)
	}
}
