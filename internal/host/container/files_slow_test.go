//go:build slow && linux

package container_test

import (
	"io"
	"os/exec"
	"testing"
	"time"

	"llmparity/internal/host/container/containertest"
	"llmparity/internal/kit/check"
)

// Links in a container lead to its own files, whatever this machine has there.
func TestOpen(t *testing.T) {
	containertest.Setup(t)
	containertest.Run(t, "box", "echo inside >/tmp/hostname; ln -s /tmp /etc-of-box; ln -s /tmp/hostname /link; while :; do busybox sleep 1; done",
		"-e", "PATH=/bin")
	c := found(t, "box")
	for n := 0; ; n++ {
		f, err := c.Open("/etc-of-box/../link")
		if err == nil {
			text, err := io.ReadAll(f)
			check.Err(t, err)
			_ = f.Close()
			if string(text) != "inside\n" {
				t.Errorf("%q", text)
			}
			break
		}
		if time.Sleep(50 * time.Millisecond); n > 200 {
			t.Fatal(err)
		}
	}
	if _, err := c.Open("/etc/debian_version"); err == nil {
		t.Error("a file of this machine is open")
	}
}

// What a container may still use falls with its use, and the kernel's kills at its limit are counted.
func TestMemoryLimit(t *testing.T) {
	containertest.Setup(t)
	containertest.Run(t, "box", "while :; do busybox sleep 1; done", "-m", "64m", "--memory-swap", "64m",
		"-e", "PATH=/bin")
	c := found(t, "box")
	free, ok := c.Left()
	if !ok || free < 40<<20 || free > 64<<20 || c.MemoryKills() != 0 {
		t.Fatalf("%d bytes left, %v; %d kills", free, ok, c.MemoryKills())
	}
	out, err := exec.Command(c.Program, "exec", c.ID, "busybox", "tail", "/dev/zero").CombinedOutput()
	if err == nil || c.MemoryKills() != 1 {
		t.Errorf("%d kills after %v: %s", c.MemoryKills(), err, out)
	}
}
