// Package matrix says which models run and compute rightly, by engine and device: a table whose fields are a word each,
// with what differs, by how much and from what.
//
// It decides nothing about numbers. Whether scores differ, and whether rounding explains that two tokens differ, is up
// to package parity. Where the reference implementation computed a model's text, its scores name the wrong side; else
// the side that agrees with fewer cells is wrong, or both are.
package matrix

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/parity"
	"llmparity/internal/axis"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Cell is a cell of a result.
type Cell struct {
	*evidence.Setup
	Absent       bool // not launched yet, so that not even its model is known
	Title, Label string
	Refused      string // why it was not launched; empty: it was not refused
	Counted      int    // launches
	Class        record.Class
	Error        string        // of the launch that failed; empty: none did
	Ended        string        // how a cell without counted launches ended
	Unstable     string        // how its launches differ; empty: they don't, or that is not known
	Scores       *parity.Check // with the reference implementation; nil: it did not compute the cell's weights
	Checked      bool          // its engine made the score check
}

// Matrix is the table.
type Matrix struct {
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Column is a model in a dtype.
type Column struct {
	Model   string `json:"model"`
	Weights string `json:"weights"` // dtype of the weights
	// DType is that which was asked for. Absent: all cells of the model asked for one, or for none.
	DType string `json:"dtype,omitempty"`

	spec *record.Cell // a cell in it
}

// Row is an engine on a device.
type Row struct {
	Engine  string  `json:"engine"`
	With    string  `json:"with,omitempty"`    // settings that no other row of the engine has
	Device  string  `json:"device,omitempty"`  // that ran; absent: nothing ran
	Backend string  `json:"backend,omitempty"` // that ran; absent: unknown
	Fields  []Field `json:"fields"`            // by column
}

// State is what became of a cell.
type State string

// The states.
const (
	None    State = "none"    // no such cell
	OK      State = "ok"      // its scores agree
	Tokens  State = "tokens"  // its tokens agree, and the engine reports no scores, which would show more
	Differs State = "differs" // by more than rounding explains
	Failed  State = "failed"
	Refused State = "refused" // not launched, for a reason
	Unclear State = "unclear" // it ran, and nothing tells whether it is right
)

// Field is a cell's state.
type Field struct {
	Cell  int    `json:"cell"` // index into the result's cells; -1: none
	State State  `json:"state"`
	Class string `json:"class,omitempty"` // of a failure
	// Text says what differs, by how much and from what, or why there is nothing to compare.
	Text string `json:"text,omitempty"`
	// From is what agrees with the cell, or differs from it.
	From string `json:"from,omitempty"`
}

// Word is what the table says of a field: a state, or the class of a failure.
func (f Field) Word() string {
	if f.State == Failed && f.Class != "" {
		return f.Class
	}
	return string(f.State)
}

// Wrong reports whether a field needs a line that explains it.
func (f Field) Wrong() bool { return !slices.Contains([]State{OK, Tokens, None}, f.State) }

// rank orders fields by how much they matter, where several cells share one.
func (f Field) rank() int {
	return slices.Index([]State{None, OK, Tokens, Unclear, Refused, Failed, Differs}, f.State)
}

// Of makes the table of cells of one run; nil: they have one model in one dtype, or no engine was checked. pairs
// compares their outputs.
func Of(cells []Cell, pairs []parity.Parity) *Matrix {
	if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Checked }) {
		return nil
	}
	m := &Matrix{}
	columns, rows := make([]int, len(cells)), make([]int, len(cells))
	varied := dtypes(cells)
	for i, c := range cells {
		if c.Absent {
			continue
		}
		columns[i] = m.column(Column{Model: axis.Called(&c.Spec.Model), Weights: c.Spec.Model.DType,
			DType: varied(&c.Spec), spec: &c.Spec})
		rows[i] = m.row(cells, c)
	}
	if len(m.Columns) < 2 {
		return nil
	}
	m.tellApart()
	for r := range m.Rows {
		m.Rows[r].Fields = slices.Repeat([]Field{{Cell: -1, State: None}}, len(m.Columns))
	}
	for i, f := range judge(cells, pairs) {
		if cells[i].Absent {
			continue
		}
		at := &m.Rows[rows[i]].Fields[columns[i]]
		if f.rank() > at.rank() {
			*at = f
		}
	}
	return m
}

