package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// largeProgram is the size of a program from which sharing its file changes PSS.
const largeProgram = 8 << 20

// Beside names a large program of these processes that others run, too: they share its file, so that each counts only
// a part of it in PSS. Empty: none, or unknown without /proc.
func Beside(pids []int) string {
	program := func(pid int) os.FileInfo {
		info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)) // it may have ended, or be another user's
		if err != nil || info.Size() < largeProgram {
			return nil
		}
		return info
	}
	var ours []os.FileInfo
	known := func(p os.FileInfo) bool {
		return slices.ContainsFunc(ours, func(o os.FileInfo) bool { return os.SameFile(o, p) })
	}
	for _, pid := range pids {
		if p := program(pid); p != nil && !known(p) {
			ours = append(ours, p)
		}
	}
	if len(ours) == 0 {
		return ""
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || slices.Contains(pids, pid) {
			continue
		}
		if p := program(pid); p == nil || !known(p) {
			continue
		}
		if path, err := os.Readlink(dir + "/exe"); err == nil {
			return path
		}
	}
	return ""
}
