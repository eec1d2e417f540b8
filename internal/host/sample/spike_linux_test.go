package sample_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

const asSpiker = "LLMPARITY_TEST_SPIKER"

func TestMain(m *testing.M) {
	if os.Getenv(asSpiker) != "" {
		spiker()
		return
	}
	os.Exit(m.Run())
}

// spiker reads lines "MIB MILLISECONDS", holds that much memory for that long, frees it and answers.
func spiker() {
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("done") {
		var mib, ms int
		if _, err := fmt.Sscan(in.Text(), &mib, &ms); err != nil {
			panic(err)
		}
		held, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
		if err := unix.Munmap(held); err != nil {
			panic(err)
		}
	}
}

// spiked is a spiker that is sampled.
type spiked struct {
	in      io.WriteCloser
	answers *bufio.Scanner
	sampler *sample.Sampler
	out     *sink
}

func newSpiked(t testing.TB) *spiked {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asSpiker+"=1")
	cmd.Stderr = os.Stderr
	in, said := proctest.Start(t, cmd)
	p := &spiked{in: in, answers: said, out: &sink{}}
	p.sampler = sample.New(t.Context(), p.out)
	t.Cleanup(func() { p.sampler.Stop() })
	if !p.answers.Scan() {
		t.Fatal("the spiker did not start")
	}
	sources, err := proc.Sources(cmd.Process.Pid, "spiker", true)
	check.Err(t, err)
	for _, s := range sources {
		p.sampler.Attach(s)
	}
	return p
}

// spike gives by how much a spike raises the highest PSS of its phase, in MiB.
func (p *spiked) spike(t testing.TB, dense bool, mib int, lasts time.Duration) float64 {
	t.Helper()
	p.sampler.Dense(dense)
	p.sampler.Edge("")
	before := p.out.highest(0)
	from := p.out.rows()
	fmt.Fprintln(p.in, mib, lasts.Milliseconds())
	if !p.answers.Scan() {
		t.Fatal("the spiker has ended")
	}
	p.sampler.Edge(record.Measure)
	return p.out.highest(from) - before
}

func (s *sink) rows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.totals)
}

// highest gives the highest PSS of the totals from one on, of the last one where that is 0, in MiB.
func (s *sink) highest(from int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from == 0 {
		return float64(s.totals[len(s.totals)-1].PSS) / record.MiB
	}
	most := int64(0)
	for _, t := range s.totals[from:] {
		most = max(most, t.PSS)
	}
	return float64(most) / record.MiB
}

func TestSpikeRaisesPeakOfPhase(t *testing.T) {
	p := newSpiked(t)
	for _, dense := range []bool{true, false} {
		if got := p.spike(t, dense, 100, time.Second); got < 95 || got > 105 {
			t.Errorf("dense %v: 100 MiB for a second raise the phase's peak by %.1f MiB", dense, got)
		}
	}
}

// Totals that scans record, too: otherwise a launch that ends after one looks as if its samples were cut off.
func TestEveryTotalHasItsReadings(t *testing.T) {
	p := newSpiked(t)
	for range 3 {
		p.spike(t, true, 100, 300*time.Millisecond)
	}
	p.sampler.Stop()
	for _, total := range p.out.totals {
		if total.Method == record.MethodStatm && !slices.ContainsFunc(p.out.ends, total.End.Equal) {
			t.Errorf("a total of %d MiB has no reading of a process", total.RSS/record.MiB)
		}
	}
}

// BenchmarkSpike holds 300 MiB for 80 ms, twenty times while nothing is timed and twenty times while tokens are.
func BenchmarkSpike(b *testing.B) {
	p := newSpiked(b)
	for _, dense := range []bool{true, false} {
		seen := 0
		for range 20 {
			if got := p.spike(b, dense, 300, 80*time.Millisecond); got >= 270 && got <= 330 {
				seen++
			} else {
				b.Logf("dense %v: raised by %.1f MiB", dense, got)
			}
		}
		b.ReportMetric(float64(seen), fmt.Sprintf("seen-of-20-dense-%v", dense))
		if seen < 19 {
			b.Errorf("dense %v: %d of 20 spikes of 80 ms were seen, at least 19 are wanted", dense, seen)
		}
	}
}
