package compare_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
)

// A difference without an interval says why it has none.
func TestHeadlineOfFewLaunches(t *testing.T) {
	for launches, want := range map[int]string{5: "(5 launches: too few for an interval)", 6: "(95% CI "} {
		run := comparetest.Run(t, "run", comparetest.Browser(launches), comparetest.Native(launches))
		answer := compare.Runs(run).Answer()
		if got := answer.Memory.Headline; !strings.Contains(got, want) {
			t.Errorf("%d launches: %s\nwant %s", launches, got, want)
		}
	}
}
