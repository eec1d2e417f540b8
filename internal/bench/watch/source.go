package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// process is a watched process.
type process struct {
	*proc.Member
	blind  bool           // its memory can't be read
	read   *record.Sample // reading of PSS, not yet written
	came   time.Time
	double bool        // perhaps a copy of its parent that is about to exec another program
	gone   atomic.Bool // it has ended
	detach []func()    // ends sampling of its GPU memory
}

// source reads a process for the sampler, and tells the watcher when that fails. Its family closes what it reads.
type source struct {
	sample.Source
	about record.Source
	of    *process
	to    *watcher
}

func (s *source) Describe() record.Source { return s.about }

// Read reads the process.
func (s *source) Read(ctx context.Context, r *record.Sample) error {
	if s.of.gone.Load() {
		return sample.ErrGone
	}
	err := s.Source.Read(ctx, r)
	if err != nil {
		s.to.failed(s, err)
	}
	return err
}

// attach gives a process to the sampler.
func (w *watcher) attach(p *process) {
	for i, s := range p.Sources {
		about := s.Describe()
		about.PID, about.Start, about.Every = p.PID, p.Start, w.o.Interval
		if i > 0 {
			if about.Every = w.o.PSS; about.Every == 0 {
				continue
			}
		}
		w.sampler.Attach(&source{Source: s, about: about, of: p, to: w})
	}
}

// failed says that a process could not be read.
func (w *watcher) failed(s *source, err error) {
	cheap := s.about.Method == proc.CheapMethod
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, sample.ErrGone):
		if cheap { // the others find out in their time
			w.remove(s.of)
		}
	case cheap:
		s.of.blind = true
		w.unreadable(s.of, "memory", err)
	default:
		w.unreadable(s.of, "PSS and USS", err)
	}
}

// Source, Sample, Total and Warn implement sample.Sink.
func (w *watcher) Source(s record.Source) int {
	w.ids.Lock()
	defer w.ids.Unlock()
	w.sources = append(w.sources, s)
	return len(w.sources) - 1
}

// Sample takes a reading of a process: its size becomes a row, with the PSS that was read last.
func (w *watcher) Sample(id int, r record.Sample) {
	w.ids.Lock()
	s := w.sources[id]
	w.ids.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	who := w.living(s.PID, s.Start)
	if who == nil || w.full() {
		return
	}
	if s.Method != proc.CheapMethod {
		who.read = &r
		return
	}
	w.sized++
	if w.o.Rows != nil {
		w.o.Rows.add(w.tick, w.sum.Samples+1, who, &r)
	}
	who.read = nil
}

// Total takes the total of a pass. That of a tick completes a sample; others are between two ticks.
func (w *watcher) Total(t record.Total) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.full():
		return
	case t.Method == record.MethodSmapsRollup:
		w.sum.ReadPSS++
		w.sum.peak(t.PSS, t.PSS, t.PSS)
		return
	case t.Method == record.MethodPeakMark:
		w.sum.peak(t.PSS, t.Carried.Low, t.Carried.High)
		return
	case t.PSS != record.Absent:
		w.pss = t.PSS
		w.sum.peak(t.PSS, t.Carried.Low, t.Carried.High)
	case w.o.PSS > 0:
		w.sum.MostPSS = max(w.sum.MostPSS, t.RSS) // PSS of a process was not read yet
	}
	w.sum.PeakRSS = max(w.sum.PeakRSS, t.RSS)
	if w.sized > 0 {
		w.sized = 0
		w.complete(t.RSS)
	}
}

// Warn does nothing: the watcher has its own words for what can't be read.
func (w *watcher) Warn(record.Warning) {}
