package figure

import (
	"slices"
	"testing"
)

// Columns of summary.csv keep their places: a new one comes last. No two figures share a name that people type.
func TestColumnsAreNumbered(t *testing.T) {
	typed := map[string]string{}
	for i, r := range Columns(Any) {
		if r.Column.Place != i+1 || r.Column.Name == "" || r.Column.What == "" || r.Title == "" {
			t.Errorf("%s: %+v, want place %d, a name and a meaning", r.Name, r.Column, i+1)
		}
		for _, name := range []string{r.Name, r.Column.Name} {
			if of, taken := typed[name]; taken && of != r.Name {
				t.Errorf("%s is the name of %s and of %s", name, of, r.Name)
			}
			typed[name] = r.Name
		}
		if by, err := Find(r.Column.Name); err != nil || by != r {
			t.Errorf("%s: %v", r.Column.Name, err)
		}
		if r.Bench != "" && r.Better == Neither {
			t.Errorf("%s: benchstat needs to know which way is better", r.Name)
		}
		if r.Bench != "" && r.Base() == 1 &&
			!slices.Contains([]string{"bytes", "s", "tokens/s", "requests/s"}, r.Unit) {
			t.Errorf("%s: benchstat's figures are in base units, but Base does not know %q", r.Name, r.Unit)
		}
	}
	names := map[string]bool{}
	for _, r := range Rows(Any) {
		if names[r.Name] {
			t.Errorf("two rows of %s", r.Name)
		}
		names[r.Name] = true
	}
}
