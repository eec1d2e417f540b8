package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Starts is how often, at most, a browser or a server is started until it is ready.
const Starts = 3

// NotStarted is a failed start that is worth repeating: the process died, or did not answer, before it was ready.
type NotStarted struct {
	What   string // "Chrome did not answer within 60 s"
	Words  string // the most telling line of its output; empty: none
	Report string // everything seen before it was ended
	Kind   fault.Kind
	Do     string
	Err    error // the cause, for errors.Is
}

func (e *NotStarted) Error() string { return e.What }
func (e *NotStarted) Unwrap() error { return e.Err }

// Teller receives failed starts. Every Probe is one.
type Teller interface {
	Log(name string) io.WriteCloser
	Warn(record.Warning)
}

// Repeat starts something until it is ready, has failed too often, or fails in a way that another start cannot cure.
// The report of each failed start goes into a log, and a warning says that it was repeated. The last failure has class
// Start.
func Repeat(ctx context.Context, to Teller, name string, start func() error) error {
	for n := 1; ; n++ {
		err := start()
		failed, again := errors.AsType[*NotStarted](err)
		if !again || ctx.Err() != nil {
			return err
		}
		what, output := fmt.Sprintf("%s (start %d of %d)", failed.What, n, Starts), ""
		switch path := keep(to, fmt.Sprintf("%s-start%d", name, n), what+"\n\n"+failed.Report); {
		case path != "":
			output = ". Its output: " + path
		case failed.Words != "":
			output = ". It printed: " + failed.Words
		}
		if n == Starts {
			return &Failure{Class: record.Start,
				Err: &fault.Error{Kind: failed.Kind, What: what + output, Do: failed.Do, Err: err}}
		}
		to.Warn(record.Warning{Code: "start-repeated", Text: fault.OneLine(what + "; trying again" + output)})
	}
}

// keep writes a report into a log and returns the file's path relative to the record; empty: no file.
func keep(to Teller, name, report string) string {
	log := to.Log(name)
	_, err := io.WriteString(log, strings.TrimSpace(report)+"\n")
	if err = errors.Join(err, log.Close()); err != nil {
		return "" // a log is not worth a launch
	}
	if file, ok := log.(interface{ Name() string }); ok {
		return "logs/" + filepath.Base(file.Name())
	}
	return ""
}
