//go:build !linux

package proc

import (
	"errors"
	"fmt"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"llmparity/internal/sample"
)

// Look gives who the process pid is now; sample.ErrGone where there is none, or none any more but for its exit code.
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

// glance is Look for many at once: it does not ask for their state.
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

// isZombie tells whether nothing is left of a process but its exit code. Asking may take a program of the system's: it
// is done for members alone.
func isZombie(p *process.Process) bool {
	status, err := p.Status()
	return err == nil && len(status) > 0 && status[0] == process.Zombie
}

// gone recognises the errors of a process that has ended. Systems and calls tell that in many ways, so it is asked for.
func gone(pid int, err error) error {
	if there, asked := process.PidExists(int32(pid)); asked == nil && !there ||
		errors.Is(err, process.ErrorProcessNotRunning) {
		err = sample.ErrGone
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// CommandLine gives a process's arguments; none where they can't be read, or were given up.
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

// ProcessOf gives the process that a thread is of; threads have no numbers of that kind here.
func ProcessOf(pid int) int { return pid }

// Usable tells why processes can't be looked at.
func Usable() error { return nil }

func isGone(err error) bool { return errors.Is(err, sample.ErrGone) }

// All lists the processes there are.
func All() ([]int, error) {
	found, err := process.Pids()
	pids := make([]int, len(found))
	for i, pid := range found {
		pids[i] = int(pid)
	}
	return pids, err
}

// isYoung tells whether a process was started not long ago.
func isYoung(p Process) bool { return time.Since(time.UnixMilli(int64(p.Start))) < youth }

// births tells which processes may be new since it was last asked: those that were not listed then.
type births struct {
	known map[int]bool
	rest  time.Time // until when not everybody is looked at
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

// missed asks for a pid again, which was listed and could not be looked at.
func (b *births) missed(pid int, _ time.Time) { delete(b.known, pid) }

// scanned says what a look at everybody took. There is to be one that often, and more rarely where it would take over
// one part in share of a core.
func (b *births) scanned(took, every time.Duration, share int) {
	b.rest = time.Now().Add(max(every, took*time.Duration(share)))
}
