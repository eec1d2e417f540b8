package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/parquet"
	"llmparity/reports/tables"
)

// format is a way to write a result. One text goes to standard output or to the file that -o names, several files go
// into the folder that -o names.
type format struct {
	name, what string
	text       func(io.Writer, *compare.Result, ...*record.Run) error
	file       func(io.Writer, tables.Table) error // of each table
	suffix     string
}

// formats are those of report and compare.
func formats() []format {
	alone := func(f func(io.Writer, *compare.Result) error) func(io.Writer, *compare.Result, ...*record.Run) error {
		return func(w io.Writer, res *compare.Result, _ ...*record.Run) error { return f(w, res) }
	}
	return []format{
		{name: "table", what: "the terminal's table", text: alone(reports.Table)},
		{name: "json", what: "the result, by its published schema", text: alone(reports.JSON)},
		{name: "markdown", what: "the same as the table, for a comment or a document", text: alone(reports.Markdown)},
		{name: "benchstat", what: "a line a launch, for benchstat", text: alone(reports.Benchstat)},
		{name: "junit", what: "test cases: cells, parity, forecasts", text: alone(reports.JUnit)},
		{name: "html", what: "the report, one file", text: colours().HTML},
		{name: "csv", what: "summary.csv, a row a cell; with -o a folder also samples, totals, tokens and metrics",
			text: alone(tables.Summary), file: tables.CSV, suffix: ".csv"},
		{name: "parquet", what: "the same tables in a folder, with types", file: parquet.Write, suffix: ".parquet"},
	}
}

// colours are the engines' colours in charts.
func colours() reports.Colours { return kinds.All.Colours() }

// comparison are the options of comparing, with the engines' names for people.
func comparison() compare.Options {
	o := compare.Defaults()
	o.Titles = kinds.All.Titles()
	return o
}

func formatNames() (names []string) {
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// formatFlags choose the format of a result.
type formatFlags struct {
	name string
	json bool
}

func (f *formatFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "format", "", "print the result as "+strings.Join(formatNames(), ", ")+
		"; csv and parquet write several files and need -o DIR ("+docsFormats+")")
	c.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	c.MarkFlagsMutuallyExclusive("json", "format")
}

// given reports whether a format was chosen.
func (f *formatFlags) given() bool { return f.name != "" || f.json }

// check refuses an impossible format before anything is read.
func (f *formatFlags) check(out string) error {
	if !f.given() {
		return nil
	}
	if f.json {
		f.name = "json"
	}
	at := slices.IndexFunc(formats(), func(known format) bool { return known.name == f.name })
	if at < 0 {
		return fault.New(fault.Usage, didYouMean(f.name, formatNames()), "unknown format %q", f.name)
	}
	if known := formats()[at]; known.text == nil && out == "" {
		return fault.New(fault.Usage, "name a folder with -o", "--format %s writes several files", known.name)
	}
	return nil
}

// write writes the result in the chosen format.
func (f *formatFlags) write(c *cobra.Command, out string, res *compare.Result, runs ...*record.Run) error {
	at := slices.IndexFunc(formats(), func(known format) bool { return known.name == f.name })
	how := formats()[at]
	switch {
	case out == "":
		return how.text(c.OutOrStdout(), res, runs...)
	case how.file != nil:
		return folder(out, how, res, runs...)
	}
	return reports.File(out, "name another file with -o", func(w io.Writer) error { return how.text(w, res, runs...) })
}

// folder writes a file for each table. A table can be long, so it is streamed to a temporary name.
func folder(dir string, how format, res *compare.Result, runs ...*record.Run) error {
	const do = "name another folder with -o"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, do, "can't write into %s", dir)
	}
	for _, t := range tables.Of(res, runs...) {
		path := filepath.Join(dir, t.Name+how.suffix)
		if err := reports.Stream(path, do, func(w io.Writer) error { return how.file(w, t) }); err != nil {
			return err
		}
	}
	return nil
}

// writeSummary writes summary.csv beside a run's other files.
func writeSummary(dir string, res *compare.Result) error {
	return reports.File(filepath.Join(dir, "summary.csv"), "name another folder with --out",
		func(w io.Writer) error { return tables.Summary(w, res) })
}
