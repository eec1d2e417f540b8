package sample_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// sink keeps what it is given.
type sink struct {
	mu       sync.Mutex
	sources  []record.Source
	samples  []int       // source numbers
	ends     []time.Time // of the samples
	totals   []record.Total
	warnings []record.Warning
}

func (s *sink) Source(src record.Source) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, src)
	return len(s.sources)
}

func (s *sink) Sample(source int, r record.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples, s.ends = append(s.samples, source), append(s.ends, r.End)
}

func (s *sink) Total(t record.Total) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals = append(s.totals, t)
}

func (s *sink) Warn(w record.Warning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, w)
}

func (s *sink) count(source int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, have := range s.samples {
		if have == source {
			n++
		}
	}
	return n
}

// source reads a constant, after a delay, until it fails.
type source struct {
	method string
	every  time.Duration
	delay  time.Duration
	rss    int64
	err    error
	closed bool
}

func (s *source) Describe() record.Source {
	return record.Source{Method: s.method, Every: s.every, Role: "test"}
}

func (s *source) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	time.Sleep(s.delay)
	r.End = time.Now()
	r.RSS = s.rss
	return s.err
}

func (s *source) Close() error {
	s.closed = true
	return nil
}

// sampled runs a test of a sampler in simulated time.
func sampled(t *testing.T, test func(*testing.T, *sample.Sampler, *sink)) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		test(t, sample.New(t.Context(), out), out)
	})
}

func TestSlowMethodDoesNotDelayFastOne(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		cheap := &source{method: "cheap", every: 100 * time.Millisecond, rss: 5}
		s.Attach(cheap)
		s.Attach(&source{method: "slow", every: time.Second, delay: 700 * time.Millisecond, rss: 7})
		time.Sleep(10*time.Second + 50*time.Millisecond)
		cost := s.Stop()
		if n := out.count(1); n != 100 {
			t.Errorf("the cheap source was read %d times in 10 s at 100 ms, want 100", n)
		}
		if cost.Reads != len(out.samples) || cost.ReadNS < int64(700*time.Millisecond) ||
			runtime.GOOS == "linux" && cost.ReadCPUNS > cost.ReadNS/2 { // what a read waits is no work
			t.Errorf("cost: %+v for %d samples", cost, len(out.samples))
		}
		if !cheap.closed {
			t.Error("a source was not closed")
		}
	})
}

func TestPauseStopsReading(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		s.Attach(&source{method: "m", every: 100 * time.Millisecond, delay: 100 * time.Microsecond, rss: 5})
		time.Sleep(time.Second + 50*time.Millisecond)
		s.Pause()
		before := s.Cost()
		time.Sleep(10 * time.Second)
		if now := s.Cost(); now != before || now.Reads != 10 || out.count(1) != 10 {
			t.Errorf("during the pause: %+v, before %+v, %d readings", now, before, out.count(1))
		}
		s.Edge(record.Idle)
		s.Resume()
		time.Sleep(time.Second)
		if cost := s.Stop(); cost.Reads != 21 || cost.ReadNS != int64(21*100*time.Microsecond) {
			t.Errorf("after it %+v, want 21 reads of 100 µs", cost)
		}
	})
}

func TestExpensiveMethodStaysInBudget(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		s.Attach(&source{method: "expensive", every: time.Second, delay: 50 * time.Millisecond, rss: 7})
		time.Sleep(10*time.Second + 500*time.Millisecond)
		if cost := s.Cost(); cost.Reads != 1 {
			t.Errorf("in 10 s: %+v, want the first tick's reading alone", cost)
		}
		time.Sleep(190 * time.Second)
		if cost := s.Stop(); cost.ReadNS > int64(time.Second) || cost.Reads < 15 {
			t.Errorf("cost: %+v in 200 s", cost)
		}
	})
}

func TestTotalsSumOneTick(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		s.Attach(&source{method: "m", every: time.Hour, rss: 5})
		detach := s.Attach(&source{method: "m", every: time.Hour, rss: 7})
		synctest.Wait()
		s.Edge("")
		detach()
		s.Edge("")
		s.Stop()
		last, before := out.totals[len(out.totals)-1], out.totals[len(out.totals)-2]
		if before.RSS != 12 || before.Processes != 2 || before.PSS != record.Absent {
			t.Errorf("two sources: %+v", before)
		}
		if last.RSS != 5 || last.Processes != 1 {
			t.Errorf("after one was detached: %+v", last)
		}
	})
}

func TestFailingSourcesAreDroppedOnce(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		s.Attach(&source{method: "m", every: time.Second, err: sample.ErrGone})
		s.Attach(&source{method: "m", every: time.Second, err: fs.ErrPermission})
		s.Attach(&source{method: "m", every: time.Second, err: errors.New("odd")})
		time.Sleep(5 * time.Second)
		s.Stop()
		if len(out.warnings) != 1 || out.warnings[0].Code != "unreadable-source" {
			t.Errorf("warnings: %+v", out.warnings)
		}
		if len(out.samples) != 0 || len(out.totals) != 0 {
			t.Error("a failed read has a sample")
		}
	})
}

