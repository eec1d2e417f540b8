// Package sample reads sources at their rate and at phase edges.
//
// It knows how to schedule reads and what they cost; where a reading comes from is a Source's business (sample/proc for
// processes). A source is only ever read by one goroutine at a time.
package sample

import (
	"context"
	"errors"

	"llmparity/internal/record"
)

// ErrGone is returned by a source whose process no longer exists; the sampler then drops it.
var ErrGone = errors.New("the source is gone")

// Source is something that can be read.
type Source interface {
	// Describe says who is read, by what, and what the figure can't see. It must not change.
	Describe() record.Source
	// Read fills in what the source knows and stamps Begin and End. It gives up when the context ends.
	Read(context.Context, *record.Sample) error
}

// Pusher is a source that also has readings without being asked: something happened that a tick would miss.
type Pusher interface {
	Source
	// Pushes is called once, when the source is attached. push may be called from any goroutine, at any time; it blocks
	// for no longer than the record takes to be written, and does nothing once the source is detached.
	Pushes(push func(record.Sample))
}

// Peaker is a source that reads the highest of something since a moment.
type Peaker interface {
	Source
	// ResetPeak makes now that moment: the reading of a phase's end is behind it.
	ResetPeak(context.Context) error
}
