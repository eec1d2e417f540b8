package gate

import (
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/gates"
)

// A gate's exit code is that of failed launches only where nothing else fails, and that of an inconclusive one only
// where nothing fails.
func TestGateCodes(t *testing.T) {
	check := func(kind gates.Kind, s gates.Status) gates.Check {
		return gates.Check{Kind: kind, Status: s}
	}
	const pass, fail, open = gates.Passed, gates.Failed, gates.Inconclusive
	for name, c := range map[string]struct {
		status gates.Status
		checks []gates.Check
		want   fault.Kind
	}{
		"launches alone": {fail, []gates.Check{check(gates.KindLaunches, fail),
			check(gates.KindLimit, pass)}, fault.Run},
		"launches and a limit": {fail, []gates.Check{check(gates.KindLaunches, fail),
			check(gates.KindLimit, fail)}, fault.Gate},
		"a limit alone": {fail, []gates.Check{check(gates.KindLaunches, pass),
			check(gates.KindLimit, fail)}, fault.Gate},
		"a change and what is open": {fail, []gates.Check{check(gates.KindChange, fail),
			check(gates.KindChange, open)}, fault.Gate},
		"launches and what is open": {fail, []gates.Check{check(gates.KindLaunches, fail),
			check(gates.KindChange, open)}, fault.Run},
		"a missing cell": {fail, []gates.Check{check(gates.KindCell, fail)}, fault.Gate},
		"open": {open, []gates.Check{check(gates.KindLaunches, pass),
			check(gates.KindChange, open)}, fault.Inconclusive},
		"open, which only is warned": {gates.Warned, []gates.Check{check(gates.KindChange, open)}, ""},
		"all pass":                   {pass, []gates.Check{check(gates.KindChange, pass)}, ""},
	} {
		if got := fault.Of(Fault(&gates.Outcome{Status: c.status, Checks: c.checks})); got != c.want {
			t.Errorf("%s: class %s, want %s", name, got, c.want)
		}
	}
}
