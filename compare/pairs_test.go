package compare_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/record"
)

// said is the sentence of the verdict that answers a question.
func said(r *compare.Result, question string) string {
	for _, s := range r.Verdict {
		if strings.HasPrefix(s, question+": ") {
			return s
		}
	}
	return ""
}

// The answer names every pair of engines, and claims nothing that the statistics don't.
func TestAnswerNamesEveryPairOfEngines(t *testing.T) {
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
	r := compare.Runs(comparetest.Run(t, "three", all...))
	for _, want := range []string{"a and b: too noisy to tell: -18% to +4.3% from a to b", "a is 3.", "b is 3.", "times as fast as c"} {
		if !strings.Contains(said(r, "Speed"), want) {
			t.Errorf("no %q in %q", want, said(r, "Speed"))
		}
	}
	if memory := said(r, "Memory"); !strings.Contains(memory, "No difference detected in any of 3 pairs") {
		t.Error(memory)
	}
}

// Warnings of one code keep the cells that each of their texts is about.
func TestAnswerWarnsOfEachEngineItself(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	a.Cell.ID, b.Cell.ID, a.Cell.Engine, b.Cell.Engine = 1, 2, "a", "b"
	a.Vary, b.Vary = 0.3, 0.5
	answer := compare.Runs(comparetest.Run(t, "noisy", a, b)).Answer()
	var of []string
	for _, w := range answer.Warnings {
		if w.Code == explain.WideInterval.Code {
			of = append(of, w.Where)
		}
	}
	if !slices.Equal(of, []string{"a", "b"}) {
		t.Errorf("%+v", answer.Warnings)
	}
}

// Where six launches that vary much can't tell, the verdict says what it takes to see a tenth.
func TestVerdictNamesLaunchesNeeded(t *testing.T) {
	a, b := comparetest.Native(6), comparetest.Native(6)
	a.Cell.ID, b.Cell.ID, a.Cell.Engine, b.Cell.Engine = 1, 2, "a", "b"
	a.Vary, b.Vary = 0.06, 0.06
	if s := said(compare.Runs(comparetest.Run(t, "noisy", a, b)), "Speed"); !strings.Contains(
		s, "so a change of 10% needs") {
		t.Error(s)
	}
	a.Vary, b.Vary = 0.005, 0.005
	if s := said(compare.Runs(comparetest.Run(t, "quiet", a, b)), "Speed"); strings.Contains(s, "needs") {
		t.Error(s)
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
	s := comparetest.Series{Launches: 10, Cells: 5, CV: 0.01}
	for _, c := range []struct {
		by     [5]float64
		want   string
		hidden bool
	}{
		{[5]float64{1.3, 1 / 1.3, 1, 1, 1}, "in 1 of 5 pairs", true},
		{[5]float64{1.3, 1.3, 1.3, 1.3, 0.9}, "is faster than b in 4 of 5 pairs", true},
		{[5]float64{1.3, 1.3, 1.3, 1.3, 1.3}, "is faster than b in all 5 pairs", false},
		{[5]float64{1, 1, 1, 1, 1}, "no difference detected in any of ", false},
	} {
		by := map[int]float64{}
		for i, f := range c.by {
			by[i+1] = f
		}
		a, b := s.Run(r, "a"), slowed(s.Run(r, "b"), by)
		for _, r := range []*compare.Result{compare.Runs(a, b), compare.Runs(a, b, a)} {
			if s := said(r, "Speed"); !strings.Contains(strings.ToLower(s), c.want) ||
				strings.Contains(s, "1 pair goes the other way") != c.hidden {
				t.Errorf("%v: %s", c.by, s)
			}
		}
	}
}

// Pairs that have nothing in common are in no mean: each counts, not the first alone.
func TestAnswerCountsPairsWithoutAMean(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	s := comparetest.Series{Launches: 10, Cells: 2, CV: 0.02}
	o := compare.Defaults()
	o.By = []string{"prompt"}
	res := compare.With(o, s.Run(r, "a"), slowed(s.Run(r, "b"), map[int]float64{1: 1, 2: 1.5}))
	if s := said(res, "Speed"); !strings.Contains(s, "a is faster than b in 1 of 2 pairs. 1.5") ||
		!strings.Contains(s, "1 pair without a difference") || strings.Contains(s, "mean") {
		t.Error(s)
	}
}

// Of twenty launches a side the smallest p has more digits than are told: it is small, and not nothing.
func TestSmallPIsNotZero(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	s := comparetest.Series{Launches: 20, Cells: 2, CV: 0.02}
	res := compare.Runs(s.Run(r, "a"), slowed(s.Run(r, "b"), map[int]float64{1: 2, 2: 2}))
	ratios, means := judged(res)
	small := slices.ContainsFunc(ratios, func(x ratio.Ratio) bool {
		return strings.Contains(x.Verdict, "(p < 1e-09, n = 20 and 20)")
	})
	for _, m := range means {
		small = small && !strings.Contains(m.Verdict, "p = 0)")
	}
	if !small {
		t.Errorf("%+v\n%+v", ratios, means)
	}
}
