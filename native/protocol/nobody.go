package protocol

import (
	"io"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// nobody is told what happens where nothing is measured.
type nobody struct{}

// Attach reads nothing; the source is closed all the same.
func (nobody) Attach(s sample.Source) func() {
	return func() {
		if c, ok := s.(io.Closer); ok {
			_ = c.Close() // it was not even read
		}
	}
}

func (nobody) Span(record.Span)          {}
func (nobody) Event(record.Event)        {}
func (nobody) Warn(record.Warning)       {}
func (nobody) Log(string) io.WriteCloser { return unheard{} }

type unheard struct{}

func (unheard) Write(p []byte) (int, error) { return len(p), nil }
func (unheard) Close() error                { return nil }
