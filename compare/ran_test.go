package compare

import (
	"llmparity/internal/record/ran"
	"slices"
	"testing"
)

// A cell has what its launches asked for and got. What one of them missed counts.
func TestRanOfACell(t *testing.T) {
	var c Cell
	right := ran.With(ran.Threads, 4, 4, "log of launch 1")
	less := ran.With(ran.Threads, 4, 2, "log of launch 2")
	kv := ran.As(ran.KV, "f16", "f16", "log")
	for _, rows := range [][]ran.Row{{right}, {less, kv}, {right, kv}} {
		c.takeRan(rows)
	}
	if !slices.Equal(c.Ran, []ran.Row{less, kv}) {
		t.Errorf("%+v", c.Ran)
	}
}
