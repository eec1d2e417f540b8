package compare_test

import (
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
)

// Of several engines the verdict tells every pair, in short, and claims nothing that the statistics don't.
func TestTheVerdictTellsEveryPairOfEngines(t *testing.T) {
	var all []comparetest.Engine
	for n, name := range []string{"a", "b", "c"} {
		e := comparetest.Native(8)
		e.Cell.ID, e.Cell.Engine, e.Vary = n+1, name, 0.1
		if name == "c" {
			e.Token *= 3
			e.TTFT += 30 * time.Millisecond
		}
		all = append(all, e)
	}
	said := compare.Runs(comparetest.Run(t, "three", all...)).Verdict[1]
	for _, want := range []string{"a against b: ", "a against c: ", "b against c: ", ", decode ", "peak memory not told apart"} {
		if !strings.Contains(strings.ToLower(said), want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
}

// Where six launches that vary much can't tell, the verdict says what it takes to see a tenth.
func TestTheVerdictSaysWhatLaunchesCouldNotShow(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	a.Cell.ID, b.Cell.ID, a.Cell.Engine, b.Cell.Engine = 1, 2, "a", "b"
	a.Vary, b.Vary = 0.06, 0.06
	if said := compare.Runs(comparetest.Run(t, "noisy", a, b)).Verdict[1]; !strings.Contains(said, "at which a change of a tenth takes") {
		t.Error(said)
	}
	a.Vary, b.Vary = 0.005, 0.005
	if said := compare.Runs(comparetest.Run(t, "quiet", a, b)).Verdict[1]; strings.Contains(said, "takes") {
		t.Error(said)
	}
}
