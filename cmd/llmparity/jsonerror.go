package main

import (
	"io"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/progress"
	"llmparity/internal/kit/fault"
)

// counted counts what is written.
type counted struct {
	io.Writer
	bytes int
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.bytes += n
	return n, err
}

// writesJSON reports whether a command was asked for JSON on standard output.
func writesJSON(c *cobra.Command) bool {
	said := func(flag string) string {
		if f := c.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return said("json") == "true" || said("format") == "json" && said("output") == ""
}

// failure is what a command with --json prints if it fails before it has printed anything.
type failure struct {
	Error string     `json:"error"`
	Class fault.Kind `json:"class"` // see docs/reference/exit-codes.md
	Code  int        `json:"exit_code"`
}

// inJSON prints why a command failed: for run as the last of its lines, which have these fields too.
func inJSON(c *cobra.Command, stdout io.Writer, err, why error) {
	if dry, _ := c.Flags().GetBool("dry-run"); c.Name() == "run" && !dry {
		show := progress.New(io.Discard, true)
		show.InJSON(stdout)
		show.Done(progress.Line{}.Ended(err, why))
		show.Close()
		return
	}
	f := failure{fault.OneLine(err.Error()), fault.Of(why), fault.ExitCode(why)}
	_ = printJSON(stdout, f) // the exit code says it, too
}
