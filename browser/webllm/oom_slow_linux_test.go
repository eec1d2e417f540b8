//go:build slow

package webllm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/internal/record"
)

const roomLeft = 96 << 20

// The kernel kills a renderer that runs out of memory, and only that.
func TestOutOfMemoryKillIsRecorded(t *testing.T) {
	const fillBuffers = "(() => { const a = []; for (;;) a.push(new Uint8Array(1 << 23).fill(7)); })()"
	provoke(t, []trouble{
		{name: "killed by the kernel", class: record.OOM, say: "the kernel ended a process for lack of memory",
			load: func(t *testing.T, s *session) {
				for pid, role := range processes(t, s) {
					if role == "renderer" {
						confine(t, pid)
					}
				}
				if _, err := browser.Call[any](t.Context(), s.Page, fillBuffers); err == nil {
					t.Error("memory did not run out")
				}
			}},
		{name: "nothing"},
	}, time.Minute, 2)
}

// confine limits a process to roomLeft more memory. Its memory so far counts in its previous group.
func confine(t *testing.T, pid int) {
	t.Helper()
	parent, limits, err := memoryGroups()
	if err != nil {
		t.Fatalf("cannot limit process groups: %v; run this as root on Linux with memory cgroups", err)
	}
	dir := filepath.Join(parent, fmt.Sprintf("llmparity-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatalf("%v: run this as root on Linux with writable memory cgroups", err)
	}
	t.Cleanup(func() { // empty when the process is reaped
		var err error
		for range 500 {
			if err = os.Remove(dir); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Error(err)
	})
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(text), 0)
	}
	for i, limit := range limits {
		// The second one is for swap, which may not exist.
		if err := write(limit.name, limit.value); err != nil && !(i > 0 && errors.Is(err, os.ErrNotExist)) {
			t.Fatal(err)
		}
	}
	if err := write("cgroup.procs", strconv.Itoa(pid)); err != nil {
		t.Fatal(err)
	}
}

type groupLimit struct{ name, value string }

// memoryGroups returns where groups can be created in either hierarchy, and the files with their limits.
func memoryGroups() (parent string, limits []groupLimit, err error) {
	room := strconv.Itoa(roomLeft)
	const root = "/sys/fs/cgroup"
	if controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
		if !strings.Contains(string(controllers), "memory") {
			return "", nil, fmt.Errorf("%s has no memory controller", root)
		}
		err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
		return root, []groupLimit{{"memory.max", room}, {"memory.swap.max", "0"}}, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(string(own)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
			return filepath.Join(root, "memory", path),
				[]groupLimit{{"memory.limit_in_bytes", room}, {"memory.memsw.limit_in_bytes", room}}, nil
		}
	}
	return "", nil, errors.New("the kernel has no memory cgroups")
}
