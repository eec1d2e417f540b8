package compare_test

import (
	"errors"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// The title counts cells that ran, and names what repetitions ran in.
func TestTitleIsOfWhatRan(t *testing.T) {
	ran, refused, reused := comparetest.Native(6), comparetest.Native(6), comparetest.Native(6)
	refused.Cell.ID, refused.Cell.Model.Name, refused.Refused = 3, "other", errors.New("too large")
	one := compare.Runs(comparetest.Run(t, "refused", ran, refused)).Answer()
	if got := one.Title; strings.Contains(got, "models") {
		t.Errorf("one of two models ran: %q", got)
	}
	reused.Cell.ID, reused.Cell.Reused, reused.Reused = 3, true, true
	got := compare.Runs(comparetest.Run(t, "reused", ran, reused)).Answer().Title
	if !strings.HasSuffix(got, ", new processes and reused processes") {
		t.Errorf("%q", got)
	}
}

// What reads wait for a processor is no cost of reading.
func TestCostOfReadingIsCPUTime(t *testing.T) {
	busy := func(cpu int64) float64 {
		run := comparetest.Run(t, "run", comparetest.Native(6))
		for _, a := range run.Attempts {
			a.Cost = record.Cost{Reads: 10, ReadNS: 1000, ReadCPUNS: cpu}
		}
		r := compare.Runs(run)
		return r.Cells[0].Figure(figure.SamplerBusy).Center()
	}
	if old, got := busy(0), busy(250); !(old > 0) || got < old*0.24 || got > old*0.26 {
		t.Errorf("%g, and %g of reads that had a processor for a quarter of the time", old, got)
	}
}