// dtypes returns what says which column of a model a cell is in. Cells that ask for none are in the first.
func dtypes(cells []Cell) func(*record.Cell) string {
	asked := map[string][]string{}
	key := func(c *record.Cell) string { return c.Model.Name + " " + c.Model.DType }
	for _, c := range cells {
		if d := c.Spec.DType; d != "" && !slices.Contains(asked[key(&c.Spec)], d) {
			asked[key(&c.Spec)] = append(asked[key(&c.Spec)], d)
		}
	}
	return func(c *record.Cell) string {
		if all := asked[key(c)]; len(all) > 1 {
			return cmp.Or(c.DType, all[0])
		}
		return ""
	}
}

// column is the number of a column, which it adds.
func (m *Matrix) column(c Column) int {
	same := func(o Column) bool { return o.DType == c.DType && axis.Named(axis.Model).Equal(o.spec, c.spec) }
	if at := slices.IndexFunc(m.Columns, same); at >= 0 {
		return at
	}
	m.Columns = append(m.Columns, c)
	return len(m.Columns) - 1
}

// tellApart adds the file's name to models of one name and dtype.
func (m *Matrix) tellApart() {
	names := make([]string, len(m.Columns))
	for i, c := range m.Columns {
		names[i] = c.Model
		if slices.ContainsFunc(m.Columns, func(o Column) bool {
			return o.spec != c.spec && o.Model == c.Model && o.Weights == c.Weights && o.DType == c.DType
		}) {
			names[i] += " (" + cmp.Or(filepath.Base(c.spec.Model.File), c.spec.Model.SHA256) + ")"
		}
	}
	for i, name := range names {
		m.Columns[i].Model = name
	}
}

// row is the number of a cell's row, which it adds. What ran is that of the first cell that ran.
func (m *Matrix) row(all []Cell, c Cell) int {
	own := Row{Engine: c.Title, With: with(all, c)}
	at := slices.IndexFunc(m.Rows, func(r Row) bool { return r.Engine == own.Engine && r.With == own.With })
	if at < 0 {
		m.Rows = append(m.Rows, own)
		at = len(m.Rows) - 1
	}
	if r := &m.Rows[at]; c.Counted > 0 && c.Device != nil {
		r.Device = cmp.Or(r.Device, c.Device.Title())
		for _, row := range c.Ran {
			if row.What == ran.Backend {
				r.Backend = cmp.Or(r.Backend, row.Got)
			}
		}
	}
	return at
}

// with has the settings of a cell in which its engine's cells differ, but for the dtype.
func with(all []Cell, c Cell) string {
	var words, specs = []string{}, []*record.Cell{}
	for _, o := range all {
		if o.Spec.Engine == c.Spec.Engine && !o.Absent {
			specs = append(specs, &o.Spec)
		}
	}
	for _, x := range axis.Of(specs...) {
		differs := func(o *record.Cell) bool { return !x.Equal(o, &c.Spec) }
		varied := x.Name != axis.DType && x.Name != axis.PromptCache // which engines report, and no plan varies
		if x.Role == axis.Setting && varied && x.Part == "" && slices.ContainsFunc(specs, differs) {
			words = append(words, short(x, &c.Spec))
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// switches say nothing without the field that they are of.
var switches = []string{"on", "off", "true", "false", "auto", "none"}

// short is a value in a row's name. Words need no field's name, numbers do.
func short(x *axis.Axis, c *record.Cell) string {
	v := x.Of(c)
	if x.Own && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz-") == "" && !slices.Contains(switches, v) {
		return v
	}
	return x.In(c)
}
