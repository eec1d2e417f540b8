package timing_test

import (
	"math"
	"testing"

	"llmparity/compare/evidence"
	"llmparity/compare/timing"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

const ms = int64(1e6)

// watched is a launch whose server was read at the edges of the load and of a request of 11 tokens.
func watched() *record.Attempt {
	a := &record.Attempt{ID: 1, Status: record.OK,
		Sources: map[int]record.Source{1: {Role: "server", Method: record.MethodCPUTime, PID: 7, Start: 1}},
		Phases:  []record.PhaseSpan{{Name: record.Load, BeginNS: 10 * ms, EndNS: 50 * ms}}}
	q := &record.Request{ID: 1, Phase: record.Measure, SentNS: 100 * ms, ReturnedNS: 200 * ms}
	for i := range 11 {
		q.Tokens = append(q.Tokens, record.TokenRow{Index: i, NS: (120 + 7*int64(i)) * ms})
	}
	a.Requests = []*record.Request{q}
	reads(a, 1, 51, 300, 0, record.Load)
	reads(a, 1, 99, 310, 0, "")
	reads(a, 1, 121, 340, 0, "")
	reads(a, 1, 201, 390, 0, "")
	return a
}

// reads adds a reading of a source, all in ms.
func reads(a *record.Attempt, source int, at int64, own, kids float64, edge record.Phase) {
	a.Metrics = append(a.Metrics,
		record.MetricRow{Source: source, NS: at * ms, Name: record.CPUTime, Value: own, Edge: edge},
		record.MetricRow{Source: source, NS: at * ms, Name: record.CPUTimeChildren, Value: kids, Edge: edge})
}

// spends checks the CPU time of a launch; NaN: not known.
func spends(t *testing.T, a *record.Attempt, load, prefill, token float64) {
	t.Helper()
	figures, _ := timing.CPUTime(record.Cell{}, []*record.Attempt{a})
	figures = evidence.Summarised(figures)
	for name, want := range map[string]float64{figure.LoadCPU: load, figure.PrefillCPU: prefill,
		figure.TokenCPU: token} {
		got := evidence.Find(figures, name)
		if got.Known() == math.IsNaN(want) || got.Known() && math.Abs(got.Center()-want) > 1e-5 {
			t.Errorf("%s: %v (%s), want %v", name, got.Center(), got.Absent, want)
		}
	}
}

func TestCPUTimeOfLoadPrefillAndTokens(t *testing.T) {
	spends(t, watched(), 300, 30, 5)
}

// A reading that came after some tokens does not count them as prefill.
func TestLateReadingAtTheFirstToken(t *testing.T) {
	a := watched()
	for i := range a.Metrics {
		if a.Metrics[i].NS == 121*ms {
			a.Metrics[i].NS = 149 * ms // after five tokens, four behind the first
			if a.Metrics[i].Name == record.CPUTime {
				a.Metrics[i].Value = 360
			}
		}
	}
	spends(t, a, 300, 30, 5)
	for i := range a.Metrics {
		if a.Metrics[i].NS == 149*ms {
			a.Metrics[i].NS = 189 * ms // of 11 tokens, one came later
		}
	}
	spends(t, a, 300, math.NaN(), math.NaN())
}

// The time of a process that ends is not lost: its parent counts it, or its last reading does. Neither counts twice.
func TestCPUTimeOfEndedProcesses(t *testing.T) {
	helper := record.Source{Role: "helper", Method: record.MethodCPUTime, PID: 8, Start: 2}
	a := watched()
	a.Sources[2] = helper
	reads(a, 2, 98, 1, 0, "")
	reads(a, 2, 122, 4, 0, "") // then it ends, and nobody waits for it
	spends(t, a, 300, 33, 5)
	reads(a, 2, 150, 24, 0, "")
	spends(t, a, 300, 33, 7)
	for i := range a.Metrics {
		if m := &a.Metrics[i]; m.NS == 201*ms && m.Name == record.CPUTimeChildren {
			m.Value = 30 // what it used in all, and a child that was never read
		}
	}
	spends(t, a, 300, 33, 8)
}

// A process keeps its time if its role changes.
func TestCPUTimeOfAProcessWithTwoRoles(t *testing.T) {
	a := watched()
	a.Sources[2] = record.Source{Role: "runner", Method: record.MethodCPUTime, PID: 7, Start: 1}
	for i := range a.Metrics {
		if a.Metrics[i].NS > 110*ms {
			a.Metrics[i].Source = 2
		}
	}
	spends(t, a, 300, 30, 5)
}

func TestAbsentCPUTimeSaysWhy(t *testing.T) {
	a := watched()
	for spec, want := range map[*record.Cell]string{
		{}:                    "the CPU time of the engine's processes was not read",
		{PerGeneration: true}: "each generation starts a process, which ends before it can be read",
	} {
		of := *a
		if !spec.PerGeneration {
			of.Metrics, of.Sources = nil, nil
		}
		figures, by := timing.CPUTime(*spec, []*record.Attempt{&of})
		f := evidence.Find(evidence.Summarised(figures), figure.TokenCPU)
		if f.Known() || f.Absent != want || by != nil {
			t.Errorf("%q, want %q; %v", f.Absent, want, by)
		}
	}
}
