package compare_test

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/warning"
)

// still moves no score, and faint moves one unlikely candidate of one position, which no token shows.
func still(int, int) float64 { return 0 }

func faint(by float64) func(position, rank int) float64 {
	return func(position, rank int) float64 {
		if position == 50 && rank == 19 {
			return by
		}
		return 0
	}
}

// pairOf has two engines that generate the same tokens and have made a score check in float32.
func pairOf(web, llama func(position, rank int) float64) (a, b comparetest.Engine) {
	a, b = comparetest.Browser(6), comparetest.Native(6)
	a.Checked, b.Checked = comparetest.Scores(web), comparetest.Scores(llama)
	a.Check.Arithmetic, b.Check.Arithmetic = []string{"float32"}, []string{"float32"}
	return a, b
}

// anchored adds what the reference implementation computed, with a yardstick.
func anchored(e *comparetest.Engine, yardstick float64) {
	e.Anchored = comparetest.Scores(still)
	e.Check.Anchor = &record.Anchor{SHA256: e.Cell.Model.SHA256, Yardsticks: map[string]float64{"float32": yardstick}}
}

func TestScoresDecideWhatTokensDoNotShow(t *testing.T) {
	for name, c := range map[string]struct {
		web      func(position, rank int) float64
		headline string
		says     string
		wrong    bool
	}{
		"the same":          {still, "Same tokens, same scores", "the same scores at 64 positions", false},
		"as float32 rounds": {faint(0.0009), "Same tokens, same scores", "at most 0.001 apart", false},
		"a wrong kernel":    {faint(0.07), "Same tokens, other scores", "scores up to 0.070 apart: more than float32 explains (0.001)", true},
	} {
		web, llama := pairOf(c.web, still)
		r := compare.Runs(comparetest.Run(t, "check", web, llama))
		p := r.Parity[0]
		if !p.Identical || p.Scores == nil || p.Scores.Differs() != c.wrong || p.Scores.Compared != 64*20 {
			t.Fatalf("%s: %+v, scores %+v", name, p.Identical, p.Scores)
		}
		out := answer.Of(r).Output
		if out.Headline != c.headline {
			t.Errorf("%s: %q", name, out.Headline)
		}
		check.Has(t, out.Text, c.says)
		if warned := len(r.Warnings) > 0 && r.Warnings[0].Code == warning.ScoresDiffer; warned != c.wrong {
			t.Errorf("%s: warnings %+v", name, r.Warnings)
		}
		if c.wrong && (p.Scores.MaxAt != 51 || p.Scores.MaxSteps < 0.069) {
			t.Errorf("%s: %+v", name, p.Scores)
		}
		if quote := answer.Of(r).Quote.Text; strings.Contains(quote, "Memory and output may be quoted") == c.wrong {
			t.Errorf("%s: %s", name, quote)
		}
	}
}

// The reference implementation names the wrong one of two, and its yardstick decides, not what the suspect does.
func TestAnchorNamesTheWrongEngine(t *testing.T) {
	web, llama := pairOf(func(int, int) float64 { return -2 }, faint(0.003))
	anchored(&web, 0.002)
	llama.Check.Anchor = web.Check.Anchor
	r := compare.Runs(comparetest.Run(t, "anchored", web, llama))
	if w, l := r.Cells[0].Scores, r.Cells[1].Scores; !w.Differs() || !l.Known() || l.Differs() || l.Nats != 0.004 ||
		*l.Yardstick != 0.002 {
		t.Fatalf("%+v; %+v", w, l)
	}
	out := answer.Of(r).Output
	if out.Headline != "Wrong scores: webllm" {
		t.Error(out.Headline)
	}
	check.Has(t, out.Text, "scores up to 2.000 apart: more than float32 explains (0.004)",
		"It agrees with llamacpp.")
}

// One engine alone has a verdict, too.
func TestAnchorJudgesOneEngine(t *testing.T) {
	for name, c := range map[string]struct {
		shift    func(position, rank int) float64
		headline string
	}{"right": {still, "Repeatable, right scores"}, "wrong": {faint(0.02), "Wrong scores: webllm"}} {
		web, _ := pairOf(c.shift, still)
		anchored(&web, 1e-5)
		r := compare.Runs(comparetest.Run(t, "alone", web))
		if out := answer.Of(r).Output; out.Headline != c.headline {
			t.Errorf("%s: %+v", name, out)
		}
	}
	once := comparetest.Browser(1)
	once.Checked, once.Check.Arithmetic = comparetest.Scores(still), []string{"float32"}
	anchored(&once, 1e-5)
	if out := answer.Of(compare.Runs(comparetest.Run(t, "once", once))).Output; out.Headline != "Right scores" {
		t.Errorf("one launch: %+v", out)
	}
}

