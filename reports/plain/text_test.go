package plain

import (
	"slices"
	"testing"
)

// A word that is longer than a line goes on in the next one, behind its indent.
func TestWrapFoldsLongWords(t *testing.T) {
	for in, want := range map[string]string{"one two three": "- one two\n  three\n",
		"abcdefghijklmnop": "- abcdefgh\n  ijklmnop\n",
		"a abcdefghijk b":  "- a\n  abcdefgh\n  ijk b\n", "": "- \n", "ünïcödé-ünïcödé": "- ünïcödé-\n  ünïcödé\n"} {
		if got := Wrap(in, "- ", "  ", 10); got != want {
			t.Errorf("wrap(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNum(t *testing.T) {
	for in, want := range map[float64]string{0: "0", 64: "64", 4239.6: "4240", 820.43: "820.4", 99.96: "100.0",
		46.594: "46.59", 8.7469: "8.747", 0.02345: "0.023", 0.00012345: "0.000123", -3.25: "-3.250"} {
		if got := Num(in); got != want {
			t.Errorf("num(%v) = %q, want %q", in, got, want)
		}
	}
}

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
	if want := []bool{false, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("columns of numbers: %v, want %v", got, want)
	}
}
