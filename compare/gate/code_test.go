package gate

import (
	"testing"

	"llmparity/compare"
	"llmparity/internal/fault"
)

// A gate's exit code is that of failed launches only where nothing else fails, and that of an inconclusive one only
// where nothing fails.
func TestGateCodes(t *testing.T) {
	check := func(kind compare.GateKind, s compare.GateStatus) compare.GateCheck {
		return compare.GateCheck{Kind: kind, Status: s}
	}
	const pass, fail, open = compare.GatePassed, compare.GateFailed, compare.GateInconclusive
	for name, c := range map[string]struct {
		status compare.GateStatus
		checks []compare.GateCheck
		want   fault.Kind
	}{
		"launches alone": {fail, []compare.GateCheck{check(compare.GateLaunches, fail),
			check(compare.GateLimit, pass)}, fault.Run},
		"launches and a limit": {fail, []compare.GateCheck{check(compare.GateLaunches, fail),
			check(compare.GateLimit, fail)}, fault.Gate},
		"a limit alone": {fail, []compare.GateCheck{check(compare.GateLaunches, pass),
			check(compare.GateLimit, fail)}, fault.Gate},
		"a change and what is open": {fail, []compare.GateCheck{check(compare.GateChange, fail),
			check(compare.GateChange, open)}, fault.Gate},
		"launches and what is open": {fail, []compare.GateCheck{check(compare.GateLaunches, fail),
			check(compare.GateChange, open)}, fault.Run},
		"a missing cell": {fail, []compare.GateCheck{check(compare.GateCell, fail)}, fault.Gate},
		"open": {open, []compare.GateCheck{check(compare.GateLaunches, pass),
			check(compare.GateChange, open)}, fault.Inconclusive},
		"open, which only is warned": {compare.GateWarned, []compare.GateCheck{check(compare.GateChange, open)}, ""},
		"all pass":                   {pass, []compare.GateCheck{check(compare.GateChange, pass)}, ""},
	} {
		if got := fault.Of(Fault(&compare.Gate{Status: c.status, Checks: c.checks})); got != c.want {
			t.Errorf("%s: class %s, want %s", name, got, c.want)
		}
	}
}
