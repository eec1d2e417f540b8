//go:build !race

package reports_test

import (
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
)

// asked are two engines on one device at two numbers of clients and with a mix that has a goal.
func asked(launches int) []comparetest.Engine {
	var out []comparetest.Engine
	device := comparetest.Native(1).Device
	for n, clients := range []int{2, 3} {
		a, b := comparetest.Loaded(comparetest.Measured(comparetest.Browser(launches), comparetest.Page()), 3*n+1,
			clients, 10*clients), comparetest.Loaded(comparetest.Native(launches), 3*n+2, clients, 10*clients)
		a.Slots, a.Device = 1, device
		out = append(out, a, b)
	}
	mixed := comparetest.Mixed(comparetest.Native(launches), 9, 3, 24, 4)
	return append(out, mixed)
}

func TestTrafficIsThatOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", asked(6)...))
	if len(res.Families) != 1 || len(res.Families[0].Means) == 0 {
		t.Errorf("%+v", res.Families)
	}
}

func TestWrongTrafficIsFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", asked(6)...), compare.Defaults())
	figure := func(r *compare.Result, cell int, name string) *compare.Figure {
		for i, f := range r.Cells[cell].Load.Figures {
			if f.Name == name && f.Known() {
				return &r.Cells[cell].Load.Figures[i]
			}
		}
		t.Fatalf("no %s", name)
		return nil
	}
	for says, change := range map[string]func(*compare.Result){
		"queueing_p90, median":       func(r *compare.Result) { *figure(r, 0, "queueing_p90").Median *= 1.0001 },
		"itl_p99, launch":            func(r *compare.Result) { figure(r, 1, "itl_p99").Values[2].Value *= 1.0001 },
		"aggregate_tps, upper end":   func(r *compare.Result) { figure(r, 0, "aggregate_tps").Interval.Hi *= 1.0001 },
		"goodput, median":            func(r *compare.Result) { *figure(r, 4, "goodput").Median += 0.001 },
		"the report has no tpot_p50": func(r *compare.Result) { figure(r, 0, "tpot_p50").Name = "tpot" },
		", long: ttft_p90, median": func(
			r *compare.Result) {
			*r.Cells[4].Load.Kinds[1].Figures[1].Median += 0.001
		},
		"traffic: it is in the report": func(r *compare.Result) { r.Cells[1].Load = nil },
		"kinds is":                     func(r *compare.Result) { r.Cells[4].Load.Kinds = r.Cells[4].Load.Kinds[:1] },
	} {
		folder.finds(t, says, change, false)
	}
}
