package compare_test

import (
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
)

// Cells of an engine whose settings a plan varies are named by them, and each is compared with other engines.
func TestVariedSettingsTellCellsApart(t *testing.T) {
	page, worker, other := comparetest.Native(6), comparetest.Native(6), comparetest.Native(6)
	for i, e := range []*comparetest.Engine{&page, &worker, &other} {
		e.Cell.ID, e.Cell.Setup, e.Cell.Engine = i+1, 1, "a"
	}
	page.Cell.Settings = map[string]string{"thread": "page"}
	worker.Cell.Settings = map[string]string{"thread": "worker"}
	worker.Cell.Setup, other.Cell.Engine = 2, "b"
	run := comparetest.Run(t, "axes", page, worker, other)
	r := compare.Runs(run)
	var labels []string
	for _, c := range r.Cells {
		labels = append(labels, c.Label)
	}
	if want := []string{"a (thread page)", "a (thread worker)", "b"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	if n := len(r.Comparisons); n != 2 {
		t.Errorf("%d comparisons, want one of b with each cell of a", n)
	}
	if n := len(r.Settings.Sides); n != 3 {
		t.Errorf("the settings have the sides %q", r.Settings.Sides)
	}
	for _, c := range compare.Runs(run, comparetest.Run(t, "again", page, worker, other)).Comparisons {
		a, b := c.A, c.B
		if a < 3 && b >= 3 && b != a+3 {
			t.Errorf("cell %d of the baseline run is compared with cell %d", a, b-3)
		}
	}
}
