package reports_test

import (
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// again are two runs of the same, of which the second may be changed.
func again(t *testing.T, o compare.Options, change func(*comparetest.Engine)) (*compare.Result, []*record.Run) {
	t.Helper()
	a, b := comparetest.Native(8), comparetest.Native(8)
	for _, e := range []*comparetest.Engine{&a, &b} {
		e.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 460, Shared: 3}}
	}
	other := comparetest.Native(8)
	other.Cell.ID, other.Cell.PromptID, other.Cell.Prompt = 7, 2, "There was"
	b.TTFT += b.TTFT / 300
	change(&b)
	runs := []*record.Run{comparetest.Run(t, "before", a, other), comparetest.Run(t, "after", b, other)}
	return compare.With(o, runs...), runs
}
