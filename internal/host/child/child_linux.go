package child

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

func own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}

// signalGroup ignores errors, because the only possible one is that the group is gone.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }

// Tagged lists living processes that process pid or its children started.
func Tagged(pid int) []int { return carrying(ownedBy(pid)) }

// carrying lists living processes whose marks begin so. The environment of a process that is replacing its program
// reads as empty for a moment, so empty ones are read again.
func carrying(mark string) (found []int) {
	unsure := processes()
	for again := 0; len(unsure) > 0 && again < 5; again++ {
		if again > 0 {
			time.Sleep(time.Millisecond)
		}
		unsure = slices.DeleteFunc(unsure, func(p procfs.Proc) bool {
			env, err := p.Environ() // may have ended, or be another user's
			if marked(env, mark) {
				found = append(found, p.PID)
			}
			return err != nil || len(env) > 0
		})
	}
	return found
}

func marked(env []string, mark string) bool {
	return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, mark) })
}

// carries reports whether a process's mark begins so.
func carries(pid int, mark string) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	env, _ := p.Environ() // may have ended, or be another user's
	return marked(env, mark)
}

// killMarked kills the living processes whose marks begin so, with their groups, and counts them.
func killMarked(mark string) int {
	pids := carrying(mark)
	for _, pid := range pids {
		if group, err := syscall.Getpgid(pid); err == nil && group != syscall.Getpgrp() {
			_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(pids)
}
