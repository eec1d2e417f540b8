// Package matrix has the support matrix as a table, with a line for each field that is not ok. It computes nothing.
package matrix

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/matrix"
	"llmparity/internal/dtype"
	"llmparity/reports/plain"
)

// Title is that of the table.
const Title = "What runs, and what is right"

// How to read the table.
const (
	Words = "ok: the same scores as the reference. tokens: the same tokens as a cell that is ok; no scores were compared. " +
		"differs: further apart than rounding explains. Other words are classes of failures."
	Method = "The reference implementation scores each model's text, if it can compute the model. " +
		"Without it, an engine is compared with the others. What rounding explains is the score check's tolerance. unclear: the engine ran, and nothing tells whether it is right."
)

// marks stand before words.
var marks = map[matrix.State]string{matrix.OK: "✓ ", matrix.Tokens: "✓ ", matrix.Differs: "✗ ", matrix.Failed: "! ",
	matrix.Refused: "– ", matrix.Unclear: "? "}

// word is a field in the table.
func word(f matrix.Field) string {
	if f.State == matrix.None {
		return ""
	}
	return marks[f.State] + plain.Line(f.Word())
}

// shown is the matrix, unless it is not the question and says nothing.
func shown(res *compare.Result) *matrix.Matrix {
	m := res.Support
	if m == nil || res.Surveys() {
		return m
	}
	says := func(f matrix.Field) bool { return f.State != matrix.None && f.State != matrix.Unclear }
	if !slices.ContainsFunc(m.Rows, func(r matrix.Row) bool { return slices.ContainsFunc(r.Fields, says) }) {
		return nil
	}
	return m
}

// Grid has a row an engine and device, and a column a model and dtype; nil without a matrix.
func Grid(res *compare.Result) *plain.Grid {
	m := shown(res)
	if m == nil {
		return nil
	}
	g := &plain.Grid{Name: Title, Head: []string{"engine", "device"}}
	backends := slices.ContainsFunc(m.Rows, func(r matrix.Row) bool { return r.Backend != "" })
	if backends {
		g.Head = append(g.Head, "backend")
	}
	for i := range m.Columns {
		g.Head = append(g.Head, column(m, i))
	}
	for _, r := range m.Rows {
		row := []string{engine(r), plain.Line(orDash(r.Device))}
		if backends {
			row = append(row, plain.Line(orDash(r.Backend)))
		}
		for _, f := range r.Fields {
			row = append(row, word(f))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// engine names a row.
func engine(r matrix.Row) string { return plain.Line(plain.Joined(", ", r.Engine, r.With)) }

// column names a column, the model above its dtypes. Where all have one model, it leaves its name out.
func column(m *matrix.Matrix, i int) string {
	c, name := m.Columns[i], ""
	if slices.ContainsFunc(m.Columns, func(o matrix.Column) bool { return o.Model != c.Model }) {
		name = plain.Line(c.Model)
	}
	weights := plain.Line(dtype.People(c.Weights))
	dtypes := weights
	if c.DType != "" {
		name, dtypes = plain.Joined("\n", name, dtypes), "in "+plain.Line(c.DType)
		if strings.Contains(name, "\n") { // two lines are enough
			name, dtypes = plain.Line(c.Model), weights+" "+dtypes
		}
	}
	return plain.Joined("\n", name, dtypes)
}

// Lines explain the fields that are not ok, the most serious first. Fields of a row with one explanation share a line.
func Lines(res *compare.Result) []string {
	var out []string
	for _, state := range []matrix.State{matrix.Differs, matrix.Failed, matrix.Refused, matrix.Unclear} {
		out = append(out, linesOf(shown(res), state)...)
	}
	return out
}

func linesOf(m *matrix.Matrix, state matrix.State) []string {
	if m == nil {
		return nil
	}
	var out []string
	for _, r := range m.Rows {
		var texts []string
		in := map[string][]string{}
		for i, f := range r.Fields {
			if f.State != state {
				continue
			}
			text := explained(f)
			if in[text] == nil {
				texts = append(texts, text)
			}
			in[text] = append(in[text], strings.ReplaceAll(column(m, i), "\n", " "))
		}
		for _, text := range texts {
			out = append(out, fmt.Sprintf("%s, %s: %s", engine(r), strings.Join(in[text], "; "), text))
		}
	}
	return out
}

// explained is a field's word with what differs, by how much and from what, or why.
func explained(f matrix.Field) string {
	text := plain.Line(f.Word())
	if f.State == matrix.Differs {
		text += " from " + plain.Line(f.From)
	}
	if f.Text == "" {
		return text + "."
	}
	return text + ": " + strings.TrimSuffix(plain.Line(f.Text), ".") + "."
}
