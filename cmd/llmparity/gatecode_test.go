package main

import (
	"testing"

	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
)

// A gate's exit code is that of failed launches only where nothing else is wrong.
func TestGateCodes(t *testing.T) {
	check := func(kind compare.GateKind, cell string, s compare.GateStatus) compare.GateCheck {
		return compare.GateCheck{Kind: kind, Cell: cell, Status: s}
	}
	launches := func(cell string, s compare.GateStatus) compare.GateCheck { return check(compare.GateLaunches, cell, s) }
	limit := func(cell string, s compare.GateStatus) compare.GateCheck { return check(compare.GateLimit, cell, s) }
	const pass, fail, open = compare.GatePassed, compare.GateFailed, compare.GateUnknown
	for name, c := range map[string]struct {
		checks  []compare.GateCheck
		unknown plan.GateLevel
		want    fault.Kind
	}{
		"launches alone":                      {[]compare.GateCheck{launches("a", fail), limit("a", pass)}, "", fault.Run},
		"launches and a limit":                {[]compare.GateCheck{launches("a", fail), limit("a", fail)}, "", fault.Gate},
		"a limit alone":                       {[]compare.GateCheck{launches("a", pass), limit("a", fail)}, "", fault.Gate},
		"launches and what is unknown":        {[]compare.GateCheck{launches("a", fail), limit("a", open), limit("b", pass)}, plan.GateWarn, fault.Run},
		"launches and an error of unknown":    {[]compare.GateCheck{launches("a", fail), limit("b", open), limit("c", pass)}, plan.GateError, fault.Gate},
		"all unknown, because launches fail":  {[]compare.GateCheck{launches("a", fail), limit("a", open)}, "", fault.Run},
		"all unknown, whether or not they do": {[]compare.GateCheck{launches("a", fail), launches("b", pass), limit("a", open), limit("b", open)}, "", fault.Gate},
		"all unknown, and nobody cares":       {[]compare.GateCheck{launches("a", fail), launches("b", pass), limit("b", open)}, plan.GateOff, fault.Run},
		"all unknown":                         {[]compare.GateCheck{launches("a", pass), limit("a", open)}, "", fault.Gate},
	} {
		if got := fault.Code(gateFault(&compare.Gate{Status: fail, Checks: c.checks}, c.unknown)); got != int(c.want) {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
	if err := gateFault(&compare.Gate{Status: pass}, plan.GateError); err != nil {
		t.Error(err)
	}
}
