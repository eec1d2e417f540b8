package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Tagged lists the processes alive that were started by the process pid, or by their children.
func Tagged(pid int) []int { return carrying(fmt.Sprintf("%s=%d", Tag, pid)) }

// carrying lists the processes alive in whose environment a variable has a value.
func carrying(variable string) []int {
	want := []byte(variable)
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well formed
	var found []int
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil {
			continue // ended meanwhile, or not ours to read
		}
		for _, v := range bytes.Split(env, []byte{0}) {
			if bytes.Equal(v, want) {
				n, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
				found = append(found, n)
				break
			}
		}
	}
	return found
}

// endTagged ends the processes that were started by us or by their children, with their groups, and counts them.
func endTagged() int {
	pids := Tagged(os.Getpid())
	for _, pid := range pids {
		if group, err := syscall.Getpgid(pid); err == nil && group != syscall.Getpgrp() {
			_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended meanwhile
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(pids)
}
