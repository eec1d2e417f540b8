package record

import (
	"strings"
	"testing"
)

func TestWhatChangesBetweenLaunchesIsWarnedOf(t *testing.T) {
	w := made(t)
	w.Cell(resumed)
	for i, m := range []MachineState{{Governor: "performance", MaxMHz: 4000, Throttled: new(int64(7))},
		{Governor: "performance", MaxMHz: 4000,
			Throttled: new(int64(7))}, {}, {Governor: "powersave", MaxMHz: 2000, Throttled: new(int64(10))},
		{Governor: "powersave", MaxMHz: 2000, Throttled: new(int64(0))}} { // it was started anew
		w.Begin(resumed, Beginning{Repetition: i + 1, Machine: &m}).End(OK, "", nil, Cost{})
	}
	if err := w.Close(OK); err != nil {
		t.Fatal(err)
	}
	r, err := Open(w.dir)
	if err != nil || len(r.Warnings) != 3 {
		t.Fatalf("%v: %+v", err, r.Warnings)
	}
	for i, want := range []string{"performance from attempt 1 on, powersave from attempt 4 on",
		"4000 MHz from attempt 1 on, 2000 MHz from attempt 4 on",
		"between 1 launches of the run and the next (first between the begins of attempts 2 and 4; 3 times"} {
		if !strings.Contains(r.Warnings[i].Text, want) {
			t.Errorf("%s: want %s", r.Warnings[i].Text, want)
		}
	}
}

func TestAMachineThatStaysTheSameIsNotWarnedOf(t *testing.T) {
	w := made(t)
	w.Cell(resumed)
	for n := range 3 {
		w.Begin(resumed, Beginning{Repetition: n + 1,
			Machine: &MachineState{Governor: "performance", MHz: float64(n), Throttled: new(int64(7))}}).
			End(OK, "", nil, Cost{})
	}
	if err := w.Close(OK); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(w.dir); err != nil || len(r.Warnings) != 0 {
		t.Errorf("%v: %+v", err, r.Warnings)
	}
}

func TestStolenTimeIsKept(t *testing.T) {
	w := made(t)
	w.Cell(resumed)
	for n, stolen := range []*float64{new(0.25), new(0.0), nil} {
		a := w.Begin(resumed, Beginning{Repetition: n + 1})
		if stolen != nil {
			a.Stolen(*stolen)
		}
		a.End(OK, "", nil, Cost{})
	}
	if err := w.Close(OK); err != nil {
		t.Fatal(err)
	}
	r, err := Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Attempts; a[0].StolenS == nil || *a[0].StolenS != 0.25 || a[1].StolenS == nil || *a[1].StolenS != 0 ||
		a[2].StolenS != nil {
		t.Errorf("%v, %v, %v", a[0].StolenS, a[1].StolenS, a[2].StolenS)
	}
}
