//go:build !race

// Simulations are arithmetic: the race detector makes them ten times as long and has nothing to find in them. make test
// runs them without it.

package gate_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/gates"
	"llmparity/internal/record"
)

// simulated describes runs of an engine in memory: what the reader makes of a folder, without the folder.
type simulated struct {
	launches, cells int
	cv              float64            // of every figure over launches
	memory          float64            // of sizes, where it is another one
	shift           map[string]float64 // factors of what is measured: memory, load, first, decode (times); absent: 1
	// launches end when decode's interval reaches no further from its median than this share; 0: all are made
	until float64
}

func (s simulated) factor(what string) float64 {
	if f, ok := s.shift[what]; ok {
		return f
	}
	return 1
}

// vary is a factor around 1, with a long tail to the right as times have when something came in between.
func vary(r *rand.Rand, cv float64) float64 {
	const shape = 3
	sum := 0.0
	for range shape {
		sum += r.ExpFloat64()
	}
	return 1 + cv/math.Sqrt2*(sum-shape)/math.Sqrt(shape)
}

// run makes a record. Figures of a launch have half of their luck in common.
func (s simulated) run(r *rand.Rand) *record.Run {
	out := &record.Run{Dir: "results/simulated", Meta: record.Meta{Name: "simulated", Started: comparetest.Start},
		Status:      record.OK,
		Environment: record.Environment{OS: "linux", Kernel: "6.12", CPU: "Example", Cores: 8, MemoryB: 1 << 34}}
	for c := range s.cells {
		out.Cells = append(out.Cells, record.Cell{ID: c + 1, Engine: "engine", Model: comparetest.Tiny(),
			PromptID: c + 1, Prompt: fmt.Sprint("prompt ", c+1),
			MaxTokens: 16, Repetitions: s.launches, Isolation: record.OfLaunch, PromptCache: record.CacheOff})
	}
	zero := int64(0)
	for n := range s.launches {
		for c, spec := range out.Cells {
			luck, size := vary(r, s.cv), vary(r, cmp.Or(s.memory, s.cv))
			of := func(base float64, what string) float64 {
				if what == "memory" {
					return base * size * vary(r, cmp.Or(s.memory, s.cv)) * s.factor(what)
				}
				return base * luck * vary(r, s.cv) * s.factor(what)
			}
			a := &record.Attempt{ID: n*s.cells + c + 1, Cell: spec.ID, Repetition: n + 1, Status: record.OK,
				BeginNS: zero}
			s.fill(a, of)
			out.Attempts = append(out.Attempts, a)
			zero = a.EndNS + int64(time.Second)
		}
	}
	if s.until > 0 {
		for _, c := range out.Cells {
			n := s.enough(out, c.ID)
			out.Attempts = slices.DeleteFunc(
				out.Attempts, func(a *record.Attempt) bool { return a.Cell == c.ID && a.Repetition > n })
		}
	}
	return out
}

// enough is how many launches a cell has when its interval is narrow at one of a few looks, each at a confidence that
// corrects for their number, as run --until-ci has them.
func (s simulated) enough(run *record.Run, cell int) int {
	looks := []int{8, 12, 18, 27, s.launches}
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
	return s.launches
}