// Each lost role gets a warning.
func TestLostRolesAreReported(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		begun := time.Now()
		for _, lost := range []of{{role: "gpu0", why: "gone"},
			{role: "gpu1", why: "gone", lost: begun.Add(1500 * time.Millisecond)}, {role: "gpu2", why: "gone"},
			{role: "gpu3", why: "odd"}} {
			lost.source = source{method: "m", every: time.Second, rss: 1}
			s.Attach(&lost)
		}
		s.Attach(&of{source: source{method: "n", every: time.Second}, role: "gpu0", why: "gone"})
		time.Sleep(3500 * time.Millisecond)
		s.Stop()
		var texts []string
		for _, w := range out.warnings {
			texts = append(texts, w.Text)
		}
		slices.Sort(texts)
		if want := []string{"m of the gpu0: can't read: gone", "m of the gpu1: can't read: gone",
			"m of the gpu2: can't read: gone", "m of the gpu3: can't read: odd",
			"n of the gpu0: can't read: gone"}; !slices.Equal(texts, want) {
			t.Errorf("%q, want %q", texts, want)
		}
	})
}

// of is a source with a role of its own, that fails from a moment on.
type of struct {
	source
	role string
	lost time.Time
	why  string
}

func (o *of) Describe() record.Source {
	d := o.source.Describe()
	d.Role = o.role
	return d
}

func (o *of) Read(ctx context.Context, r *record.Sample) error {
	if err := o.source.Read(ctx, r); err != nil || time.Now().Before(o.lost) {
		return err
	}
	return errors.New(o.why)
}

// paged is a source that answers on request, such as a page.
type paged struct {
	source
	answers atomic.Bool
	push    func(record.Sample)
	resets  int
}

func (p *paged) Describe() record.Source {
	d := p.source.Describe()
	d.Waits = true
	return d
}

func (p *paged) Read(ctx context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	if !p.answers.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(p.delay)
	r.End = time.Now()
	r.Values = []record.Value{{Name: "used_bytes", Value: 1}}
	return nil
}

func (p *paged) Pushes(push func(record.Sample)) { p.push = push }

func (p *paged) ResetPeak(context.Context) error {
	p.resets++
	return nil
}

func TestHangingPageDoesNotDelayEdge(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		page := &paged{source: source{method: "page", every: time.Second}}
		s.Attach(page)
		s.Attach(&source{method: "process", every: time.Hour, rss: 5})
		time.Sleep(1500 * time.Millisecond) // a tick's read hangs
		begin := time.Now()
		s.Edge(record.Load)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("an edge took %v", took)
		}
		if out.count(1) != 0 || out.count(2) != 1 {
			t.Errorf("samples: %v, want one of the process alone", out.samples)
		}
		if len(out.warnings) != 1 || out.warnings[0].Code != "unanswered-source" {
			t.Errorf("warnings: %+v", out.warnings)
		}
		page.answers.Store(true)
		time.Sleep(10 * time.Second)
		before := out.count(1)
		s.Edge(record.Warmup)
		s.Stop()
		if out.count(1) != before+1 {
			t.Error("a page that answers again is not read")
		}
	})
}

func TestWaitingIsNotCost(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		page := &paged{source: source{method: "page", every: time.Second, delay: 300 * time.Millisecond}}
		page.answers.Store(true)
		s.Attach(page)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		if cost := s.Stop(); cost.Reads != 0 || cost.ReadNS != 0 || cost.Waits != 10 ||
			cost.WaitNS != int64(3*time.Second) || len(out.totals) != 0 {
			t.Errorf("%+v, %d totals", cost, len(out.totals))
		}
	})
}

func TestEdgeOnlyAndPushedReadings(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		page := &paged{source: source{method: "page"}}
		page.answers.Store(true)
		detach := s.Attach(page)
		time.Sleep(time.Minute)
		if len(out.samples) != 0 {
			t.Errorf("%d readings without an edge", len(out.samples))
		}
		s.Edge("")
		s.Edge(record.Baseline)
		page.push(record.NewSample())
		if out.count(1) != 3 || page.resets != 2 {
			t.Errorf("%d readings, %d resets", out.count(1), page.resets)
		}
		detach()
		page.push(record.NewSample())
		s.Stop()
		if out.count(1) != 3 {
			t.Error("a detached source still pushes")
		}
	})
}

// A mark reads its method alone, also between ticks and while nothing else is read, and ends no phase.
func TestMarkReadsOneMethod(t *testing.T) {
	sampled(t, func(t *testing.T, s *sample.Sampler, out *sink) {
		s.Mark("marked") // nothing is attached
		s.Attach(&source{method: "marked", rss: 5})
		s.Attach(&source{method: "other", rss: 7})
		s.Mark("marked")
		s.Pause()
		s.Mark("marked")
		if n, others := out.count(1), out.count(2); n != 2 || others != 0 {
			t.Errorf("two marks read it %d times, and another method %d times", n, others)
		}
		s.Edge(record.Measure)
		if n, others := out.count(1), out.count(2); n != 3 || others != 1 {
			t.Errorf("after an edge: %d and %d readings, want 3 and 1", n, others)
		}
		s.Stop()
	})
}
