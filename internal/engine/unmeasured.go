package engine

import (
	"io"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Unmeasured is a Probe that discards everything except that it closes sources.
type Unmeasured struct{}

// Attach reads nothing, but closes the source.
func (Unmeasured) Attach(s sample.Source) func() {
	return func() {
		if c, ok := s.(io.Closer); ok {
			_ = c.Close() // it was never read
		}
	}
}

// Span discards a stage.
func (Unmeasured) Span(record.Span) {}

// Event discards an event.
func (Unmeasured) Event(record.Event) {}

// Warn discards a warning.
func (Unmeasured) Warn(record.Warning) {}

// Log discards output.
func (Unmeasured) Log(string) io.WriteCloser { return record.Discard }
