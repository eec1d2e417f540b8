package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func own(cmd *exec.Cmd, deathSignal bool) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if deathSignal {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}

// signalGroup ignores errors: the only one that can come is that nobody is left.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }

// Tagged lists the processes alive that were started by the process pid, or by their children.
func Tagged(pid int) []int { return carrying(fmt.Sprintf("%s=%d", Tag, pid)) }

// carrying lists the processes alive in whose environment a variable has a value.
func carrying(variable string) (found []int) {
	for _, pid := range pids() {
		env, err := os.ReadFile(filepath.Join(proc(pid), "environ")) // ended meanwhile, or not ours to read
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), variable) {
			found = append(found, pid)
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
