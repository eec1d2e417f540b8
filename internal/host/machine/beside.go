package machine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/procfs"
)

// largeProgram is the size of a program from which sharing its file changes PSS.
const largeProgram = 8 << 20

// Beside says which file other processes share with these, so that each counts only a part of it in PSS: a large
// program that they run, too, or these weights, which both map: a browser has its own copy. Empty: none, or unknown
// without /proc.
func Beside(pids []int, weights []string) string {
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
	var maps [][]byte
	for _, file := range weights {
		file, _ = filepath.Abs(file) // fails only without a working directory
		path, err := filepath.EvalSymlinks(file)
		if line := []byte(" " + path + "\n"); err == nil &&
			slices.ContainsFunc(pids, func(pid int) bool { return bytes.Contains(mapsOf(pid), line) }) {
			maps = append(maps, line)
		}
	}
	all, _ := procfs.AllProcs() // none without /proc
	for _, p := range all {
		path, err := p.Executable()
		if err != nil || path == "" || p.PID == os.Getpid() || slices.Contains(pids, p.PID) {
			continue
		}
		if file := program(p.PID); file != nil && known(file) {
			return "another " + path + " is running"
		}
		mapped := mapsOf(p.PID)
		if i := slices.IndexFunc(maps, func(m []byte) bool { return bytes.Contains(mapped, m) }); i >= 0 {
			return fmt.Sprintf("%s maps %s outside the launch, too", path, bytes.TrimSpace(maps[i]))
		}
	}
	return ""
}

// mapsOf lists what a process maps; nothing if it has ended, or is another user's.
func mapsOf(pid int) []byte {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return text
}
