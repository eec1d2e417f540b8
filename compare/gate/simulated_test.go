//go:build !race

// Simulations are arithmetic: the race detector makes them ten times as long and has nothing to find in them. make test
// runs them without it.

package gate_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// runs are simulated of each side.
var runs = map[bool]int{false: 12, true: 100}[check.Slow]

// simulated describes runs of an engine in memory.
type simulated struct {
	comparetest.Series
	// launches end when decode's interval reaches no further from its median than this share; 0: all are made
	until float64
}

func runsOf(launches, cells int, cv, memory float64) simulated {
	return simulated{Series: comparetest.Series{Launches: launches, Cells: cells, CV: cv, Memory: memory}}
}

func (s simulated) till(share float64) simulated {
	s.until = share
	return s
}

func (s simulated) run(r *rand.Rand) *record.Run {
	out := s.Run(r, "simulated")
	for _, c := range out.Cells {
		n := s.Launches
		if s.until > 0 {
			n = s.enough(out, c.ID)
		}
		out.Attempts = slices.DeleteFunc(out.Attempts,
			func(a *record.Attempt) bool { return a.Cell == c.ID && a.Repetition > n })
	}
	return out
}

// enough is how many launches a cell has when its interval is narrow at one of a few looks, each at a confidence that
// corrects for their number, as run --until-ci has them.
func (s simulated) enough(run *record.Run, cell int) int {
	looks := []int{8, 12, 18, 27, s.Launches}
	var values []float64
	for _, a := range run.Attempts {
		if a.Cell == cell {
			tokens := a.Requests[0].Tokens
			values = append(values, 15e9/float64(tokens[15].NS-tokens[0].NS))
		}
	}
	for _, n := range looks {
		i := benchmath.AssumeNothing.Summary(
			benchmath.NewSample(slices.Clone(values[:n]), &benchmath.DefaultThresholds), 1-0.05/float64(len(looks)))
		if max(i.Hi-i.Center, i.Center-i.Lo) <= s.until*i.Center {
			return n
		}
	}
	return s.Launches
}

// results are of so many runs, each of launches of its own.
func (s simulated) results(n int, seed uint64) []*compare.Result { return s.changed(n, seed, nil) }

// changed are results of runs that somebody changed before they were read.
func (s simulated) changed(n int, seed uint64, change func(*record.Run)) []*compare.Result {
	r := rand.New(rand.NewPCG(seed, 17))
	out := make([]*compare.Result, n)
	for i := range out {
		run := s.run(r)
		if change != nil {
			change(run)
		}
		out[i] = compare.Runs(run)
	}
	return out
}

// outcomes counts how gates over pairs of runs end. All of one side are held against all of the other: the share is
// that of independent pairs, only less certain than so many would make it.
func outcomes(g *gates.Gate, base, now []*compare.Result) map[gates.Status]float64 {
	out := map[gates.Status]float64{}
	for _, b := range base {
		for _, n := range now {
			out[gate.Evaluate(g, n, b).Status] += 1 / float64(len(base)*len(now))
		}
	}
	return out
}

func shares(of map[gates.Status]float64) string {
	return fmt.Sprintf("%.2f%% fail, %.2f%% inconclusive, %.2f%% warn, %.2f%% pass", 100*of[gates.Failed],
		100*of[gates.Inconclusive],
		100*of[gates.Warned], 100*of[gates.Passed])
}

