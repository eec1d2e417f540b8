package reports

import (
	"io"
	"strings"

	"llmparity/compare"
	"llmparity/reports/paper"
)

// Methods writes how the figures were measured, a paragraph a line, for the methods section of a paper. All of it is
// from the record.
func Methods(w io.Writer, res *compare.Result) error {
	text := strings.Join(paper.Methods(res), "\n\n")
	if text == "" {
		text = "No launch counts, so there is no measurement to describe."
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// BibTeX writes entries for the runs and for llmparity.
func BibTeX(w io.Writer, res *compare.Result) error {
	_, err := io.WriteString(w, paper.BibTeX(res))
	return err
}
