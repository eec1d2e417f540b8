package sample

import (
	"context"
	"testing"
	"time"

	"llmparity/internal/record"
)

// constant is a source that reads nothing: what a tick over it takes is the sampler's own.
type constant struct{ pid int }

func (c constant) Describe() record.Source {
	return record.Source{Method: record.MethodStatm, PID: c.pid, Every: time.Hour, Kernel: true}
}

func (c constant) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	r.RSS, r.VMS, r.Shared = 3<<20, 4<<20, 1<<20
	r.End = time.Now()
	return nil
}

type nowhere struct{}

func (nowhere) Source(record.Source) int  { return 1 }
func (nowhere) Sample(int, record.Sample) {}
func (nowhere) Total(record.Total)        {}
func (nowhere) Warn(record.Warning)       {}

func TestTickDoesNotAllocate(t *testing.T) {
	s := New(t.Context(), nowhere{})
	defer s.Stop()
	for pid := range 10 {
		s.Attach(constant{pid + 1})
	}
	g := s.groups[0]
	if n := testing.AllocsPerRun(100, func() { s.pass(s.ctx, g, nil) }); n > 0 {
		t.Errorf("a tick makes %.0f allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { s.scan(g) }); n > 0 {
		t.Errorf("a scan makes %.0f allocations", n)
	}
}