// counted is from how many to how many launches runs have.
func counted(all []*compare.Result) string {
	least, most := math.MaxInt, 0
	for _, r := range all {
		n := r.Cells[0].Launches.Counted
		least, most = min(least, n), max(most, n)
	}
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func changes(t testing.TB, texts ...string) *gates.Gate {
	t.Helper()
	g := &gates.Gate{}
	for _, text := range texts {
		check.Err(t, g.ChangeFlag(text))
	}
	return g
}

// At most 1 in 20 gates over equal runs may fail, whatever the tolerance and the number of cells.
func TestGateRarelyFailsEqualRuns(t *testing.T) {
	t.Parallel()
	strict := changes(t, "decode_tps=0%", "peak_pss_mb=0%", "ttft_ms=0%", "load_time_ms=0%")
	usual := changes(t, "decode_tps=-5%", "peak_pss_mb=+3%", "ttft_ms=+10%", "load_time_ms=+10%")
	for _, s := range []simulated{runsOf(10, 1, 0.05, 0.015), runsOf(7, 3, 0.10, 0),
		runsOf(30, 1, 0.06, 0.02).till(0.04)} {
		base, now := s.results(runs, 1), s.results(runs, 2)
		for name, g := range map[string]*gates.Gate{"no worse at all": strict, "a few percent": usual} {
			got := outcomes(g, base, now)
			t.Logf("%s launches a side, %d cells, CV %.0f%%, %s: %s", counted(append(base, now...)), s.Cells,
				100*s.CV, name, shares(got))
			if got[gates.Failed] > 0.05 {
				t.Errorf("%.1f%% of gates over equal runs fail", 100*got[gates.Failed])
			}
		}
	}
}

// A change of 10% in one figure is found: always at tolerance 0, and mostly at 3%.
func TestGateFindsAShiftOfTenPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cv    float64
		least map[string]float64 // the share of gates that fail, by tolerance
	}{{0.02, map[string]float64{"0%": 0.99, "-3%": 0.97, "-5%": 0.85}},
		{0.05, map[string]float64{"0%": 0.80, "-3%": 0.35, "-5%": 0.10}}} {
		equal := runsOf(10, 1, c.cv, 0.015)
		slower := equal
		slower.Shift = map[string]float64{figure.DecodeTPS: 1 / 0.9}
		base, now := equal.results(runs, 3), slower.results(runs, 4)
		for pass, least := range c.least {
			g := changes(t, "decode_tps="+pass, "peak_pss_mb=+3%", "ttft_ms=+10%", "load_time_ms=+10%")
			got := outcomes(g, base, now)
			t.Logf("decode a tenth lower, CV %.0f%%, tolerance %s: %s", 100*c.cv, pass, shares(got))
			if got[gates.Failed] < least {
				t.Errorf("CV %.0f%%, tolerance %s: %.1f%% fail, want %.0f%%", 100*c.cv, pass,
					100*got[gates.Failed], 100*least)
			}
		}
	}
}

// A change of exactly the tolerance passes: few gates may fail.
func TestGateRarelyFailsAtTheTolerance(t *testing.T) {
	t.Parallel()
	equal := runsOf(10, 1, 0.05, 0.015)
	worse := equal
	worse.Shift = map[string]float64{figure.DecodeTPS: 1 / 0.95, figure.PeakPSS: 1.03, figure.TTFT: 1.1,
		figure.LoadTime: 1.1}
	g := changes(t, "decode_tps=-5%", "peak_pss_mb=+3%", "ttft_ms=+10%", "load_time_ms=+10%")
	got := outcomes(g, equal.results(runs, 5), worse.results(runs, 6))
	t.Logf("all four figures worse by their tolerance: %s", shares(got))
	if got[gates.Failed] > 0.05 {
		t.Errorf("%.1f%% fail", 100*got[gates.Failed])
	}
}

// condition is what two runs of the same are made under. Either change may be nil.
type condition struct {
	base, now simulated
	was, is   func(*record.Run)
	missing   bool // cells or launches are: the gate may fail although nothing is worse
}

// engines changes what every launch says of its engine.
func engines(change func(*record.EngineInfo)) func(*record.Run) {
	return func(r *record.Run) {
		for _, a := range r.Attempts {
			for i, e := range a.Events {
				if e.Engine != nil {
					info := *e.Engine
					info.Parts = maps.Clone(info.Parts)
					if l := info.Library; l != nil {
						info.Library = new(*l)
					}
					change(&info)
					a.Events[i].Engine = &info
				}
			}
		}
	}
}

func part(name, value string) func(*record.Run) {
	return engines(func(e *record.EngineInfo) { e.Parts[name] = value })
}

func lastCell(r *record.Run) { r.Cells = r.Cells[:len(r.Cells)-1] }

func lastFails(r *record.Run) {
	a := r.Attempts[len(r.Attempts)-1]
	a.Status, a.Class, a.Error = record.Failed, record.Crash, "the renderer crashed"
}

