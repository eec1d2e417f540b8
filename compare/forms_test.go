package compare_test

import (
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
)

// Forms of a model for two engines are compared, and their ratios marked. A form of the same engine must be the same.
func TestFormsOfModelAreComparedAndMarked(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	for i, e := range []*comparetest.Engine{&a, &b} {
		e.Cell.ID, e.Cell.Model.Name, e.Cell.Model.Form = i+1, "llama", []string{"a.gguf", "b.gguf"}[i]
	}
	a.Cell.Engine, b.Cell.Engine, b.Cell.Model.SHA256 = "a", "b", "other"
	run := comparetest.Run(t, "forms", a, b)
	r := compare.Runs(run)
	if len(r.Comparisons) != 1 || len(r.Comparisons[0].Ratios) == 0 ||
		r.Comparisons[0].Ratios[0].Different != "weights: same model, other weights" {
		t.Errorf("%+v", r.Comparisons)
	}
	if r.Cells[0].Label != "a" || r.Cells[1].Label != "b" {
		t.Errorf("labels %q and %q", r.Cells[0].Label, r.Cells[1].Label)
	}
	a.Cell.Model.SHA256 = "another file"
	for _, c := range compare.Runs(run, comparetest.Run(t, "later", a, b)).Comparisons {
		if c.A == 0 && c.B == 2 {
			t.Error("another form of an engine is compared with the former one")
		}
	}
}
