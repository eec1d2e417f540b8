//go:build !linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
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

// ProcessOf returns pid: threads have no ids of that kind here.
func ProcessOf(pid int) int { return pid }

// Usable returns nil here.
func Usable() error { return nil }

// Young reports whether a process is less than a second old: it may soon exec another program.
func (p Process) Young() bool { return time.Since(time.UnixMilli(int64(p.Start))) < youth }

// lastPID is unknown here.
func lastPID() int { return 0 }

// CheapMethod is the method of the cheap source.
const CheapMethod = Portable

// Sources returns the sources of a process. role is what the process is to its engine: renderer, server … No peak can
// be reset here.
func Sources(pid int, role string, _ bool) ([]sample.Source, error) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return nil, gone(pid, err)
	}
	start, err := p.CreateTime()
	if err != nil {
		return nil, gone(pid, err)
	}
	return []sample.Source{&portable{proc: p, Source: record.Source{Role: role, Method: Portable, PID: pid,
		Start: uint64(start), Every: FastEvery,
		Sees:  "RSS and VMS as the system reports them",
		Blind: "PSS and USS, compression, GPU memory, peaks between two reads"}}}, nil
}

// CPUTime is not read here.
func CPUTime(int) (time.Duration, bool) { return 0, false }

// WithCPUTime adds nothing: the CPU time of other processes is not read here.
func WithCPUTime(sources []sample.Source) []sample.Source { return sources }

type portable struct {
	record.Source
	proc *process.Process
}

func (s *portable) Read(ctx context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	m, err := s.proc.MemoryInfoWithContext(ctx)
	r.End = time.Now()
	if err != nil || m.RSS == 0 {
		if s.ended() {
			return fmt.Errorf("process %d: %w", s.PID, sample.ErrGone)
		}
	}
	if err != nil {
		return gone(s.PID, err)
	}
	r.RSS, r.VMS = int64(m.RSS), int64(m.VMS)
	return nil
}

// ended reports whether the process has ended, is a zombie, or its pid was reused. Reading such a process fails in
// different ways.
func (s *portable) ended() bool {
	now, err := process.NewProcess(s.proc.Pid)
	if err != nil {
		return isGone(gone(s.PID, err))
	}
	start, err := now.CreateTime()
	return err == nil && uint64(start) != s.Start || isZombie(now)
}
