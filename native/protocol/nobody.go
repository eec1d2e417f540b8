package protocol

import (
	"io"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// nobody is told what happens where nothing is measured.
type nobody struct{}

func (nobody) Attach(sample.Source) func() { return func() {} }
func (nobody) Span(record.Span)            {}
func (nobody) Event(record.Event)          {}
func (nobody) Warn(record.Warning)         {}
func (nobody) Log(string) io.WriteCloser   { return unheard{} }

type unheard struct{}

func (unheard) Write(p []byte) (int, error) { return len(p), nil }
func (unheard) Close() error                { return nil }
