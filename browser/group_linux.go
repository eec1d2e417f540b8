package browser

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// typeOf gives the type that Chrome starts a child with, as its command line tells it: zygote, utility …
func typeOf(pid int) string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return "browser-helper"
	}
	// A renderer forked from a zygote rewrites its command line, with blanks between the arguments.
	for _, arg := range bytes.FieldsFunc(line, func(r rune) bool { return r == 0 || r == ' ' }) {
		if kind, ok := bytes.CutPrefix(arg, []byte("--type=")); ok {
			return roleOf(strings.TrimSuffix(string(kind), "-process"))
		}
	}
	return "browser-helper"
}

// smallSharedMemory tells whether /dev/shm is too small for a browser, as in a container with its default of 64 MB.
func smallSharedMemory() bool {
	var s unix.Statfs_t
	return unix.Statfs("/dev/shm", &s) != nil || s.Blocks*uint64(s.Bsize) < 1<<29
}
