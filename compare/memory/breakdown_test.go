package memory_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// set changes what a launch's source read under a name when a phase ended.
func set(t *testing.T, a *record.Attempt, p record.Phase, name string, value float64) {
	t.Helper()
	for i := range a.Metrics {
		if m := &a.Metrics[i]; m.Edge == p && m.Name == name {
			m.Value = value
			return
		}
	}
	t.Fatalf("there is no %s at the end of %s", name, p)
}

// part changes a part of a launch's ledger, and the ledger with it.
func part(t *testing.T, a *record.Attempt, p record.Phase, name string, more float64) {
	t.Helper()
	read := a.AtEdge(p, figure.Ledger, name)
	live := a.AtEdge(p, figure.Ledger, "live_bytes")
	for id := range read {
		set(t, a, p, name, read[id]+more)
		set(t, a, p, "live_bytes", live[id]+more)
	}
}

func measured(t *testing.T, launches int) *record.Run {
	t.Helper()
	return comparetest.Run(t, "inside", comparetest.Measured(comparetest.Browser(launches), comparetest.Page()))
}

// Medians of parts that grow at each other's expense don't add up: the parts of one launch do.
func TestLedgerPartsOfALaunchAddUp(t *testing.T) {
	run := measured(t, 3)
	for i, more := range [][2]float64{{10 << 20, 0}, {0, 10 << 20}, {4 << 20, 4 << 20}} {
		part(t, run.Attempts[i], record.Measure, "workspaces_bytes", more[0])
		part(t, run.Attempts[i], record.Measure, "unattributed_bytes", more[1])
	}
	c := compare.Runs(run).Cells[0]
	texts, sum := c.Shown().Inside(c.Memory.Measure), 0.0
	size := func(name string) float64 {
		v, err := strconv.ParseFloat(texts[name], 64)
		check.Err(t, err)
		return v
	}
	for _, name := range memory.LedgerParts() {
		sum += size(name)
	}
	if math.Abs(sum-size(figure.Ledger)) > 1e-9 {
		t.Errorf("parts of %v MiB: %v", sum, texts)
	}
}

// What a source did not answer is no zero, and no sum over the others.
func TestUnmeasuredMemoryIsAbsent(t *testing.T) {
	for _, e := range []comparetest.Engine{comparetest.Browser(2), comparetest.Native(2)} {
		if b := compare.Runs(comparetest.Run(t, "blind", e)).Cells[0].Memory; b != nil {
			t.Errorf("nothing looked inside: %+v", b)
		}
	}
	in := comparetest.Page()
	delete(in.Wasm, record.Measure)
	delete(in.Heap, record.Baseline)
	run := comparetest.Run(t, "gaps", comparetest.Measured(comparetest.Browser(2), in))
	a := run.Attempts[0]
	load, _ := a.Phase(record.Load)
	// answers at the load and later, but for the end of measure
	a.Sources[900] = record.Source{Role: "worker", Method: "heap_usage"}
	for _, at := range []record.Phase{record.Load, record.Idle} {
		p, _ := a.Phase(at)
		a.Metrics = append(a.Metrics, record.MetricRow{Source: 900, NS: p.EndNS + 1, Name: "used_bytes", Value: 1 << 20,
			Edge: at})
	}
	b := compare.Runs(run).Cells[0].Memory
	if f := evidence.Find(b.Measure, figure.Wasm); f.Known() || f.Absent != "not measured" || len(f.Values) != 0 {
		t.Errorf("%+v", f)
	}
	if f := evidence.Find(b.Load, figure.Wasm); f.N != 2 {
		t.Errorf("%+v", f)
	}
	if f := evidence.Find(b.Retained, figure.JSHeap); f.Known() {
		t.Errorf("without a baseline: %+v", f)
	}
	if f := evidence.Find(b.Load, figure.JSHeap); f.N != 2 || f.Values[0].Value != f.Values[1].Value+1 {
		t.Errorf("two isolates, read at %d: %+v", load.EndNS, f)
	}
	if f := evidence.Find(b.Measure, figure.JSHeap); f.N != 1 || f.Values[0].Attempt != run.Attempts[1].ID {
		t.Errorf("one isolate of two answered: %+v", f)
	}
	if f := evidence.Find(b.Measure, figure.UserAgent); f.Known() {
		t.Errorf("%+v", f)
	}
}

