package proc_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
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
	psrecord := findPsrecord(b)
	target := exec.Command("sleep", "600")
	if err := target.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = target.Process.Kill()
		_ = target.Wait() // killed, as it should be
	}()
	pid := target.Process.Pid
	var ratios, ourRates, theirRates []float64
	for range 5 {
		start, _ := watchWithPsrecord(b, psrecord, pid, "1", time.Millisecond)
		cpu, n := watchWithPsrecord(b, psrecord, pid, "", 2*time.Second)
		theirs := float64(cpu-start) / float64(n)
		cpu, n = watchWithSampler(b, pid, 0, 2*time.Second)
		ours := float64(cpu) / float64(n)
		ratios = append(ratios, ours/theirs)
		b.Logf("without a pause: ours %.1f µs, psrecord %.1f µs a sample", ours/1e3, theirs/1e3)

		cpu, n = watchWithPsrecord(b, psrecord, pid, "0.1", 5*time.Second)
		theirRates = append(theirRates, float64(cpu-start)/float64(n))
		cpu, n = watchWithSampler(b, pid, 100*time.Millisecond, 5*time.Second)
		ourRates = append(ourRates, float64(cpu)/float64(n))
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(ourRates)/1e3, "our-µs/sample-at-100ms")
	b.ReportMetric(median(theirRates)/1e3, "psrecord-µs/sample-at-100ms")
	if median(ratios) > atMost {
		b.Errorf("a sample takes %.3f of psrecord's CPU time, at most %.2f is allowed", median(ratios), atMost)
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func findPsrecord(b *testing.B) string {
	text, err := os.ReadFile("../../../scripts/bench/requirements.txt")
	if err != nil {
		b.Fatal(err)
	}
	key := fmt.Sprintf("%x", sha256.Sum256(text))[:12]
	path := filepath.Join(cache.Dir(os.Getenv), "python", key, "bin", "psrecord")
	if _, err := os.Stat(path); err != nil {
		b.Fatalf("no psrecord: run `scripts/setup bench` (%v)", err)
	}
	return path
}

// watchWithPsrecord gives the CPU time of a whole run of psrecord, and its samples. No interval is no pause.
func watchWithPsrecord(b *testing.B, psrecord string, pid int, interval string, d time.Duration) (cpu time.Duration, samples int) {
	log := filepath.Join(b.TempDir(), "log")
	args := []string{fmt.Sprint(pid), "--duration", fmt.Sprint(d.Seconds()), "--log", log}
	if interval != "" {
		args = append(args, "--interval", interval)
	}
	cmd := exec.Command(psrecord, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("psrecord: %v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		b.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), max(1, strings.Count(string(text), "\n")-1)
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
