package watch

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

func TestUnreadableProcessIsReportedOnce(t *testing.T) {
	var out bytes.Buffer
	var said []string
	w := newWatcher(Options{Rows: To(&out, "l", Columns), Interval: time.Hour,
		Say: func(line string) { said = append(said, line) }})
	defer w.family.Close()
	self, err := proc.Look(os.Getpid())
	check.Err(t, err)
	for range 2 {
		w.welcome(&proc.Member{Process: self, Err: fs.ErrPermission})
	}
	w.start()
	w.sampler.Read()
	w.sampler.Stop()
	if n := strings.Count(strings.Join(said, "\n"), "no permission to read"); n != 1 || out.Len() > 0 {
		t.Errorf("said %d times: %q; rows %q", n, said, &out)
	}
	if len(w.alive) != 2 || w.sum.Processes != 2 || w.sum.Samples != 1 {
		t.Errorf("%d processes, %d alive, %d samples", w.sum.Processes, len(w.alive), w.sum.Samples)
	}
}

// memory is what a faked process has, in MiB.
type memory struct{ private, shared, pss int64 }

type faked struct {
	*memory
	method string
}

func (f faked) Describe() record.Source { return record.Source{Method: f.method, Kernel: true} }

func (f faked) Read(_ context.Context, r *record.Sample) error {
	r.RSS, r.VMS, r.Shared = (f.private+f.shared)<<20, 1<<30, f.shared<<20
	if f.method == record.MethodSmapsRollup {
		r.PSS, r.USS, r.HWM, r.Shared, r.Forked = f.pss<<20, f.private<<20, r.RSS, record.Absent, 0
	}
	return nil
}

// PSS is read rarely. In between, what processes gain counts, as in a run.
func TestPeakOfPSSIsCarriedForward(t *testing.T) {
	w := newWatcher(Options{PSS: time.Hour, Interval: time.Hour, Say: func(string) {}})
	defer w.family.Close()
	self, err := proc.Look(os.Getpid())
	check.Err(t, err)
	one, two := &memory{private: 100, shared: 20, pss: 110}, &memory{private: 50, shared: 20, pss: 60}
	for _, m := range []*memory{one, two} {
		w.welcome(&proc.Member{Process: self, Sources: []sample.Source{faked{m, record.MethodStatm},
			faked{m, record.MethodSmapsRollup}}})
		self.Start++ // another process
	}
	w.start()
	defer w.sampler.Stop()
	w.sampler.Read()
	// Before PSS was read, it is at most RSS.
	if w.sum.PeakPSS != 170<<20 || w.sum.LeastPSS != 170<<20 || w.sum.MostPSS != 190<<20 {
		t.Errorf("after a reading: %+v", w.sum)
	}
	one.private, two.shared = 160, 30
	w.sampler.Read()
	one.private, two.shared = 100, 20
	w.sampler.Read()
	// 10 MiB of shared pages are new, or other processes had them already. The machine's own count decides.
	if s := w.sum; s.PeakPSS < 230<<20 || s.PeakPSS > 240<<20 || s.LeastPSS != 230<<20 || s.MostPSS != 240<<20 {
		t.Errorf("peak %.3f, from %.3f to %.3f MiB; want 230 to 240", float64(s.PeakPSS)/record.MiB,
			float64(s.LeastPSS)/record.MiB, float64(s.MostPSS)/record.MiB)
	}
	if lines := strings.Join(w.sum.Lines(), "\n"); !strings.Contains(lines,
		"PSS was read 1 time and carried forward: its peak is at least 230.0 MiB and at most 240.0 MiB") {
		t.Error(lines)
	}
	if w.sum.CommandRSS = 300 << 20; !strings.Contains(strings.Join(w.sum.Lines(), "\n"), "at most 300.0 MiB") {
		t.Error("a bound below the highest RSS of a process that the kernel kept")
	}
}

// The chart keeps a short peak, and its lines have the given width at most.
func TestChart(t *testing.T) {
	c := newChart(60, 4, 100_000_000)
	for i := range 5000 {
		p := Point{At: 100_000_000 * time.Duration(i), Processes: 1, RSS: 100 << 20, PSS: 50 << 20}
		if i == 1234 {
			p.RSS = 300 << 20
		}
		c.add(p)
	}
	lines := c.lines()
	if !strings.HasPrefix(lines[0], "300.0 MiB") || len(lines) != 6 ||
		!strings.Contains(lines[5], "RSS 100.0 MiB  PSS 50.0 MiB") {
		t.Errorf("%q", lines)
	}
	if strings.Count(lines[1], "░") != 1 || strings.Count(lines[4], "█") != len(c.rss) {
		t.Errorf("drawn wrongly:\n%s", strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if len([]rune(l)) > 60 {
			t.Errorf("%q", l)
		}
	}
}
