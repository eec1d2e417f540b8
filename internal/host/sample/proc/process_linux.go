package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"llmparity/internal/host/sample"
)

// Look returns the current process with a pid; sample.ErrGone if there is none, or a zombie.
func Look(pid int) (Process, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Process{}, gone(pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Process{}, gone(pid, err)
	}
	if stat.State == "Z" || stat.State == "X" {
		return Process{}, fmt.Errorf("process %d: %w", pid, sample.ErrGone)
	}
	return Process{PID: pid, Parent: stat.PPID, Start: stat.Starttime, Name: stat.Comm}, nil
}

// glance is Look for checking many processes.
func glance(pid int) (Process, error) { return Look(pid) }

// CommandLine returns a process's arguments; none if they can't be read.
func CommandLine(pid int) []string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	line, _ := p.CmdLine() // none
	return line
}

// ProcessOf returns the process of a thread, because /proc also has a hidden folder for each thread; or pid itself.
func ProcessOf(pid int) int {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return pid
	}
	status, err := p.NewStatus()
	if err != nil {
		return pid
	}
	return status.TGID
}

// Usable returns an error if /proc is missing or belongs to another pid namespace.
func Usable() error {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return fmt.Errorf("can't read processes: %w", err)
	}
	if self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("/proc belongs to another pid namespace: this process is %s there and %d here", self,
			os.Getpid())
	}
	return nil
}

// lastPID returns the last pid that the kernel assigned; 0: unknown.
func lastPID() int {
	text, _ := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	pid, _ := strconv.Atoi(string(bytes.TrimSpace(text)))
	return pid
}

// Young reports whether a process is less than a second old: it may soon exec another program.
func (p Process) Young() bool {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return true
	}
	start := time.Duration(p.Start) * (time.Second / ticks)
	return time.Duration(now.Nano())-start < youth
}

// ticks is the unit of start times, per second, in the kernel's interface.
const ticks = 100
