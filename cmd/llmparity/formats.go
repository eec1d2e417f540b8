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
	name   string
	text   func(io.Writer, *compare.Result, ...*record.Run) error
	file   func(io.Writer, tables.Table) error // of each table
	suffix string
}

// formats are those of report and compare. docs/reference/formats.md describes them.
func formats() []format {
	alone := func(f func(io.Writer, *compare.Result) error) func(io.Writer, *compare.Result, ...*record.Run) error {
		return func(w io.Writer, res *compare.Result, _ ...*record.Run) error { return f(w, res) }
	}
	return []format{
		{name: "table", text: alone(reports.Table)},
		{name: "json", text: alone(reports.JSON)},
		{name: "markdown", text: alone(reports.Markdown)},
		{name: "benchstat", text: alone(reports.Benchstat)},
		{name: "junit", text: alone(reports.JUnit)},
		{name: "html", text: colours().HTML},
		{name: "csv", text: alone(tables.Summary), file: tables.CSV, suffix: ".csv"},
		{name: "parquet", file: parquet.Write, suffix: ".parquet"},
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

// formatFlags choose the format of a result, and where it goes.
type formatFlags struct {
	name, out string
	json      bool
}

func (f *formatFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "format", "", "print the result as "+strings.Join(formatNames(), ", ")+
		"; csv and parquet write several files and need -o DIR (docs/reference/formats.md)")
	c.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
}

// chosen returns the format; nil if none is chosen. It refuses an impossible one before anything is read.
func (f *formatFlags) chosen() (*format, error) {
	if f.json {
		f.name = "json"
	}
	if f.name == "" {
		return nil, nil
	}
	at := slices.IndexFunc(formats(), func(known format) bool { return known.name == f.name })
	if at < 0 {
		return nil, fault.New(fault.Usage, didYouMean(f.name, formatNames()), "unknown format %q", f.name)
	}
	known := &formats()[at]
	if known.text == nil && f.out == "" {
		return nil, fault.New(fault.Usage, "name a folder with -o", "--format %s writes several files", known.name)
	}
	return known, nil
}

// write writes a result to standard output, or to the file or folder out. A table can be long, so it is streamed to a
// temporary name.
func (f *format) write(stdout io.Writer, out string, res *compare.Result, runs ...*record.Run) error {
	if out == "" || f.file == nil {
		return toFile(stdout, out, func(w io.Writer) error { return f.text(w, res, runs...) })
	}
	const do = "name another folder with -o"
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, do, "can't write into %s", out)
	}
	for _, t := range tables.Of(res, runs...) {
		path := filepath.Join(out, t.Name+f.suffix)
		if err := reports.Stream(path, do, func(w io.Writer) error { return f.file(w, t) }); err != nil {
			return err
		}
	}
	return nil
}

// toFile writes to the file that -o names, or without one to standard output.
func toFile(stdout io.Writer, out string, render func(io.Writer) error) error {
	if out == "" {
		return render(stdout)
	}
	return reports.File(out, "name another file with -o", render)
}
