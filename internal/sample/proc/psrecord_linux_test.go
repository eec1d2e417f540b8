package proc_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/internal/sample/proc/proctest"
)

// atMost is the share of psrecord's CPU time that a sample of ours may take.
const atMost = 0.1

// BenchmarkAgainstPsrecord watches one process with psrecord and with our sampler and record, pair by pair, and compares the
// CPU time of a sample of resident and virtual size that is read and written down.
//
// Both run without a pause between samples, as psrecord does by default: at ten samples a second most of the CPU time of
// either is the kernel's, waking a thread. The figures at that rate are reported beside, whole process each, start included in
// neither.
func BenchmarkAgainstPsrecord(b *testing.B) {
	psrecord := proctest.Find(b, "../../../scripts")
	target := exec.Command("sleep", "600")
	if err := target.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = target.Process.Kill()
		_ = target.Wait() // killed, as it should be
	}()
	pid := target.Process.Pid
	var ratios, ourRates, theirRates, slept []float64
	for range 5 {
		start, _ := psrecord.Watch(b, pid, time.Millisecond, "--interval", "1")
		cpu, n := psrecord.Watch(b, pid, 2*time.Second)
		theirs := float64(cpu-start) / float64(n)
		cpu, n = watchWithSampler(b, pid, 0, 2*time.Second)
		ours := float64(cpu) / float64(n)
		ratios = append(ratios, ours/theirs)
		b.Logf("without a pause: ours %.1f µs, psrecord %.1f µs a sample", ours/1e3, theirs/1e3)

		cpu, n = psrecord.Watch(b, pid, 5*time.Second, "--interval", "0.1")
		theirRates = append(theirRates, float64(cpu-start)/float64(n))
		cpu, n = watchWithSampler(b, pid, 100*time.Millisecond, 5*time.Second)
		ourRates = append(ourRates, float64(cpu)/float64(n))
		slept = append(slept, sleepingThread(b, pid, 5*time.Second))
	}
	b.ReportMetric(proctest.Median(slept)/1e3, "sleeping-thread-µs/sample-at-100ms")
	if limit := 1.25 * proctest.Median(slept); proctest.Median(ourRates) > limit {
		b.Errorf("at 100 ms a sample takes %.0f µs, at most %.0f are allowed: 1.25 times a thread that sleeps in the kernel",
			proctest.Median(ourRates)/1e3, limit/1e3)
	}
	b.ReportMetric(proctest.Median(ratios), "ratio")
	b.ReportMetric(proctest.Median(ourRates)/1e3, "our-µs/sample-at-100ms")
	b.ReportMetric(proctest.Median(theirRates)/1e3, "psrecord-µs/sample-at-100ms")
	if proctest.Median(ratios) > atMost {
		b.Errorf("a sample takes %.3f of psrecord's CPU time, at most %.2f is allowed", proctest.Median(ratios), atMost)
	}
}

// sleepingThread gives the CPU time, in nanoseconds, of a thread that sleeps in the kernel for 100 ms and reads one statm: what
// no sampler at this rate can do without.
func sleepingThread(b *testing.B, pid int, d time.Duration) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var buf [128]byte
	before, n := selfCPU(b), 0
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		wait := unix.NsecToTimespec(int64(100 * time.Millisecond))
		if err := unix.Nanosleep(&wait, nil); err != nil && err != unix.EINTR {
			b.Fatal(err)
		}
		if _, err := unix.Pread(int(f.Fd()), buf[:], 0); err != nil {
			b.Fatal(err)
		}
	}
	return float64(selfCPU(b)-before) / float64(n)
}

// at is a source at the benchmark's rate.
type at struct {
	sample.Source
	every time.Duration
}

func (a at) Describe() record.Source {
	d := a.Source.Describe()
	d.Every = a.every
	return d
}

// watchWithSampler gives the CPU time of this process while it samples and records. No interval is no pause.
func watchWithSampler(b *testing.B, pid int, interval, d time.Duration) (cpu time.Duration, samples int) {
	w, err := record.Create(b.TempDir(), record.Meta{Name: "bench", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	sources, err := proc.Sources(pid, "target")
	if err != nil {
		b.Fatal(err)
	}
	before := selfCPU(b)
	rec := w.Begin(record.Cell{ID: 1}, 1, false, 0)
	s := sample.New(b.Context(), rec)
	for _, src := range sources {
		if src.Describe().Method == record.MethodStatm {
			s.Attach(at{src, cmp.Or(interval, time.Hour)})
		}
	}
	for end := time.Now().Add(d); interval == 0 && time.Now().Before(end); {
		s.Edge("")
	}
	if interval > 0 {
		time.Sleep(d)
	}
	cost := s.Stop()
	rec.End(record.OK, "", nil, cost)
	cpu = selfCPU(b) - before
	if err := w.Close(record.OK); err != nil {
		b.Fatal(err)
	}
	return cpu, cost.Reads
}

func selfCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
