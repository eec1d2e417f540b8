package record

import (
	"strings"
	"testing"
)

func TestChangedMachineStateWarns(t *testing.T) {
	for name, c := range map[string]struct {
		states []MachineState
		want   []string
	}{
		"another governor, limit and heat": {[]MachineState{
			{Governor: "performance", MaxMHz: 4000, Throttled: new(int64(7))},
			{Governor: "performance", MaxMHz: 4000, Throttled: new(int64(7))}, {},
			{Governor: "powersave", MaxMHz: 2000, Throttled: new(int64(10))},
			{Governor: "powersave", MaxMHz: 2000, Throttled: new(int64(0))}}, // rebooted
			[]string{"performance from attempt 1, powersave from attempt 4",
				"4000 MHz from attempt 1, 2000 MHz from attempt 4",
				"(events: 3; intervals between launches with events: 1, first between attempts 2 and 4)"}},
		"a frequency that moves within its limit": {[]MachineState{
			{Governor: "performance", MHz: 1, Throttled: new(int64(7))},
			{Governor: "performance", MHz: 2, Throttled: new(int64(7))}}, nil},
	} {
		w := made(t, resumed)
		for i, m := range c.states {
			w.Begin(resumed, Beginning{Repetition: i + 1, Machine: &m}).End(OK, "", nil, Cost{})
		}
		r := ended(t, w, OK)
		if len(r.Warnings) != len(c.want) {
			t.Fatalf("%s: %+v", name, r.Warnings)
		}
		for i, want := range c.want {
			if !strings.Contains(r.Warnings[i].Text, want) {
				t.Errorf("%s: %s: want %s", name, r.Warnings[i].Text, want)
			}
		}
	}
}
