package reports

import (
	"strings"
	"testing"

	"llmparity/reports/plain"
)

// Names are cut, and numbered, where a table is too wide for them; those that take no more than a cut one would stay.
func TestTerminalCutsLongNames(t *testing.T) {
	wide := strings.Fields(strings.Repeat(strings.Repeat("9", 14)+" ", 7))
	for name, want := range map[string]string{"llamacpp": "llamacpp", "llamacpp of another run": "[1] lla…"} {
		table := terminal{width: width}
		table.grid(&plain.Grid{Head: strings.Fields("cell a b c d e f g"),
			Rows: [][]string{append([]string{name}, wide...)}, Cells: []int{0}})
		if !strings.Contains(table.String(), "\n"+want+"  9") || table.numbered != (want != name) {
			t.Errorf("%q is written (numbered: %v), want %q:\n%s", name, table.numbered, want, table.String())
		}
	}
}
