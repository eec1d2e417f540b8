package compare_test

import (
	"encoding/json"
	"math"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// Whatever sizes a spoilt record holds, its result can be written.
func TestAbsurdSizesCanBeWritten(t *testing.T) {
	for _, mib := range []float64{1e301, math.MaxFloat64 / 4, math.MaxFloat64} {
		run := comparetest.Run(t, "absurd", comparetest.Native(6), comparetest.Browser(6))
		for _, a := range run.Attempts {
			for i := range a.Totals {
				a.Totals[i].PSS, a.Totals[i].RSS = mib, mib/2
			}
		}
		if _, err := json.Marshal(compare.Runs(run)); err != nil {
			t.Errorf("%g MiB: %v", mib, err)
		}
		sound := comparetest.Run(t, "sound", comparetest.Native(6), comparetest.Browser(6))
		for _, pair := range [][]*record.Run{{sound, run}, {run, sound}} {
			if _, err := json.Marshal(compare.With(compare.Options{By: []string{}, AllowDifferent: true},
				pair...)); err != nil {
				t.Errorf("%g MiB against a sound run: %v", mib, err)
			}
		}
	}
}
