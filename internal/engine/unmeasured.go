package engine

import (
	"io"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Unmeasured is a Probe for where nothing is measured.
type Unmeasured struct{}

// Attach reads nothing; the source is closed all the same.
func (Unmeasured) Attach(s sample.Source) func() {
	return func() {
		if c, ok := s.(io.Closer); ok {
			_ = c.Close() // it was not even read
		}
	}
}

// Span forgets a stage.
func (Unmeasured) Span(record.Span) {}

// Event forgets an event.
func (Unmeasured) Event(record.Event) {}

// Warn forgets a warning.
func (Unmeasured) Warn(record.Warning) {}

// Log drops what an engine prints.
func (Unmeasured) Log(string) io.WriteCloser { return unheard{io.Discard} }

type unheard struct{ io.Writer }

func (unheard) Close() error { return nil }
