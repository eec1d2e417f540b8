package conduct_test

import (
	"reflect"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/conduct"
	"llmparity/internal/record"
)

// The order of launches is the one that the record shows, whatever a plan asked for.
func TestConductFindsTheOrder(t *testing.T) {
	type launch struct{ cell, repetition int }
	for name, c := range map[string]struct {
		order []launch
		want  conduct.Order
	}{
		"one cell":    {[]launch{{1, 1}, {1, 2}}, ""},
		"grouped":     {[]launch{{1, 1}, {1, 2}, {2, 1}, {2, 2}}, conduct.Grouped},
		"alternating": {[]launch{{1, 1}, {2, 1}, {1, 2}, {2, 2}}, conduct.Alternate},
		"after a cell failed": {[]launch{{1, 1}, {2, 1}, {1, 2}, {1, 3}, {1, 4}},
			conduct.Alternate},
		"shuffled": {[]launch{{1, 1}, {2, 1}, {2, 2}, {1, 2}}, conduct.Shuffled},
		"two groups": {[]launch{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 1}, {3, 2}, {4, 2}},
			conduct.Mixed},
	} {
		run := comparetest.Run(t, "made-up", comparetest.Native(1))
		spec, attempt := run.Cells[0], *run.Attempts[0]
		run.Cells, run.Attempts = nil, nil
		seen := map[int]bool{}
		for at, l := range c.order {
			if !seen[l.cell] {
				seen[l.cell], spec.ID = true, l.cell
				run.Cells = append(run.Cells, spec)
			}
			a := attempt
			a.ID, a.Cell, a.Repetition, a.BeginNS = at+1, l.cell, l.repetition, int64(at)
			run.Attempts = append(run.Attempts, &a)
		}
		if got := compare.Runs(run).Conduct(0).Order; got != c.want {
			t.Errorf("%s: order %q, want %q", name, got, c.want)
		}
	}
}

// Warm-ups, intervals and the clock's error are those of the launches that count.
func TestConductIsOfCountedLaunches(t *testing.T) {
	web := comparetest.Browser(3)
	web.Warmup, web.Failing = true, map[int]record.Class{1: record.Crash}
	run := comparetest.Run(t, "made-up", web)
	for i, a := range run.Attempts {
		clock := record.Clock{Isolate: "page", ErrorNS: int64(time.Millisecond)}
		if !a.Counted() {
			clock.ErrorNS = int64(time.Second)
		}
		a.Events = append(a.Events, record.Event{Clock: &clock})
		a.Requests = append(a.Requests, &record.Request{Phase: record.Warmup, Generated: 8 + i})
	}
	got := compare.Runs(run).Conduct(0)
	want := conduct.Conduct{Warmups: conduct.Range{Low: 1, High: 1}, WarmupTokens: conduct.Range{Low: 10, High: 11},
		Clock: time.Millisecond, Readers: []conduct.Reader{{Method: "smaps_rollup", Every: 500 * time.Millisecond},
			{Method: "statm", Every: 50 * time.Millisecond}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
