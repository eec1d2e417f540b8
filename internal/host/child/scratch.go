package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/process"
)

const scratchPrefix = "llmparity-"

// Scratch makes a temporary folder. The caller removes it, or Sweep does if we were killed.
func Scratch(what string) (string, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-%s-*", scratchPrefix, os.Getpid(), what))
	if err != nil {
		return "", fmt.Errorf("creating a temporary folder: %w", err)
	}
	return dir, nil
}

// Sweep removes our temporary folders whose processes no longer exist.
func Sweep() {
	for _, dir := range scratches() {
		if pid := owner(dir); pid > 0 && !Alive(pid) {
			_ = os.RemoveAll(dir) // may be another user's
		}
	}
}

// Alive reports whether process pid exists. Zombies count, and what cannot be checked.
func Alive(pid int) bool {
	there, err := process.PidExists(int32(pid))
	return there || err != nil
}

// Scratches lists the temporary folders of process pid.
func Scratches(pid int) []string {
	return slices.DeleteFunc(scratches(), func(dir string) bool { return owner(dir) != pid })
}

func scratches() []string {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*")) // the pattern is valid
	return dirs
}

func owner(dir string) int {
	pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), scratchPrefix), "-")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return 0 // none of ours
	}
	return n
}

// Abandon immediately kills everything that this program started and removes its temporary folders, for a program that
// is about to exit without waiting. Outside Linux it only removes the folders.
func Abandon() {
	const pause, atMost = 5 * time.Millisecond, time.Second
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); time.Sleep(pause) {
		running := killMarked(ownedBy(os.Getpid()))
		left := Scratches(os.Getpid())
		for _, dir := range left {
			_ = os.RemoveAll(dir) // tried again: a dying process may still write
		}
		if running+len(left) == 0 {
			return
		}
	}
}
