package matrix_test

import (
	"fmt"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/matrix"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// table writes a matrix in a few letters, a row a line.
func table(m *matrix.Matrix) string {
	var b strings.Builder
	for _, r := range m.Rows {
		fmt.Fprintf(&b, "%s|%s|%s|%s", r.Engine, r.With, r.Device, r.Backend)
		for _, f := range r.Fields {
			fmt.Fprintf(&b, " %s", f.Word())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func of(t *testing.T, engines ...comparetest.Engine) *matrix.Matrix {
	t.Helper()
	return compare.Runs(comparetest.Run(t, "matrix", engines...)).Support
}

func TestEveryState(t *testing.T) {
	m := of(t, comparetest.Matrix()...)
	want := `webllm|swiftshader|software-adapter SwiftShader|webgpu ok differs
webllm|lavapipe|| device-lost refused
llamacpp||cpu Example CPU 3.0 GHz| ok ok
served||cpu Example CPU 3.0 GHz| tokens unclear
`
	if got := table(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if m.Columns[0].Weights != "F32" || m.Columns[1].Weights != "Q4_0" || m.Columns[0].DType != "" {
		t.Errorf("%+v", m.Columns)
	}
	wrong := m.Rows[0].Fields[1]
	check.Has(t, wrong.Text, "scores up to 0.400 apart: more than float32 explains (0.001), at position 51 of 64, step by step")
	if wrong.From != "llmparity's reference implementation" || wrong.Cell != 4 {
		t.Errorf("%+v", wrong)
	}
	check.Has(t, m.Rows[1].Fields[1].Text, "the adapter lacks shader-f16")
	if f := m.Rows[3].Fields[0]; f.From == "" || f.Wrong() {
		t.Errorf("agrees by text with %+v", f)
	}
	if m.Rows[3].Fields[1].Text == "" {
		t.Error("nothing says why it is unclear")
	}
}

// scorers are engines with one model and, without scores, a second one, so that there is a table.
func scorers(shifts ...float64) []comparetest.Engine {
	var out []comparetest.Engine
	for i, by := range shifts {
		e := comparetest.Native(1)
		e.Cell.ID, e.Cell.Setup, e.Cell.Engine = i+1, i+1, fmt.Sprintf("e%d", i+1)
		e.Checked = comparetest.Scores(func(int, int) float64 { return -by })
		e.Check.Arithmetic = []string{"float32"}
		out = append(out, e)
	}
	last := comparetest.Native(1)
	last.Cell.ID, last.Cell.Setup, last.Cell.Engine = len(out)+1, len(out)+1, "e1"
	last.Cell.Model.DType, last.Cell.Model.SHA256 = "Q8_0", "q8"
	return append(out, last)
}

// Without the reference implementation, the side that differs from more cells than it agrees with is wrong.
func TestMajority(t *testing.T) {
	for _, c := range []struct {
		shifts []float64
		want   string
	}{
		{[]float64{0, 0}, "ok ok"},
		{[]float64{0, 0.5}, "differs differs"},
		{[]float64{0, 0.5, 0}, "ok differs ok"},
		{[]float64{0, 0.5, 1}, "differs differs differs"},
	} {
		m := of(t, scorers(c.shifts...)...)
		var got []string
		for _, r := range m.Rows {
			got = append(got, r.Fields[0].Word())
		}
		if words := strings.Join(got, " "); words != c.want {
			t.Errorf("%v: %s, want %s", c.shifts, words, c.want)
		}
		if m.Rows[0].Fields[1].State != matrix.Unclear {
			t.Errorf("nothing tells about the second model: %+v", m.Rows[0].Fields[1])
		}
	}
	m := of(t, scorers(0, 0.5)...)
	check.Has(t, m.Rows[0].Fields[0].Text, "either may be wrong")
}

// Scores of a text are right, and yet the engine generates what it finds unlikely: it draws tokens wrongly.
func TestTokensThatScoresDoNotExplain(t *testing.T) {
	for name, c := range map[string]struct {
		likely int // at the first difference, to both engines, instead of what the first one generated
		want   string
	}{"the first": {12, "differs ok"}, "the second": {0, "ok differs"}} {
		all := scorers(0, 0)
		a, b := &all[0], &all[1]
		a.IDs = append([]int{}, b.IDs...)
		a.IDs[0], b.IDs[0] = 11, 12
		text := record.Scoring{Reference: a.Cell.ID, Attempt: 1, PromptIDs: a.PromptIDs, Top: 3}
		for _, e := range []*comparetest.Engine{a, b} {
			likely := c.likely
			if likely == 0 {
				likely = 11
			}
			e.Scored, e.Scores = text, []record.Score{{Forced: a.IDs[0], LogProb: -9, Top: []record.Candidate{
				{ID: likely, LogProb: -0.1}, {ID: 23 - likely, LogProb: -9}, {ID: 99, LogProb: -10}}}}
		}
		m := of(t, all...)
		got := m.Rows[0].Fields[0].Word() + " " + m.Rows[1].Fields[0].Word()
		if got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, m.Rows)
		}
		for _, r := range m.Rows[:2] {
			if f := r.Fields[0]; f.State == matrix.Differs {
				check.Has(t, f.Text, "different from token 1 on", "more than float32 explains")
			}
		}
	}
}

// Requested dtypes are columns; cells that ask for none are in the first of a model.
func TestDTypesAreColumns(t *testing.T) {
	all := scorers(0, 0, 0)
	all[0].Cell.DType, all[1].Cell.DType, all[1].Cell.Engine = "f32", "f16", "e1"
	m := of(t, all[:3]...)
	if len(m.Columns) != 2 || m.Columns[0].DType != "f32" || m.Columns[1].DType != "f16" {
		t.Fatalf("%+v", m.Columns)
	}
	if got := table(m); got != "e1||cpu Example CPU 3.0 GHz| ok ok\ne3||cpu Example CPU 3.0 GHz| ok none\n" {
		t.Error(got)
	}
}

// There is no table of one column, without a check, or of several runs.
func TestNoMatrix(t *testing.T) {
	if m := of(t, scorers(0, 0)[:2]...); m != nil {
		t.Errorf("one column: %+v", m)
	}
	unchecked := scorers(0)
	unchecked[0].Checked = nil
	if m := of(t, unchecked...); m != nil {
		t.Errorf("nothing checked: %+v", m)
	}
	run := comparetest.Run(t, "matrix", comparetest.Matrix()...)
	if m := compare.Runs(run, run).Support; m != nil {
		t.Errorf("two runs: %+v", m)
	}
}

// The files distinguish models of one name and dtype.
func TestModelsOfOneName(t *testing.T) {
	all := scorers(0)
	all[1].Cell.Model.DType = all[0].Cell.Model.DType
	all[0].Cell.Model.File, all[1].Cell.Model.File = "/a/one.gguf", "/a/two.gguf"
	m := of(t, all...)
	check.Has(t, m.Columns[0].Model, "(one.gguf)")
	check.Has(t, m.Columns[1].Model, "(two.gguf)")
}

// An engine that could not make the score check is not right by its tokens, which hide wrong kernels.
func TestFailedCheckIsUnclear(t *testing.T) {
	all := comparetest.Matrix()
	all[0].Checked[7].Top[0].LogProb = -5 // not the likeliest, so no record takes it
	f := of(t, all...).Rows[0].Fields[0]
	if f.State != matrix.Unclear {
		t.Fatalf("%+v", f)
	}
	check.Has(t, f.Text, "could not score")
}

// A run that was interrupted has a table of what was launched.
func TestCellsThatWereNotLaunched(t *testing.T) {
	all := comparetest.Matrix()
	for _, i := range []int{1, 6} {
		all[i].Cell.Repetitions, all[i].Failing, all[i].Checked, all[i].Anchored = 0, nil, nil, nil
		all[i].Cell.Model = record.Model{Name: "as typed"}
	}
	m := of(t, all...)
	got := table(m)
	if len(m.Columns) != 2 || strings.Contains(got, "launched") || !strings.Contains(got, "llamacpp||") {
		t.Errorf("%+v\n%s", m.Columns, got)
	}
}