func conditions() map[string]condition {
	usual := runsOf(10, 2, 0.05, 0.015)
	slow, few, fewest, noisy := usual, usual, usual, usual
	// What two busy loops took on two cores.
	slow.Shift = map[string]float64{figure.DecodeTPS: 1.9, figure.TTFT: 1.9, figure.LoadTime: 1.9}
	few.Launches, fewest.Launches = 6, 3
	noisy.CV, noisy.Memory = 0.15, 0.15
	return map[string]condition{
		"quiet":                       {base: usual, now: usual},
		"the run's machine busy":      {base: usual, now: slow, is: busyMachine},
		"the baseline's machine busy": {base: slow, now: usual, was: busyMachine},
		"both machines busy":          {base: slow, now: slow, was: busyMachine, is: busyMachine},
		"other Chrome":                {base: usual, now: usual, is: part("browser", "Chromium 157.0")},
		"other WebLLM kernels": {base: usual, now: usual,
			is: engines(func(e *record.EngineInfo) { e.Library.Variant = "gpu kernels" })},
		"other OS kernel": {base: usual, now: usual,
			is: func(r *record.Run) { r.Environment.Kernel = "6.18" }},
		"other CPU model": {base: usual, now: usual,
			is: func(r *record.Run) { r.Environment.CPU = "Other" }},
		"cell missing in the run":       {base: usual, now: usual, is: lastCell, missing: true},
		"cell missing in the baseline":  {base: usual, now: usual, was: lastCell, missing: true},
		"launch failed":                 {base: usual, now: usual, is: lastFails, missing: true},
		"launch failed in the baseline": {base: usual, now: usual, was: lastFails, missing: true},
		"fewer launches":                {base: usual, now: few},
		"fewest launches":               {base: usual, now: fewest},
		"fewer launches in both":        {base: few, now: few},
		"clock set back": {base: usual, now: usual,
			is: func(r *record.Run) { r.Meta.Started = r.Meta.Started.Add(-48 * time.Hour) }},
		"noise":                    {base: noisy, now: noisy},
		"noise in the baseline":    {base: noisy, now: usual},
		"noise and fewer launches": {base: noisy, now: runsOf(6, 2, 0.15, 0.15)},
	}
}

// usualGate is what docs/howto/gate-in-ci.md holds against a baseline run.
func usualGate(t *testing.T) *gates.Gate {
	return parse(t, "vs_baseline: {decode_tps: -5%, peak_pss_mb: +3%, ttft_ms: {change: +10%, level: warn}}")
}

func (s simulated) planted(what map[string]float64) simulated {
	shift := maps.Clone(s.Shift)
	if shift == nil {
		shift = map[string]float64{}
	}
	for figure, by := range what {
		shift[figure] = s.Factor(figure) * by
	}
	s.Shift = shift
	return s
}

// A slowdown of 30% or a peak that is larger by a tenth never passes, whatever else has happened, and what is the
// same never fails, unless cells or launches are missing.
func TestGateIsSafeUnderTenConditions(t *testing.T) {
	t.Parallel()
	n := min(runs/3, 24) // of each side: there are many conditions
	for name, c := range conditions() {
		base := c.base.changed(n, 11, c.was)
		for what, planted := range map[string]map[string]float64{"30% slower": {figure.DecodeTPS: 1.3, figure.TTFT: 1.3,
			figure.LoadTime: 1.3},
			"a peak larger by a tenth": {figure.PeakPSS: 1.1}, "the same": nil} {
			got := outcomes(usualGate(t), base, c.now.planted(planted).changed(n, 12, c.is))
			t.Logf("%s, %s: %s", name, what, shares(got))
			switch passes := got[gates.Passed] + got[gates.Warned]; {
			case planted != nil && passes > 0:
				t.Errorf("%s: %s passes in %.2f%%", name, what, 100*passes)
			case planted == nil && !c.missing && got[gates.Failed] > 0:
				t.Errorf("%s: %s fails in %.2f%%", name, what, 100*got[gates.Failed])
			}
		}
	}
}

// Of ten launches a side that vary by 5% in times and by 1 to 2% in sizes nearly all unchanged pairs pass and hardly
// any fails; a slowdown of 30% nearly always fails and never passes.
func TestGateErrorRates(t *testing.T) {
	for _, memory := range []float64{0.01, 0.02} {
		s := runsOf(10, 2, 0.05, memory)
		base := s.results(runs, 21)
		same := outcomes(usualGate(t), base, s.results(runs, 22))
		slower := outcomes(usualGate(t), base, s.planted(map[string]float64{figure.DecodeTPS: 1.3,
			figure.TTFT: 1.3}).results(runs, 23))
		t.Logf("sizes vary by %.0f%%: unchanged: %s; 30%% slower: %s", 100*memory, shares(same), shares(slower))
		if same[gates.Failed] > 0.02 || same[gates.Passed]+same[gates.Warned] < 0.9 {
			t.Errorf("unchanged: %s", shares(same))
		}
		if slower[gates.Failed] < 0.9 || slower[gates.Passed]+slower[gates.Warned] > 0 {
			t.Errorf("30%% slower: %s", shares(slower))
		}
	}
}

