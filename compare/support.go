package compare

import (
	"slices"

	"llmparity/compare/matrix"
	"llmparity/internal/record"
)

// support says which models run and compute rightly, by engine and device; nil: several runs, or one column.
func (r *Result) support() *matrix.Matrix {
	if len(r.Runs) != 1 {
		return nil
	}
	var cells []matrix.Cell
	for _, c := range r.Cells {
		m := matrix.Cell{Absent: len(c.all) == 0 && c.Refused == "", Setup: &c.Setup, Title: c.Title(), Label: c.Label,
			Refused: c.Refused, Counted: c.Launches.Counted, Ended: c.Launches.Ended(),
			Scores: c.Scores, Checked: c.checked != nil}
		if c.Self.Known && !c.Self.Identical {
			m.Unstable = c.Self.Verdict
		}
		for _, f := range c.Failures {
			if f.Status == record.Failed {
				m.Class, m.Error = f.Class, f.Error
			}
		}
		cells = append(cells, m)
	}
	return matrix.Of(cells, r.Parity)
}

// Surveys reports whether what runs rightly is the question of the run: it has such a table, and no cell was measured
// for more.
func (r *Result) Surveys() bool {
	return r.Support != nil && !slices.ContainsFunc(r.Cells, (*Cell).forShipping)
}

// forShipping reports whether a cell says something about which form of a model to ship. One launch and no quality do
// not.
func (c *Cell) forShipping() bool { return c.Launches.Planned > 1 || c.Quality != nil }
