// Package containertest gives tests real containers of Podman, in folders of their own and without a network.
//
// It needs podman, runc and a static busybox (`scripts/setup podman`), and root. It is no part of the program.
package containertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// busybox is where Debian's busybox-static puts it.
const busybox = "/bin/busybox"

// Image is the name of an image that has a shell and nothing else.
const Image = "llmparity-test"

const engineConf = `[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
tmp_dir = %q
[containers]
netns = "none"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
`

const storageConf = `[storage]
driver = "vfs"
graphroot = %q
runroot = %q
`

// Setup prepares Podman for a test: containers, images and state are in temporary folders, by way of the environment,
// which programs that the test starts inherit. It skips the test where Podman is missing.
func Setup(t *testing.T) {
	t.Helper()
	for _, program := range []string{"podman", "runc", busybox} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("scripts/setup podman: ", err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir, err := os.MkdirTemp("", "lp") // sockets below need short paths
	must(t, err)
	t.Cleanup(func() {
		// What conmon starts at a container's end may write for a moment longer than the container is there.
		err := os.RemoveAll(dir)
		for begin := time.Now(); err != nil && time.Since(begin) < 20*time.Second; err = os.RemoveAll(dir) {
			time.Sleep(50 * time.Millisecond)
		}
		must(t, err)
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(in("engine.conf"), fmt.Appendf(nil, engineConf, in("tmp")), 0o600))
	must(t, os.WriteFile(in("storage.conf"), fmt.Appendf(nil, storageConf, in("graph"), in("run")), 0o600))
	t.Setenv("CONTAINERS_CONF", in("engine.conf"))
	t.Setenv("CONTAINERS_STORAGE_CONF", in("storage.conf"))
	must(t, os.MkdirAll(in("image/bin"), 0o755))
	must(t, os.MkdirAll(in("image/tmp"), 0o777))
	program, err := os.ReadFile(busybox)
	must(t, err)
	must(t, os.WriteFile(in("image/bin/busybox"), program, 0o755))
	must(t, os.Symlink("busybox", in("image/bin/sh")))
	t.Setenv("TMPDIR", dir)
	run(t, "tar", "-C", in("image"), "-cf", in("image.tar"), ".")
	Podman(t, "import", in("image.tar"), Image)
}

// Podman runs a command of Podman, and returns its output.
func Podman(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "podman", args...)
}

// Run starts a container with a shell script, which is removed with the test.
func Run(t *testing.T, name, script string, flags ...string) {
	t.Helper()
	args := append([]string{"run", "-d", "--name", name}, flags...)
	Podman(t, append(args, Image, "/bin/sh", "-c", script)...)
	t.Cleanup(func() { Podman(t, "rm", "-f", "-t", "0", name) })
}

// Libraries returns the flags with which a container also has this machine's libraries and programs.
func Libraries(more ...string) []string {
	flags := []string{"-e", "PATH=/bin:/usr/bin"}
	for _, dir := range []string{"/usr", "/lib", "/lib64", "/etc/alternatives"} {
		flags = append(flags, "-v", dir+":"+dir+":ro")
	}
	return append(flags, more...)
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir = os.TempDir() // conmon may leave a file where it was started
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
