package record

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
)

// scores are those of a text of three tokens. The second forced token is not among the likeliest, and its
// log-probability is too small to report.
func scores() []Score {
	return []Score{
		{Position: 0, Forced: 7, LogProb: -0.25, Top: []Candidate{{7, -0.25}, {3, -1.5}}},
		{Position: 1, Forced: 9, LogProb: math.NaN(), Top: []Candidate{{3, -0.125}, {7, -2.5}}},
		{Position: 2, Forced: 4, LogProb: -9.75, Top: []Candidate{{8, -0.5}, {2, -0.5}}},
	}
}

// scored writes a run with one counted launch and one attempt that scores.
func scored(t testing.TB, tokens int, end Status) (dir string) {
	t.Helper()
	c := Cell{ID: 1, Engine: "one", Repetitions: 1}
	w := made(t, c)
	launch := w.Begin(c, Beginning{Repetition: 1})
	launch.Request(Slot{}, time.Time{}, Measure, Usage{PromptIDs: []int{1, 2}, Sent: time.Now()},
		[]Token{{ID: 7, At: time.Now()}}, time.Now())
	launch.End(OK, "", nil, Cost{})
	s := w.Begin(c, Beginning{Scoring: &Scoring{Reference: 1, Attempt: 1, PromptIDs: []int{1, 2},
		Tokens: tokens, Top: 2}})
	for _, sc := range scores() {
		s.Score(sc)
	}
	s.Warn(Warning{Code: "slow", Text: "it took its time"})
	if end != Interrupted {
		s.End(end, "", nil, Cost{})
	}
	check.Err(t, w.Close(OK))
	return w.Dir()
}

func TestScoresRoundTrip(t *testing.T) {
	r, err := Open(scored(t, 3, OK))
	check.Err(t, err)
	if len(r.Attempts) != 1 || len(r.Scorings) != 1 || len(r.Warnings) != 0 {
		t.Fatalf("%d attempts, %d scorings, warnings %v", len(r.Attempts), len(r.Scorings), r.Warnings)
	}
	a := r.Scorings[0]
	if a.Counted() || a.Warmup || a.Cell != 1 || !reflect.DeepEqual(a.Scoring.PromptIDs, []int{1, 2}) ||
		len(a.Warnings) != 1 {
		t.Errorf("%+v", a)
	}
	want := scores()
	for i, s := range a.Scores {
		if math.IsNaN(s.LogProb) == math.IsNaN(want[i].LogProb) && math.IsNaN(s.LogProb) {
			s.LogProb, want[i].LogProb = 0, 0
		}
		if !reflect.DeepEqual(s, want[i]) {
			t.Errorf("%+v, want %+v", s, want[i])
		}
	}
	if s := a.Scores[0]; s.Chosen() != 7 || s.Margin() != 1.25 {
		t.Errorf("chosen %d, margin %g", s.Chosen(), s.Margin())
	}
}

// If a position is missing, later ones would be compared with the wrong position.
func TestIncompleteScoresAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		tokens int
		end    Status
		change func(string) string
		warned bool
	}{
		"interrupted": {3, Interrupted, nil, false},
		"failed":      {3, Failed, nil, false},
		"too few":     {4, OK, nil, true},
		"missing row": {3, OK,
			replaced("1,2,2,2,2,-0.500000,0\n", ""), true},
		"out of order": {3, OK,
			replaced("-2.500000", "-0.012500"), true},
		"no forced token": {3, OK,
			replaced("1,2,1,0,9,,1\n", ""), true},
		"implausible logits": {3, OK,
			replaced("-9.750000", "-1e308"), true},
		"above certainty": {3, OK,
			replaced("-0.125000", "0.125000"), true},
		"last row cut": {3, OK, func(s string) string { return strings.TrimSuffix(s, ",1\n") }, true},
	} {
		dir := scored(t, c.tokens, c.end)
		if c.change != nil {
			dir = changed(t, dir, "scores.csv", c.change)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(name, err)
		}
		warned := false
		for _, w := range r.Warnings {
			warned = warned || w.Code == "scores-missing"
		}
		if len(r.Scorings) != 1 || r.Scorings[0].Scores != nil || warned != c.warned {
			t.Errorf("%s: %+v, warnings %v", name, r.Scorings, r.Warnings)
		}
	}
}
