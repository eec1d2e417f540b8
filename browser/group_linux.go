package browser

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"llmparity/internal/sample/proc"
)

// group lists the living processes of a process group. Those that ended and wait for somebody to notice are not alive.
func group(pgid int) []int {
	all, _ := proc.All() // where there is no /proc nobody is found
	var found []int
	for _, pid := range all {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state ppid pgrp …; the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 3 || fields[0] == "Z" || fields[0] == "X" || fields[2] != strconv.Itoa(pgid) {
			continue
		}
		found = append(found, pid)
	}
	return found
}

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
