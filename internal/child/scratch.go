package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const scratchPrefix = "llmparity-"

// Scratch makes a temporary folder of ours. The caller removes it; Sweep does when we were killed before.
func Scratch(what string) (string, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-%s-*", scratchPrefix, os.Getpid(), what))
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w", err)
	}
	return dir, nil
}

// Sweep removes the temporary folders of those of our processes that no longer exist.
func Sweep() {
	for _, dir := range scratches() {
		if pid := owner(dir); pid > 0 && !Alive(pid) {
			_ = os.RemoveAll(dir) // somebody else's: not ours to complain about
		}
	}
}

// Scratches lists the temporary folders that belong to the process pid.
func Scratches(pid int) []string {
	var mine []string
	for _, dir := range scratches() {
		if owner(dir) == pid {
			mine = append(mine, dir)
		}
	}
	return mine
}

func scratches() []string {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*")) // the pattern is well formed
	return dirs
}

func owner(dir string) int {
	pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), scratchPrefix), "-")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return 0
	}
	return n
}
