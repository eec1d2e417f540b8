// Package reports renders a compare.Result: a table for the terminal, JSON, profile documents, and one HTML file that
// opens without a network. A renderer is a function from a result to bytes. None computes a figure, so all show the
// same, and each shows every warning.
//
// Charts of long series keep the peaks and drop samples between them. The run folder's CSV files have every sample.
package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
)

// JSON writes a gate's outcome or a validation as one indented document.
func JSON[T any](w io.Writer, v T) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// resultSchema identifies the layout of a result.
const resultSchema = "llmparity.result/1"

// Result is everything that was measured and concluded, with the answer. Figures that are not known are absent.
type Result struct {
	Schema  string   `json:"schema"`
	Verdict []string `json:"verdict"` // the answer, a sentence a card
	compare.Result
}

// ResultJSON writes a result as JSON.
func ResultJSON(w io.Writer, res *compare.Result) error {
	return JSON(w, Result{resultSchema, answer.Of(res).Sentences(), *res})
}

// File writes what render gives to path in one step: a reader sees the old file or the whole new one. Where path can't
// be written, do is what to do about it.
func File(path, do string, render func(io.Writer) error) error {
	var b bytes.Buffer
	if err := render(&b); err != nil {
		return err
	}
	return Stream(path, do, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err })
}

// Stream is File for output that is too large for memory.
func Stream(path, do string, render func(io.Writer) error) error {
	return fault.WriteError(replace(path, render), path, do)
}

// replace writes to a device or pipe directly: renaming would replace it for everyone.
func replace(path string, render func(io.Writer) error) error {
	err := whole.Write(path, render)
	if !errors.Is(err, whole.ErrNotRegular) {
		return err
	}
	into, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err // a folder, above all
	}
	return errors.Join(render(into), into.Close())
}
