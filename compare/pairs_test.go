package compare_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// Of several engines the verdict tells every pair, in short, and claims nothing that the statistics don't.
func TestTheVerdictTellsEveryPairOfEngines(t *testing.T) {
	var all []comparetest.Engine
	for n, name := range []string{"a", "b", "c"} {
		e := comparetest.Native(8)
		e.Cell.ID, e.Cell.Engine, e.Vary = n+1, name, 0.1
		if name == "c" {
			e.Token *= 3
			e.TTFT += 30 * time.Millisecond
		}
		all = append(all, e)
	}
	said := compare.Runs(comparetest.Run(t, "three", all...)).Verdict[1]
	for _, want := range []string{"a against b: ", "a against c: ", "b against c: ", ", decode ",
		"peak memory not told apart"} {
		if !strings.Contains(strings.ToLower(said), want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
}

// Where six launches that vary much can't tell, the verdict says what it takes to see a tenth.
func TestVerdictNamesWhatLaunchesCouldNotShow(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	a.Cell.ID, b.Cell.ID, a.Cell.Engine, b.Cell.Engine = 1, 2, "a", "b"
	a.Vary, b.Vary = 0.06, 0.06
	if said := compare.Runs(comparetest.Run(t, "noisy", a, b)).Verdict[1]; !strings.Contains(
		said, "at which a change of a tenth takes") {
		t.Error(said)
	}
	a.Vary, b.Vary = 0.005, 0.005
	if said := compare.Runs(comparetest.Run(t, "quiet", a, b)).Verdict[1]; strings.Contains(said, "takes") {
		t.Error(said)
	}
}

// slowed makes the tokens of a run's cells take another time.
func slowed(run *record.Run, by map[int]float64) *record.Run {
	for _, a := range run.Attempts {
		for _, q := range a.Requests {
			for i := range q.Tokens {
				q.Tokens[i].NS = q.Tokens[0].NS + int64(by[a.Cell]*float64(q.Tokens[i].NS-q.Tokens[0].NS))
			}
		}
	}
	return run
}

// A mean over cells that differ in opposite directions says nothing; what the verdict makes of it must not pass for no
// difference.
func TestVerdictShowsWhatMeanHides(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	s := series{launches: 10, cells: 5, cv: 0.01, engine: "engine"}
	for _, c := range []struct {
		by     [5]float64
		want   string
		hidden bool
	}{
		{[5]float64{1.3, 1 / 1.3, 1, 1, 1}, ", but in 2 of these pairs by themselves that of a is 0.7", true},
		{[5]float64{1.3, 1.3, 1.3, 1.3, 0.9}, "), but in 1 of these pairs by themselves that of a is 0.", true},
		{[5]float64{1.3, 1.3, 1.3, 1.3, 1.3}, "that of a is 1.", false},
		{[5]float64{1, 1, 1, 1, 1}, "can't be told from chance", false},
	} {
		by := map[int]float64{}
		for i, f := range c.by {
			by[i+1] = f
		}
		a, b := s.run(r, "a"), slowed(s.run(r, "b"), by)
		if said := compare.Runs(a, b).Verdict[1]; !strings.Contains(said, c.want) ||
			strings.Contains(said, "by themselves") != c.hidden {
			t.Errorf("%v: %s", c.by, said)
		}
		// two questions: in few words
		if short := compare.Runs(a, b, a).Verdict[1]; strings.Contains(short, "(but ") != c.hidden {
			t.Errorf("%v: %s", c.by, short)
		}
	}
}

// Pairs that have nothing in common are in no mean: each is told, and not the first alone.
func TestTheVerdictTellsPairsWithoutAMean(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	s := series{launches: 10, cells: 2, cv: 0.02, engine: "engine"}
	o := compare.Defaults()
	o.By = []string{"prompt"}
	res := compare.With(o, s.run(r, "a"), slowed(s.run(r, "b"), map[int]float64{1: 1, 2: 1.5}))
	said := res.Verdict[1]
	if !strings.Contains(said, "prompt 1, a against") || !strings.Contains(said, "prompt 2, a against") ||
		!strings.Contains(said, "decode 1.") {
		t.Error(said)
	}
}

// Of twenty launches a side the smallest p has more digits than are told: it is small, and not nothing.
func TestNoPIsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	s := series{launches: 20, cells: 2, cv: 0.02, engine: "engine"}
	res := compare.Runs(s.run(r, "a"), slowed(s.run(r, "b"), map[int]float64{1: 2, 2: 2}))
	ratios, means := judged(res)
	reported := 0
	for _, x := range ratios {
		if strings.Contains(x.Verdict, "(p < 1e-09, n = 20 and 20)") {
			reported++
		}
		if strings.Contains(x.Verdict, "p = 0,") {
			t.Error(x.Verdict)
		}
	}
	for _, m := range means {
		if strings.Contains(m.Verdict, "(p < 1e-09)") {
			reported++
		}
		if strings.Contains(m.Verdict, "p = 0)") {
			t.Error(m.Verdict)
		}
	}
	if reported == 0 {
		t.Error("no p is that small")
	}
}
