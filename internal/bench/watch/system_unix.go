//go:build unix

package watch

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"llmparity/internal/record"
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

// maxRSS returns the kernel's highest RSS of a command that has ended, or of a process that it waited for;
// record.Absent if it is unknown. A command starts with this program's memory, so a value up to ours says nothing.
func maxRSS(of *os.ProcessState) int64 {
	var ours syscall.Rusage
	theirs, ok := of.SysUsage().(*syscall.Rusage)
	if !ok || syscall.Getrusage(syscall.RUSAGE_SELF, &ours) != nil || theirs.Maxrss <= ours.Maxrss {
		return record.Absent
	}
	if runtime.GOOS == "darwin" {
		return int64(theirs.Maxrss)
	}
	return int64(theirs.Maxrss) << 10
}
