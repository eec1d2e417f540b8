package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"llmparity/internal/sample"
)

// Look returns the current process with a pid; sample.ErrGone if there is none, or a zombie.
func Look(pid int) (Process, error) {
	var buf [1024]byte // longer than any stat file
	n, err := readSmall(of(pid, "stat"), buf[:])
	if err == unix.ENOENT || err == unix.ESRCH {
		return Process{}, sample.ErrGone // the usual case, made cheap
	}
	if err != nil {
		return Process{}, gone(pid, err)
	}
	p, state, ok := parseStat(buf[:n])
	if !ok {
		return Process{}, gone(pid, errors.New("can't parse its stat file"))
	}
	if state == 'Z' || state == 'X' {
		return Process{}, sample.ErrGone
	}
	return p, nil
}

// glance is Look for checking many processes.
func glance(pid int) (Process, error) { return Look(pid) }

func of(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// readSmall reads a file with as few system calls as possible, because it reads all processes of the machine.
func readSmall(path string, buf []byte) (n int, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		if n, err = unix.Read(fd, buf); err != unix.EINTR {
			return n, err
		}
	}
}

// parseStat reads a stat file. The name is in parentheses and may contain parentheses and blanks.
func parseStat(text []byte) (p Process, state byte, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return p, 0, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return p, 0, false
	}
	p = Process{PID: pid, Name: string(text[open+1 : end])}
	n := 2 // the name is the second field
	for field := range bytes.FieldsSeq(text[end+1:]) {
		switch n++; n {
		case 3:
			state = field[0]
		case 4:
			p.Parent, err = strconv.Atoi(string(field))
		case 22:
			p.Start, err = strconv.ParseUint(string(field), 10, 64)
			ok = err == nil
		case 38: // the signal to the parent at its end
			p.thread = len(field) > 0 && field[0] == '-'
			return p, state, ok
		}
		if err != nil {
			return p, state, false
		}
	}
	return p, state, ok
}

// CommandLine returns a process's arguments; none if they can't be read.
func CommandLine(pid int) []string {
	text, err := os.ReadFile(of(pid, "cmdline"))
	text = bytes.TrimRight(text, "\x00")
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// ProcessOf returns the process of a thread, because /proc also has a hidden folder for each thread; or pid itself.
func ProcessOf(pid int) int {
	if group, err := strconv.Atoi(statusLine(pid, "Tgid")); err == nil {
		return group
	}
	return pid
}

func isThread(pid int) bool { return ProcessOf(pid) != pid }

// statusLine returns a field of a process's status; empty if there is none.
func statusLine(pid int, name string) string {
	text, err := os.ReadFile(of(pid, "status"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
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

// All returns all pids.
func All() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

func isGone(err error) bool { return errors.Is(err, sample.ErrGone) }

// isYoung reports whether a process was started recently.
func isYoung(p Process) bool {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return true
	}
	start := time.Duration(p.Start) * (time.Second / ticks)
	return time.Duration(now.Nano())-start < youth
}

// ticks is the unit of start times, per second, in the kernel's interface.
const ticks = 100
