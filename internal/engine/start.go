package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Starts is how often a browser or a server is started, at most, until it is ready.
const Starts = 3

// NotStarted is a start that failed and that another one may cure: what was started died, or did not answer, before it
// was ready.
type NotStarted struct {
	What   string // "Chrome did not answer within 60 s"
	Words  string // the line it printed that says best why; empty: none
	Report string // what was seen of it before it was ended
	Kind   fault.Kind
	Do     string
	Err    error // the cause, for errors.Is
}

func (e *NotStarted) Error() string { return e.What }
func (e *NotStarted) Unwrap() error { return e.Err }

// Teller is told of starts that fail. Every Probe is one.
type Teller interface {
	Log(name string) io.WriteCloser
	Warn(record.Warning)
}

// Repeat starts something until it is ready, or has failed too often, or fails in a way that no other start can cure.
// Of each start that failed the report goes into a log of that name; a warning tells of those that were repeated. The
// last one's failure is of class Start.
func Repeat(ctx context.Context, to Teller, name string, start func() error) error {
	for n := 1; ; n++ {
		err := start()
		var failed *NotStarted
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
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

// keep writes a report into a log, and names its file, relative to the record; empty: it has none.
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
