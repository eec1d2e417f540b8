// Package reports renders a compare.Result: a table for the terminal, JSON, profile documents, and one HTML file that opens
// without a network. A renderer is a function from a result to bytes; none of them computes a figure, so that all show the same,
// and each shows every warning.
//
// It can't tell more than the records hold, it loads nothing when a report is opened, and it draws long series thinned: peaks
// survive that, single samples between them may not. What is exact stands in the run folder's CSV files.
package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// JSON writes the result as one indented document.
func JSON(w io.Writer, res *compare.Result) error {
	return writeJSON(w, res)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// HTMLFile writes the HTML report to path; a reader sees the old file or the whole new one.
func HTMLFile(path string, res *compare.Result, runs ...*record.Run) error {
	return File(path, func(w io.Writer) error { return HTML(w, res, runs...) })
}

// File writes what render gives to path in one step.
func File(path string, render func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return unwritable(err, path)
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if err := render(tmp); err != nil {
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return unwritable(err, path)
	}
	if err := tmp.Close(); err != nil {
		return unwritable(err, path)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return unwritable(err, path)
	}
	return nil
}

func unwritable(err error, path string) error {
	return fault.Wrap(fault.Unwritable, err, "name a file in a folder that you may write to", "can't write %s", path)
}
