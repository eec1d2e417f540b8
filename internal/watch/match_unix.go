//go:build unix

package watch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// readsFromUs reports whether a process reads our output in a pipeline, such as `llmparity watch … | tee out.csv`. Then
// it is in our group and reads from a pipe while we write to one. Without /proc it reports false.
func readsFromUs(pid int) bool {
	group, err := unix.Getpgid(pid)
	if err != nil || group != unix.Getpgrp() {
		return false
	}
	pipe := func(pid string, fd int) string {
		to, err := os.Readlink(fmt.Sprintf("/proc/%s/fd/%d", pid, fd))
		if err != nil || !strings.HasPrefix(to, "pipe:") {
			return ""
		}
		return to
	}
	in := pipe(fmt.Sprint(pid), 0)
	return in != "" && in != pipe("self", 0) && (pipe("self", 1) != "" || pipe("self", 2) != "")
}
