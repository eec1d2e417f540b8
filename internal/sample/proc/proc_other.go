//go:build !linux

package proc

import (
	"context"
	"fmt"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// cheapMethod is the method of the cheap source.
const cheapMethod = Portable

// Sources returns the sources of a process. role is what the process is to its engine: renderer, server …
func Sources(pid int, role string) ([]sample.Source, error) {
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

// SourcesOfOurs is Sources, because no peak can be reset here.
func SourcesOfOurs(pid int, role string) ([]sample.Source, error) { return Sources(pid, role) }

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
