package memory_test

import (
	"math"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
)

func TestRetainedIsWhatTheUnloadLeaves(t *testing.T) {
	e := comparetest.Browser(3)
	e.Vary = 0
	f := compare.Runs(comparetest.Run(t, "three", e)).Cells[0].Figure(figure.Retained)
	// The made-up processes give back about two thirds of what the load took: 6, 214, 332 and 1 MiB.
	if want := 0.32 * (6 + 214 + 332 + 1); f.N != 3 || math.Abs(f.Center()-want) > 2 {
		t.Errorf("retained %v over %d launches, want %v over 3", f.Center(), f.N, want)
	}
	native := compare.Runs(comparetest.Run(t, "native", comparetest.Native(3))).Cells[0].Figure(figure.Retained)
	if native.Known() || native.Absent == "" {
		t.Errorf("without a baseline: %+v", native)
	}
}
