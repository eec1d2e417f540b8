package reports_test

import (
	"bytes"
	"io"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// Every figure of a report is worked out again from the folder's CSV and journal by code that shares nothing with the
// report's.
func TestFiguresAreThoseOfTheRecord(t *testing.T) {
	device := comparetest.Native(1).Device
	for name, engines := range map[string]func() []comparetest.Engine{
		"several launches, one device": func() []comparetest.Engine {
			a, b := comparetest.Browser(8), comparetest.Native(7)
			a.Device, a.Vary, b.Vary = device, 0.05, 0.05
			return []comparetest.Engine{a, b}
		},
		"failed, cut and warm-up launches, other tokens": func() []comparetest.Engine {
			a, b := comparetest.Browser(9), comparetest.Native(6)
			a.Device, a.Vary = device, 0.2
			a.Warmup, a.Failing, a.Cut = true, map[int]record.Class{3: record.DeviceLost}, 5
			b.IDs[40] = 3
			return []comparetest.Engine{a, b}
		},
		"too few": func() []comparetest.Engine {
			return []comparetest.Engine{comparetest.Browser(2), comparetest.Native(1)}
		},
		"all of a cell lost": func() []comparetest.Engine {
			a := comparetest.Browser(2)
			a.Failing = map[int]record.Class{1: record.OOM, 2: record.OOM}
			return []comparetest.Engine{a, comparetest.Native(6)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := comparetest.Write(t, t.TempDir(), "folder", engines()...)
			run, err := record.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			res := compare.Runs(run)
			var text, page bytes.Buffer
			if err := reports.JSON(&text, res); err != nil {
				t.Fatal(err)
			}
			if err := reports.HTML(&page, res, run); err != nil {
				t.Fatal(err)
			}
			recount.Check(t, text.Bytes(), page.String(), dir)
		})
	}
}

// Two runs of one plan are set against each other engine by engine.
func TestFiguresOfTwoRunsAreThoseOfTheRecords(t *testing.T) {
	var dirs []string
	var runs []*record.Run
	for n := range 2 {
		e := comparetest.Native(6 + n)
		e.Vary, e.Token = 0.03, e.Token*3/2
		dirs = append(dirs, comparetest.Write(t, t.TempDir(), []string{"before", "after"}[n], e))
		run, err := record.Open(dirs[n])
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	res := compare.Runs(runs...)
	page := rendered(t, func(w io.Writer) error { return reports.HTML(w, res, runs...) })
	recount.Check(t, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page, dirs...)
}
