package compare

import (
	"slices"
	"testing"

	"llmparity/internal/record"
)

// A cell has what its launches asked for and got. What one of them missed counts.
func TestRanOfACell(t *testing.T) {
	var c Cell
	right := record.RanWith(record.RanThreads, 4, 4, "log of launch 1")
	less := record.RanWith(record.RanThreads, 4, 2, "log of launch 2")
	kv := record.RanAs(record.RanKV, "f16", "f16", "log")
	for _, rows := range [][]record.Ran{{right}, {less, kv}, {right, kv}} {
		c.takeRan(rows)
	}
	if !slices.Equal(c.Ran, []record.Ran{less, kv}) {
		t.Errorf("%+v", c.Ran)
	}
}
