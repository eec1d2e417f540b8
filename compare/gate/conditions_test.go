//go:build !race

package gate_test

import (
	"maps"
	"testing"
	"time"

	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/record"
)

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

func busyMachine(r *record.Run) {
	r.Environment.Background = &record.Background{Seconds: 0.2, Cores: 2}
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
		"other WebLLM kernels":        {base: usual, now: usual, is: part("model_library", "ours (gpu kernels)")},
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
