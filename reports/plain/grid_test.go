package plain

import (
	"testing"
)

func TestSortKey(t *testing.T) {
	for text, want := range map[string]string{"12.5": "12.5", "-0.3%": "-0.3", "+3.2%": "3.2", "±10%": "10",
		"367.7 (too few launches: 1)": "367.7", "<0.001": "0.001", ">-0.001": "-0.001",
		"1e+16": "1e+16", "3, 4, 5": "3", "64 of 64": "64", "": "", "–": "", "exactly": "", "f16": "", "12b": "",
		"2026-11-22": "", "1.2.3": ""} {
		if got := SortKey(text); got != want {
			t.Errorf("%q sorts by %q, want %q", text, got, want)
		}
	}
}

func TestColumnsOfNumbers(t *testing.T) {
	g := &Grid{Head: []string{"cell", "MiB", "method", "of both"},
		Rows: [][]string{{"1", "12.5", "ledger", "3"}, {"2", "–", "log", "none"}, {"3", "– (none: why)", "", "4"}}}
	var got []bool
	for _, c := range g.Columns() {
		got = append(got, c.Number)
	}
	if want := []bool{false, true, false, false}; len(got) != 4 || got[0] != want[0] || got[1] != want[1] ||
		got[2] != want[2] || got[3] != want[3] {
		t.Errorf("columns of numbers: %v, want %v", got, want)
	}
}
