package proc_test

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"llmparity/internal/check"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/internal/sample/proc/proctest"
)

// What a sample of ours may take: of psrecord's CPU time without a pause, and of a thread's that sleeps in the kernel
// at 100 ms.
const (
	atMost        = 0.1
	ofTheSleeping = 1.25
	benchLength   = 5 * time.Second
)

// BenchmarkAgainstPsrecord watches processes with psrecord and with our sampler in turn, and compares the CPU time for
// reading and writing a sample of RSS and VMS, without start and end.
//
// Without a pause between samples, psrecord's default, it compares the work. At ten samples per second most of the CPU
// time is the kernel's for waking a thread, so the limit there is a thread that does nothing else.
func BenchmarkAgainstPsrecord(b *testing.B) {
	psrecord := proctest.Find(b, "../../../scripts")
	ten := proctest.Family(b, 10)
	one := ten[:1]
	var ratios, sleeping, ours, ours10, theirs, theirs10 []float64
	for range 5 {
		start, _ := psrecord.Watch(b, one[0], time.Millisecond, "--interval", "1")
		start10, _ := psrecord.Watch(b, ten[0], time.Millisecond, "--interval", "1", "--include-children")
		cpu, n := psrecord.Watch(b, one[0], 2*time.Second)
		their := perSample(cpu-start, n)
		our := perSample(watchWithSampler(b, one, 0, 2*time.Second))
		ratios = append(ratios, our/their)

		sleeping = append(sleeping, perSample(sleepingThread(b, one[0], benchLength)))
		ours = append(ours, perSample(watchWithSampler(b, one, proc.FastEvery, benchLength)))
		ours10 = append(ours10, perSample(watchWithSampler(b, ten, proc.FastEvery, benchLength)))
		cpu, n = psrecord.Watch(b, one[0], benchLength, "--interval", "0.1")
		theirs = append(theirs, perSample(cpu-start, n))
		cpu, n = psrecord.Watch(b, ten[0], benchLength, "--interval", "0.1", "--include-children")
		theirs10 = append(theirs10, perSample(cpu-start10, n))
		i := len(ours) - 1
		b.Logf("at 100 ms: sleeping thread %.0f, ours %.0f and %.0f, psrecord %.0f and %.0f; without a pause: %.1f and %.1f µs a sample",
			sleeping[i], ours[i], ours10[i], theirs[i], theirs10[i], our, their)
	}
	for _, m := range []struct {
		name  string
		value []float64
	}{{"ratio", ratios}, {"sleeping-thread-µs", sleeping}, {"our-µs", ours}, {"our-µs-of-ten", ours10},
		{"psrecord-µs", theirs},
		{"psrecord-µs-of-ten", theirs10}} {
		b.ReportMetric(proctest.Median(m.value), m.name)
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	if ratio := proctest.Median(ratios); ratio > atMost {
		b.Errorf("without a pause a sample takes %.3f of psrecord's CPU time, at most %.2f is allowed", ratio, atMost)
	}
	if our, limit := proctest.Median(ours), ofTheSleeping*proctest.Median(sleeping); our > limit {
		b.Errorf("at 100 ms a sample takes %.0f µs, at most %.0f are allowed: %.2f of a thread that sleeps in the kernel",
			our, limit, ofTheSleeping)
	}
	if our, their := proctest.Median(ours10), proctest.Median(theirs10); our > their {
		b.Errorf("at 100 ms a sample of ten processes takes %.0f µs, psrecord %.0f", our, their)
	}
}

func perSample(cpu time.Duration, samples int) float64 {
	return float64(cpu) / float64(time.Microsecond) / float64(samples)
}

// sleepingThread returns the CPU time of a thread that sleeps in the kernel for 100 ms and reads one statm, repeatedly:
// the minimum for any sampler at this rate.
func sleepingThread(b *testing.B, pid int, d time.Duration) (cpu time.Duration, samples int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	check.Err(b, err)
	defer f.Close()
	fd := int(f.Fd())
	var buf [128]byte
	before := selfCPU(b)
	for end := time.Now().Add(d); time.Now().Before(end); samples++ {
		wait := unix.NsecToTimespec(int64(proc.FastEvery))
		if err := unix.Nanosleep(&wait, nil); err != nil && err != unix.EINTR {
			b.Fatal(err)
		}
		if _, err := unix.Pread(fd, buf[:], 0); err != nil {
			b.Fatal(err)
		}
	}
	return selfCPU(b) - before, samples
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

// watchWithSampler returns the CPU time of this process while it samples and records, and the samples of each process.
// Interval 0 means no pause.
func watchWithSampler(b *testing.B, pids []int, interval, d time.Duration) (cpu time.Duration, samples int) {
	w, err := record.Create(b.TempDir(), record.Meta{Name: "bench", Started: time.Now()}, record.Environment{}, nil)
	check.Err(b, err)
	rec := w.Begin(record.Cell{ID: 1}, record.Beginning{Repetition: 1})
	s := sample.New(b.Context(), rec)
	for _, pid := range pids {
		sources, err := proc.Sources(pid, "target")
		check.Err(b, err)
		for _, src := range sources {
			if src.Describe().Method == record.MethodStatm {
				s.Attach(at{src, cmp.Or(interval, time.Hour)})
			}
		}
	}
	before := selfCPU(b)
	for end := time.Now().Add(d); interval == 0 && time.Now().Before(end); {
		s.Edge("")
	}
	if interval > 0 {
		time.Sleep(d)
	}
	cpu = selfCPU(b) - before
	cost := s.Stop()
	rec.End(record.OK, "", nil, cost)
	check.Err(b, w.Close(record.OK))
	return cpu, cost.Reads / len(pids)
}

func selfCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	check.Err(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
