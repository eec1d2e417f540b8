// Package sample reads sources at regular intervals and at phase edges, and measures what that costs. Sources are in
// other packages, such as sample/proc. Each source is read by one goroutine at a time.
package sample

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"llmparity/internal/record"
)

// ErrGone is returned by a source whose process has ended; the sampler then drops it.
var ErrGone = errors.New("process has ended")

// Source is something that can be read.
type Source interface {
	// Describe returns what is read and how, and what the figures miss. It must not change.
	Describe() record.Source
	// Read fills in a reading with its begin and end. It gives up when the context is done.
	Read(context.Context, *record.Sample) error
}

// Func is a source whose values, such as those that an engine reports, come from a function.
type Func struct {
	record.Source
	Values func(context.Context) (map[string]float64, error)
}

// Read returns the current values.
func (s *Func) Read(ctx context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	values, err := s.Values(ctx)
	r.Values = Values(values)
	r.End = time.Now()
	return err
}

// Values returns values sorted by name.
func Values[N int64 | float64](all map[string]N) []record.Value {
	var out []record.Value
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, record.Value{Name: name, Value: float64(all[name])})
	}
	return out
}

// Pusher is a source that also reports readings on its own, for events that a tick would miss.
type Pusher interface {
	Source
	// Pushes is called once, when the source is attached. push may be called from any goroutine; it blocks only while
	// the record is written, and does nothing after the source is detached.
	Pushes(push func(record.Sample))
}

// Peaker is a source that reads a peak since some moment.
type Peaker interface {
	Source
	// ResetPeak restarts the peak. It is called after the reading at the end of a phase.
	ResetPeak(context.Context) error
}