func (s simulated) fill(a *record.Attempt, of func(float64, string) float64) {
	const ms = 1e6
	at := a.BeginNS
	phase := func(p record.Phase, length, pss float64) {
		a.Totals = append(a.Totals, record.TotalRow{Method: record.MethodSmapsRollup, Processes: 1, NS: at + 1,
			RSS: pss + 2, VMS: pss + 90, PSS: pss, USS: pss - 1,
			Swap: math.NaN()})
		a.Phases = append(a.Phases, record.PhaseSpan{Name: p, BeginNS: at, EndNS: at + int64(length)})
		at += int64(length) + 1
	}
	phase(record.Baseline, 100*ms, 120)
	phase(record.Load, of(350*ms, "load"), 130)
	sent := at
	first, length := sent+int64(of(40*ms, "first")), int64(of(150*ms, "decode"))
	req := &record.Request{ID: 1, Phase: record.Measure, SentNS: sent, PromptIDs: []int{1, 2, 3, 4}, Text: "words",
		Finish: "length", ReturnedNS: first + length + ms}
	for i := range 16 {
		req.Tokens = append(req.Tokens, record.TokenRow{Index: i, ID: 7 * i, NS: first + length*int64(i)/15})
	}
	req.Spans = []record.NamedSpan{{Name: record.Prefill, BeginNS: sent, EndNS: first, How: "sent to first token"},
		{Name: record.Decode, BeginNS: first, EndNS: first + length, How: "first to last token"}}
	phase(record.Measure, float64(req.ReturnedNS-sent), of(300, "memory"))
	phase(record.Unload, 10*ms, 120)
	a.EndNS = at
	a.Requests = []*record.Request{req}
	a.Events = []record.EventAt{{NS: a.BeginNS,
		Event: record.Event{Device: &record.Device{Class: record.CPU, Name: "Example"}}},
		{NS: a.BeginNS, Event: record.Event{Engine: &record.EngineInfo{Name: "engine", Version: "1",
			Parts: map[string]string{"browser": "Chromium 156.0", "model_library": "ours (software kernels)",
				"model_library_sha256": "aa"}}}}}
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
		if err := g.ChangeFlag(text); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// At most 1 in 20 gates over equal runs may fail, whatever the tolerance and the number of cells.
func TestOfEqualsAtMostOneGateInTwentyFails(t *testing.T) {
	t.Parallel()
	strict := changes(t, "decode_tps=0%", "peak_pss_mb=0%", "ttft_ms=0%", "load_time_ms=0%")
	usual := changes(t, "decode_tps=-5%", "peak_pss_mb=+3%", "ttft_ms=+10%", "load_time_ms=+10%")
	for _, s := range []simulated{{launches: 10, cells: 1, cv: 0.05, memory: 0.015}, {launches: 7, cells: 3, cv: 0.10},
		{launches: 30, cells: 1, cv: 0.06, memory: 0.02, until: 0.04}} {
		base, now := s.results(runs, 1), s.results(runs, 2)
		for name, g := range map[string]*gates.Gate{"no worse at all": strict, "a few percent": usual} {
			got := outcomes(g, base, now)
			t.Logf("%s launches a side, %d cells, CV %.0f%%, %s: %s", counted(append(base, now...)), s.cells,
				100*s.cv, name, shares(got))
			if got[gates.Failed] > 0.05 {
				t.Errorf("%.1f %% of gates over equal runs fail", 100*got[gates.Failed])
			}
		}
	}
}

// A change of 10% in one figure is found: always at tolerance 0, and mostly at 3%.
func TestAShiftOfATenthIsFoundByAGate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cv    float64
		least map[string]float64 // the share of gates that fail, by tolerance
	}{{0.02, map[string]float64{"0%": 0.99, "-3%": 0.97, "-5%": 0.85}},
		{0.05, map[string]float64{"0%": 0.80, "-3%": 0.35, "-5%": 0.10}}} {
		equal := simulated{launches: 10, cells: 1, cv: c.cv, memory: 0.015}
		slower := equal
		slower.shift = map[string]float64{"decode": 1 / 0.9}
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
func TestOfEqualsAtTheToleranceFewGatesFail(t *testing.T) {
	t.Parallel()
	equal := simulated{launches: 10, cells: 1, cv: 0.05, memory: 0.015}
	worse := equal
	worse.shift = map[string]float64{"decode": 1 / 0.95, "memory": 1.03, "first": 1.1, "load": 1.1}
	g := changes(t, "decode_tps=-5%", "peak_pss_mb=+3%", "ttft_ms=+10%", "load_time_ms=+10%")
	got := outcomes(g, equal.results(runs, 5), worse.results(runs, 6))
	t.Logf("all four figures worse by their tolerance: %s", shares(got))
	if got[gates.Failed] > 0.05 {
		t.Errorf("%.1f %% fail", 100*got[gates.Failed])
	}
}