// What was not compared is said, never taken for the same.
func TestScoresNotChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(web, llama *comparetest.Engine)
		says   string
	}{
		"neither": {func(web, llama *comparetest.Engine) { web.Checked, llama.Checked = nil, nil },
			"scores not checked"},
		"one": {func(web, llama *comparetest.Engine) { llama.Checked = nil },
			"llamacpp reports no log-probabilities of a given text"},
		"different texts": {func(web, llama *comparetest.Engine) {
			llama.Check.IDs, llama.Check.AsPrompt = make([]int, 68), 48
		}, "they scored different texts"},
		"other weights": {func(web, llama *comparetest.Engine) {
			web.Cell.Model.Form, llama.Cell.Model.Form, llama.Cell.Model.SHA256 = "a", "b", "other"
		}, "the engines have other weights"},
		"no token in common": {func(web, llama *comparetest.Engine) {
			for i := range llama.Checked {
				s := &llama.Checked[i]
				for j := range s.Top {
					s.Top[j].ID += 100
				}
				s.Forced += 100
			}
		}, "more than float32 explains"},
		"a probability that underflows on one side": {func(web, llama *comparetest.Engine) {
			llama.Checked[9].Top[19].LogProb = -95
		}, "scores up to 78.087 apart: more than float32 explains"},
		"a candidate replaced by another": {func(web, llama *comparetest.Engine) {
			llama.Checked[9].Top[12].ID = 400
		}, "scores up to 3.150 apart: more than float32 explains"},
	} {
		web, llama := pairOf(still, still)
		c.change(&web, &llama)
		out := answer.Of(compare.Runs(comparetest.Run(t, "unchecked", web, llama))).Output
		if strings.Contains(out.Headline, "same scores") || !strings.Contains(out.Text, c.says) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// Weights that WebLLM rounds to float16 are judged, those that it requantises are not.
func TestScoresOfRoundedWeights(t *testing.T) {
	for dtype, known := range map[string]bool{"f16": true, "q4_0": false} {
		web, llama := pairOf(faint(0.1), still)
		web.Check.Arithmetic = []string{"float16 activations"}
		web.Info.Weights, web.Info.Policy["weights_dtype"] = record.OtherValues, dtype
		web.Info.Policy["activations_dtype"] = "f16"
		anchored(&llama, 1e-5)
		llama.Check.Anchor.Yardsticks["float16 activations"] = 0.1
		r := compare.Runs(comparetest.Run(t, "rounded", web, llama))
		if c, p := r.Cells[0].Scores, r.Parity[0].Scores; c.Known() != known || p.Known() != known || c.Differs() ||
			p.Differs() {
			t.Errorf("%s: %+v, %+v", dtype, c, p)
		}
	}
}

// A coarser arithmetic of one side explains more, and the answer says which.
func TestCoarserArithmeticExplainsMore(t *testing.T) {
	web, llama := pairOf(faint(0.03), still)
	llama.Check.Arithmetic = []string{"a float16 KV cache"}
	out := answer.Of(compare.Runs(comparetest.Run(t, "coarse", web, llama))).Output
	if out.Headline != "Same tokens, same scores" {
		t.Error(out.Headline)
	}
	check.Has(t, out.Text, "at most 0.030 apart", "a float16 KV cache explains up to 0.100")
}

// Of two texts that begin alike, as of two builds that generate different tokens, the beginning is compared.
func TestScoresOfTextsThatBeginAlike(t *testing.T) {
	web, llama := pairOf(func(position, _ int) float64 { return -0.02 * float64(position/16) }, still)
	llama.Check.IDs, llama.Check.AsPrompt = comparetest.IDs(68), 48
	llama.Check.IDs[20]++
	p := compare.Runs(comparetest.Run(t, "alike", web, llama)).Parity[0].Scores
	if p.Positions != 17 || p.AsPrompt != 17 || p.MaxAt != 17 || !p.Differs() {
		t.Errorf("%+v", p)
	}
}

// A model that runs with several start settings has an anchor beside each. The one beside a cell has a yardstick for
// what this cell computes in.
func TestAnchorBesideTheCell(t *testing.T) {
	fine, coarse := pairOf(still, faint(0.07))
	fine.Cell.Setup, coarse.Cell.Setup = 1, 2
	coarse.Check.Arithmetic = []string{"float16 activations"}
	coarse.Info.Policy["activations_dtype"] = "f16"
	anchored(&fine, 1e-5)
	anchored(&coarse, 0)
	coarse.Check.Anchor.Yardsticks = map[string]float64{"float16 activations": 0.05}
	for _, order := range [][]comparetest.Engine{{fine, coarse}, {coarse, fine}} {
		r := compare.Runs(comparetest.Run(t, "anchors", order...))
		for _, c := range r.Cells {
			if c.Scores.Yardstick == nil || c.Scores.Differs() {
				t.Errorf("%s: %+v", c.Label, c.Scores)
			}
		}
	}
}
