package watch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"llmparity/internal/sample/proc"
)

// start starts a command and holds it behind its exec, before its first instruction: as its tracer, for that long. The
// kernel gives a program that is traced no more rights than its tracer's, so one that is to get others' is not held.
func start(fresh func() *exec.Cmd) (cmd *exec.Cmd, resume func(), err error) {
	runtime.LockOSThread() // a tracer is a thread
	cmd = fresh()
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.SysProcAttr = attr
	if attr.Ptrace = !privileged(cmd.Path); attr.Ptrace {
		if err = cmd.Start(); err == nil {
			return cmd, held(cmd.Process.Pid), nil
		}
		// Nobody may trace here, perhaps; sandboxes have many errors for that.
		cmd = fresh()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	runtime.UnlockOSThread()
	return cmd, func() {}, cmd.Start()
}

// held waits until a traced command stands still, and gives what lets it go. What is waited for is left for Wait to
// see.
func held(pid int) (resume func()) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return func() {
		_ = syscall.PtraceDetach(pid) // it may have been killed
		runtime.UnlockOSThread()
	}
}

// privileged tells whether a program gets rights of its file.
func privileged(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return true
	}
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}

// adopt makes who loses its parent in a command's tree a child of ours, or no more.
func adopt(is bool) {
	value := uintptr(0)
	if is {
		value = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, value, 0, 0, 0) // kernels before 3.4 can't
}

// reaped tells whether nothing is left of a process that has ended, as far as that is ours to do.
func reaped(pid int) bool {
	n, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return n == pid || errors.Is(err, unix.ECHILD)
}

// decides tells whether a process has got the terminal's SIGINT and need not end by it.
func decides(pid int) bool {
	group, err := unix.Getpgid(pid)
	return err == nil && group == unix.Getpgrp() && proc.Takes(pid, unix.SIGINT)
}

// OfTerminal tells whether we are in the foreground of a terminal, which sends its signals to the whole group.
func OfTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }() // it was only asked
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