func TestPeaksByProcessAndPhase(t *testing.T) {
	e := comparetest.Browser(1)
	e.Processes = append(e.Processes, comparetest.Process{Role: "utility", Before: 80, Loaded: 81, Shared: 44})
	run := comparetest.Run(t, "peaks", comparetest.Measured(e, nil))
	b := compare.Runs(run).Cells[0].Memory
	var names []string
	for _, p := range b.Peaks {
		names = append(names, p.Process)
		if len(p.Phases) != len(record.Phases()) {
			t.Errorf("%s has %d phases", p.Process, len(p.Phases))
		}
	}
	if want := []string{"browser", "renderer", "gpu-process", "utility"}; !slices.Equal(names, want) {
		t.Fatalf("%q, want %q", names, want)
	}
	if f := b.Peaks[3].Phases[0]; f.N != 1 || f.Center() < 80 || f.Center() > 100 ||
		!strings.Contains(f.How, "the highest of several processes") {
		t.Errorf("two of a role are no sum: %+v", f)
	}
	if f := b.Peaks[1].Phases[0]; strings.Contains(f.How, "several") {
		t.Errorf("%+v", f)
	}
}

func TestUncertainLedgerIsWarnedOf(t *testing.T) {
	in := comparetest.Page()
	count := func() (n int) {
		e := comparetest.Measured(comparetest.Browser(2), in)
		e.Failing = map[int]record.Class{2: record.OOM} // counts nowhere
		for _, w := range compare.Runs(comparetest.Run(t, "x", e)).Warnings {
			if w.Code == "memory-uncertain" {
				n++
				if !strings.Contains(w.Text, "in 1 of 1 launches") || !strings.Contains(w.Text, "(up to 3)") ||
					w.Where != "webllm" {
					t.Errorf("%+v", w)
				}
			}
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("%d warnings of a certain ledger", n)
	}
	in.Uncertain = 3
	if n := count(); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// Another browser on the machine moves PSS and not RSS; a launch that really holds more moves both.
func TestSharedFilesAreWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		from     record.Phase
		pss, rss float64
		want     string
	}{
		"nothing":       {record.Baseline, 0, 0, ""},
		"it holds more": {record.Baseline, 80, 80, ""},
		"all the time":  {record.Baseline, -100, 0, "total PSS (after the measured requests) differs by 1"},
		"at the end":    {record.Unload, 100, 0, "total PSS (retained) differs by 1"},
	} {
		run := comparetest.Run(t, "x", comparetest.Browser(3))
		a := run.Attempts[1]
		from, _ := a.Phase(c.from)
		for i := range a.Totals {
			if row := &a.Totals[i]; row.NS >= from.BeginNS {
				row.PSS, row.RSS = row.PSS+c.pss, row.RSS+c.rss
			}
		}
		got := ""
		for _, w := range compare.Runs(run).Warnings {
			if w.Code == "memory-shared" {
				got += w.Text
			}
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRetainedIsWhatTheUnloadLeaves(t *testing.T) {
	e := comparetest.Browser(3)
	e.Vary = 0
	f := compare.Runs(comparetest.Run(t, "three", e)).Cells[0].Figure(figure.Retained)
	// The made-up processes give back about two thirds of what the load took: 6, 214, 332 and 1 MiB.
	if want := 0.32 * (6 + 214 + 332 + 1); f.N != 3 || math.Abs(f.Center()-want) > 2 {
		t.Errorf("retained %v over %d launches, want %v over 3", f.Center(), f.N, want)
	}
	native := compare.Runs(comparetest.Run(t, "native", comparetest.Native(3))).Cells[0].Figure(figure.Retained)
	if native.Known() || native.Absent == "" {
		t.Errorf("without a baseline: %+v", native)
	}
}
