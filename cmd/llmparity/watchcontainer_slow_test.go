//go:build slow && linux

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/host/container/containertest"
	"llmparity/internal/kit/fault"
)

// In a container, processes that `exec` started are watched, too, and its limit is said.
func TestWatchContainer(t *testing.T) {
	racedTest(t)
	containertest.Setup(t)
	containertest.Run(t, "watched", "while :; do busybox sleep 1; done", "-m", "256m", "-e", "PATH=/bin")
	containertest.Podman(t, "exec", "-d", "watched", "/bin/sh", "-c",
		"x=$(busybox head -c 40000000 /dev/zero | busybox tr '\\0' a); busybox sleep 20")
	cmd := program(t, "watch", "--container", "watched", "--duration", "8", "--output", "out.csv")
	_, stderr, code := output(t, cmd)
	if code != 0 || !strings.Contains(stderr, "of its memory limit of 256.0 MiB") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	most := 0.0
	for _, row := range rowsOf(t, filepath.Join(cmd.Dir, "out.csv")) {
		if row[2] == "" || row[3] == "" {
			t.Errorf("row %v", row)
		}
		size, err := strconv.ParseFloat(row[3], 64)
		check(t, err)
		most = max(most, size)
	}
	if most < 38 {
		t.Errorf("the largest process has %.1f MiB; the one that exec started has 38", most)
	}
}

// A process that the kernel ends at the container's limit is named, by class and limit.
func TestWatchContainerOutOfMemory(t *testing.T) {
	racedTest(t)
	containertest.Setup(t)
	containertest.Run(t, "full", "/bin/busybox sleep 2; /bin/busybox tail /dev/zero", "-m", "64m", "--memory-swap", "64m")
	cmd := program(t, "watch", "--container", "full")
	ends(t, cmd, fault.Run, "container full: the kernel ended a process at the memory limit of 64.0 MiB (oom)")
}

func TestWatchContainerThatIsNotThere(t *testing.T) {
	racedTest(t)
	containertest.Setup(t)
	ends(t, program(t, "watch", "--container", "none"), fault.NothingToWatch, "there is no container none")
	containertest.Run(t, "over", "exit 3")
	containertest.Podman(t, "wait", "over")
	ends(t, program(t, "watch", "--container", "over"), fault.NothingToWatch, "does not run (exited, exit code 3)")
}
