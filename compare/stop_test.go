package compare_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// What was looked at several times has an interval that holds whichever look was the last.
func TestIntervalsAreWiderAfterPeeking(t *testing.T) {
	run := comparetest.Run(t, "until", comparetest.Native(12), comparetest.Browser(12))
	plain := compare.Runs(run)
	run.Stops = map[int]record.Stop{2: {Cell: 2, Figure: figure.DecodeTPS, Repetitions: 12, Looks: 5, Look: 3,
		Level: 0.95, Confidence: 0.99, Percent: 5, Narrow: true}}
	res := compare.Runs(run)
	for _, name := range []string{figure.DecodeTPS, figure.LoadTime} {
		for i, looked := range []bool{true, false} { // the native engine is cell 2
			before, after := plain.Cells[i].Figure(name), res.Cells[i].Figure(name)
			if *before.Median != *after.Median || before.N != 12 {
				t.Errorf("%s: %+v, %+v", name, before, after)
			}
			// Of twelve launches the third to the tenth are one of 96%, the second to the eleventh one of 99.4%.
			if wider := after.Interval.Lo < before.Interval.Lo &&
				after.Interval.Hi > before.Interval.Hi; wider != looked {
				t.Errorf("%s of %s: %+v, %+v", name, res.Cells[i].Label, before.Interval, after.Interval)
			}
			if looked && (after.Interval.Confidence < 0.95 ||
				!strings.Contains(after.How, "checked up to 5 times: a 99% interval")) {
				t.Errorf("%s: %+v, %q", name, after.Interval, after.How)
			}
		}
	}
	run.Stops[2] = record.Stop{Cell: 2, Figure: figure.DecodeTPS, Looks: 100, Level: 0.95, Confidence: 0.9999}
	if f := compare.Runs(run).Cells[0].Figure(figure.DecodeTPS); f.Interval != nil || f.Note != evidence.TooFewRuns {
		t.Errorf("%+v", f)
	}
}
