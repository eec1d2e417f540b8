package watch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// start starts a command and holds it as its tracer before its first instruction. Programs with elevated rights are not
// held, because the kernel withholds their rights while they are traced.
func start(fresh func() *exec.Cmd) (cmd *exec.Cmd, resume func(), err error) {
	runtime.LockOSThread() // tracers are threads
	cmd = fresh()
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.SysProcAttr = attr
	if attr.Ptrace = !privileged(cmd.Path); attr.Ptrace {
		if err = cmd.Start(); err == nil {
			return cmd, held(cmd.Process.Pid), nil
		}
		// Tracing may be forbidden; sandboxes report that in many ways.
		cmd = fresh()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	runtime.UnlockOSThread()
	return cmd, func() {}, cmd.Start()
}

// held waits until a traced command stops, and returns a function that lets it run. It leaves the exit status for Wait.
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

// privileged reports whether a program runs with elevated rights.
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

// adopt makes orphans of a command's tree children of ours, or stops that.
func adopt(is bool) {
	value := uintptr(0)
	if is {
		value = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, value, 0, 0, 0) // not before Linux 3.4
}

// reaped reports whether an ended process is gone, as far as we can reap it.
func reaped(pid int) bool {
	n, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return n == pid || errors.Is(err, unix.ECHILD)
}

// ofTerminal reports whether we are in the foreground of a terminal, which sends its signals to the whole group.
func ofTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