// A check passes wrongly in one of twenty gates at most: that is what the interval which rules a regression out is
// for.
func TestGateRarelyPassesWhatItMustDetect(t *testing.T) {
	t.Parallel()
	s := runsOf(10, 1, 0.05, 0.02)
	each := max(24, runs/2) // of each side
	base := s.results(each, 31)
	for what, c := range map[string]struct {
		gate    string
		planted map[string]float64
	}{"decode lower by 15%": {"vs_baseline: {decode_tps: -5%}", map[string]float64{figure.DecodeTPS: 1 / 0.85}},
		"a peak higher by 5%": {"vs_baseline: {peak_pss: +3%}", map[string]float64{figure.PeakPSS: 1.05}}} {
		got := outcomes(parse(t, c.gate), base, s.planted(c.planted).results(each, 32))
		t.Logf("%s: %s", what, shares(got))
		if got[gates.Passed]+got[gates.Warned] > 0.1 {
			t.Errorf("%s: %s", what, shares(got))
		}
	}
}

// Twelve launches a side decide a comparison of two builds (llmparity compare-builds) where times vary by 8% from
// launch to launch, as on a shared machine: a build that is 20% slower fails, and an equal one passes.
func TestTwelveLaunchesDecideBuilds(t *testing.T) {
	t.Parallel()
	for _, launches := range []int{6, 12} {
		s := runsOf(launches, 1, 0.08, 0.01)
		each := max(20, runs/2) // of each side
		base := s.results(each, 41)
		same := outcomes(usualGate(t), base, s.results(each, 42))
		slow := s.planted(map[string]float64{figure.DecodeTPS: 1 / 0.8})
		slower := outcomes(usualGate(t), base, slow.results(each, 43))
		t.Logf("%d launches: the same: %s; 20%% slower: %s", launches, shares(same), shares(slower))
		if launches < 12 {
			continue
		}
		if slower[gates.Failed] < 0.8 || same[gates.Passed]+same[gates.Warned] < 0.8 || same[gates.Failed] > 0.05 {
			t.Errorf("the same: %s; 20%% slower: %s", shares(same), shares(slower))
		}
	}
}

// On a busy machine where launches of both sides alternate, CPU time finds work that speed misses. It passes nothing
// that waits.
func TestGateOnBusyMachinesByCPUTime(t *testing.T) {
	t.Parallel()
	busy := runsOf(10, 1, 0.40, 0.015)
	busy.CPU = 0.05
	took := func(r *record.Run) {
		busyMachine(r)
		r.Meta.Against = "simulated"
	}
	base := busy.changed(runs, 41, took)
	for _, c := range []struct {
		what        string
		decode, cpu float64
	}{{"nothing changed", 1, 1}, {"each token 10% more work", 1.1, 1.1}, {"each token 20% more work", 1.2, 1.2},
		{"each token waits 30% longer", 1.3, 1}} {
		planted := map[string]float64{figure.DecodeTPS: c.decode, figure.TokenCPU: c.cpu}
		now := busy.planted(planted).changed(runs, 42, took)
		without := outcomes(parse(t, "vs_baseline: {decode_tps: -5%, cpu_per_token_ms: {change: +5%, level: off}}"), base, now)
		got := outcomes(parse(t, "vs_baseline: {decode_tps: -5%}"), base, now)
		t.Logf("%s: by speed %s; with CPU time %s", c.what, shares(without), shares(got))
		switch {
		case c.decode == 1 && got[gates.Failed] > 0.05:
			t.Errorf("%s: %.1f%% fail", c.what, 100*got[gates.Failed])
		case c.cpu >= 1.2 && got[gates.Failed] < 0.9:
			t.Errorf("%s: %.1f%% fail", c.what, 100*got[gates.Failed])
		case got[gates.Passed] > without[gates.Passed]+0.01:
			t.Errorf("%s: CPU time lets %.1f%% pass, and speed alone %.1f%%", c.what, 100*got[gates.Passed],
				100*without[gates.Passed])
		}
	}
}
