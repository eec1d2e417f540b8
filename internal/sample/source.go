// Package sample reads sources at regular intervals and at phase edges, and measures what that costs. Sources are in
// other packages, such as sample/proc. Each source is read by one goroutine at a time.
package sample

import (
	"context"
	"errors"

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
