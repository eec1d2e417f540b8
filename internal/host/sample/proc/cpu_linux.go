package proc

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// cpuTime reads the CPU time of a process at the edges of phases and requests.
//
// It reads the process's CPU clock: in nanoseconds, and with the threads that have ended. /proc/PID/schedstat has the
// first thread only, and /proc/PID/stat counts in hundredths of a second. Only stat has the time of children that have
// ended between two readings.
type cpuTime struct{ record.Source }

// WithCPUTime adds the source of the CPU time to those of a process; to none it adds nothing.
func WithCPUTime(sources []sample.Source) []sample.Source {
	if len(sources) == 0 {
		return nil
	}
	of := sources[0].Describe()
	return append(sources, &cpuTime{record.Source{Role: of.Role, PID: of.PID, Start: of.Start,
		Method: record.MethodCPUTime, Kernel: true,
		Sees: "CPU time of all threads of the process, in nanoseconds where the kernel has a clock of the process, " +
			"else in hundredths of a second; CPU time of its ended children, in hundredths of a second",
		Blind: "work on a GPU; time that threads wait; children that the process has not waited for"}})
}

func (s *cpuTime) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	p, err := procfs.NewProc(s.PID)
	if err != nil {
		return gone(s.PID, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return gone(s.PID, err)
	}
	if stat.Starttime != s.Start {
		return fmt.Errorf("process %d: pid reused: %w", s.PID, sample.ErrGone)
	}
	took, ok := clockOf(s.PID)
	if !ok {
		took = inTicks(int64(stat.UTime + stat.STime))
	}
	r.End = time.Now()
	r.Values = []record.Value{{Name: record.CPUTime, Value: milliseconds(took)},
		{Name: record.CPUTimeChildren, Value: milliseconds(inTicks(int64(stat.CUTime + stat.CSTime)))}}
	return nil
}

// CPUTime returns the CPU time of a process so far.
func CPUTime(pid int) (time.Duration, bool) { return clockOf(pid) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func inTicks(n int64) time.Duration { return time.Duration(n) * (time.Second / ticks) }

// clockOf reads the CPU clock of another process, as clock_getcpuclockid(3) names it. Without one it returns false.
func clockOf(pid int) (time.Duration, bool) {
	const scheduler = 2 // CPUCLOCK_SCHED: what the scheduler counted
	var now unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|scheduler), &now) != nil {
		return 0, false
	}
	return time.Duration(now.Nano()), true
}
