//go:build !linux

package proc

import (
	"errors"
	"fmt"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"llmparity/internal/sample"
)

// Look returns the current process with a pid; sample.ErrGone if there is none, or a zombie.
func Look(pid int) (Process, error) {
	who, err := glance(pid)
	if err != nil {
		return who, err
	}
	if p, err := process.NewProcess(int32(pid)); err != nil || isZombie(p) {
		return Process{}, gone(pid, process.ErrorProcessNotRunning)
	}
	return who, nil
}

// glance is Look for checking many processes, without their state.
func glance(pid int) (Process, error) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return Process{}, gone(pid, err)
	}
	parent, err := p.Ppid()
	if err != nil {
		return Process{}, gone(pid, err)
	}
	start, err := p.CreateTime()
	if err != nil {
		return Process{}, gone(pid, err)
	}
	name, err := p.Name()
	if err != nil {
		return Process{}, gone(pid, err)
	}
	return Process{PID: pid, Parent: int(parent), Start: uint64(start), Name: name}, nil
}

// isZombie reports whether a process is a zombie. It may start a program of the system, so it is only called for
// members.
func isZombie(p *process.Process) bool {
	status, err := p.Status()
	return err == nil && len(status) > 0 && status[0] == process.Zombie
}

// gone recognises errors of a process that has ended. They differ between systems and calls, so it asks the system.
func gone(pid int, err error) error {
	if there, asked := process.PidExists(int32(pid)); asked == nil && !there ||
		errors.Is(err, process.ErrorProcessNotRunning) {
		err = sample.ErrGone
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// CommandLine returns a process's arguments; none if they can't be read.
func CommandLine(pid int) []string {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return nil
	}
	args, err := p.CmdlineSlice()
	if err != nil {
		return nil
	}
	return args
}

func isThread(int) bool { return false }

// ProcessOf returns pid: threads have no ids of that kind here.
func ProcessOf(pid int) int { return pid }

// Usable returns nil here.
func Usable() error { return nil }

func isGone(err error) bool { return errors.Is(err, sample.ErrGone) }

// All returns all pids.
func All() ([]int, error) {
	found, err := process.Pids()
	pids := make([]int, len(found))
	for i, pid := range found {
		pids[i] = int(pid)
	}
	return pids, err
}

// isYoung reports whether a process was started recently.
func isYoung(p Process) bool { return time.Since(time.UnixMilli(int64(p.Start))) < youth }

// births finds processes that may be new: those that the last call did not list.
type births struct {
	known map[int]bool
	rest  time.Time // no check of all processes until then
}

func newBirths() *births { return &births{known: map[int]bool{}} }

func (b *births) close() {}

func (b *births) next(everybody bool) (pids []int, all bool) {
	listed, err := All()
	if err != nil {
		return nil, false
	}
	known := make(map[int]bool, len(listed))
	for _, pid := range listed {
		known[pid] = true
		if !b.known[pid] {
			pids = append(pids, pid)
		}
	}
	b.known = known
	if everybody || time.Now().After(b.rest) {
		return listed, true
	}
	return pids, false
}

// missed returns a pid again that was listed and could not be read.
func (b *births) missed(pid int, _ time.Time) { delete(b.known, pid) }

// scanned takes the duration of a check of all processes. The next follows after every, or later so that checks use at
// most 1/share of a core.
func (b *births) scanned(took, every time.Duration, share int) {
	b.rest = time.Now().Add(max(every, took*time.Duration(share)))
}
