package compare_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/warning"
)

// scoredText makes a run of two engines that scored a text of four windows. In each window, webllm gives its tokens a
// lower probability than llamacpp by a factor, and prefers another token at one place of four.
func scoredText(t *testing.T, lower float64, change func(web, llama *comparetest.Engine)) *record.Run {
	web, llama := comparetest.Browser(1), comparetest.Native(1)
	text := record.Scoring{Reference: llama.Cell.ID, PromptIDs: []int{1, 2, 3}, Top: 2,
		Window: &record.Window{Text: "a.txt", SHA256: "5f", Of: 4}}
	for i := range 16 {
		p := 0.4 - 0.05*float64(i/4)
		score := func(p, other float64) record.Score {
			top := []record.Candidate{{ID: 7, LogProb: math.Log(p)}, {ID: 8, LogProb: math.Log(other)}}
			slices.SortFunc(top, func(a, b record.Candidate) int { return cmp.Compare(b.LogProb, a.LogProb) })
			return record.Score{Forced: 7, LogProb: math.Log(p), Top: top}
		}
		other := 0.2
		if i%4 == 0 {
			other = 0.45
		}
		llama.Scores, web.Scores = append(llama.Scores, score(p, 0.2)), append(web.Scores, score(lower*p, other))
	}
	web.Scored, llama.Scored = text, text
	if change != nil {
		change(&web, &llama)
	}
	return comparetest.Run(t, "quality", web, llama)
}

func TestQuality(t *testing.T) {
	r := compare.Runs(scoredText(t, 0.9, nil))
	web, llama := r.Cells[0], r.Cells[1]
	// The mean of -ln 0.4, 0.35, 0.3 and 0.25 with Student's interval, of 3 degrees of freedom.
	ppl := llama.Figure(figure.Perplexity)
	if math.Abs(ppl.Center()-3.1239) > 1e-3 || ppl.N != 4 || math.Abs(ppl.Interval.Lo-2.2637) > 1e-3 ||
		math.Abs(ppl.Interval.Hi-4.3111) > 1e-3 {
		t.Errorf("perplexity %+v, %+v", ppl.Center(), ppl.Interval)
	}
	if ratio := web.Figure(figure.Perplexity).Center() / ppl.Center(); math.Abs(ratio-1/0.9) > 1e-4 {
		t.Errorf("perplexity is %g times as high", ratio)
	}
	if top := web.Figure(figure.Top1); top.Center() != 75 {
		t.Errorf("top-1 agreement %g%%", top.Center())
	}
	want := 0.0
	for i := range 16 {
		p, other := 0.4-0.05*float64(i/4), 0.2
		if i%4 == 0 {
			other = 0.45
		}
		want += (p*math.Log(1/0.9) + 0.2*math.Log(0.2/other) + (0.8-p)*math.Log((0.8-p)/(1-0.9*p-other))) / 16
	}
	if kl := web.Figure(figure.KL).Center(); math.Abs(kl-want) > 1e-5 || web.Quality.Reference != llama.Label {
		t.Errorf("KL divergence %g from %s, want %g", kl, web.Quality.Reference, want)
	}
	if f := llama.Figure(figure.KL); f.Known() || f.Absent != "it is the reference" {
		t.Errorf("the reference's divergence from itself: %+v", f)
	}
	if r.Parity[0].Forced != nil {
		t.Error("windows of a text count as a scored output")
	}
}

// No interval of a share exceeds the whole.
func TestShareOfTheWhole(t *testing.T) {
	r := compare.Runs(scoredText(t, 0.9, func(web, _ *comparetest.Engine) {
		for _, window := range []int{0, 4, 8} { // the last one keeps its other prediction
			web.Scores[window] = web.Scores[window+1]
		}
	}))
	if top := r.Cells[0].Figure(figure.Top1); top.Center() != 93.75 || top.Interval.Hi != 100 || top.Interval.Lo >= 93 {
		t.Errorf("top-1 agreement %g%%, %+v", top.Center(), top.Interval)
	}
}

// What can't be compared is absent, with a reason.
func TestQualityAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(web, llama *comparetest.Engine)
		figure string
		want   string
	}{
		"other tokens": {func(web, _ *comparetest.Engine) { web.Scored.PromptIDs = []int{1} }, figure.KL,
			"the reference scored other tokens"},
		"not scored": {func(web, _ *comparetest.Engine) { web.Scores = nil }, figure.Perplexity,
			"its engine scored no text"},
	} {
		f := compare.Runs(scoredText(t, 0.9, c.change)).Cells[0].Figure(c.figure)
		if f.Known() || f.Absent != c.want {
			t.Errorf("%s: %v, %q", name, f.Median, f.Absent)
		}
	}
}

// formsOf makes a run of two cells that scored so many windows of two tokens. Of a window's number the text's
// difficulty follows, which is that of both; worse says by how much a token's log-probability is lower in the second.
func formsOf(t *testing.T, windows int, worse func(token int) float64) *compare.Result {
	t.Helper()
	a, b := comparetest.Native(1), comparetest.Native(1)
	a.Cell.Model.Name, b.Cell.Model.Name = "q8_0", "q4_k_m"
	a.Cell.ID, b.Cell.ID, b.Cell.Setup = 1, 2, 2
	text := record.Scoring{Reference: a.Cell.ID, PromptIDs: []int{1}, Top: 2,
		Window: &record.Window{Text: "a.txt", SHA256: "5f", Of: windows}}
	a.Scored, b.Scored = text, text
	for i := range 2 * windows {
		score := func(logProb float64) record.Score {
			return record.Score{Forced: 7, LogProb: logProb, Top: []record.Candidate{{ID: 8, LogProb: -0.1},
				{ID: 9, LogProb: -5}}}
		}
		hard := -1 - 2*float64(i/2%5)
		a.Scores, b.Scores = append(a.Scores, score(hard)), append(b.Scores, score(hard-worse(i)))
	}
	return compare.Runs(comparetest.Run(t, "forms", a, b))
}

// Forms of a model are compared window by window. The interval is far narrower than those of the perplexities.
func TestFormsArePaired(t *testing.T) {
	r := formsOf(t, 20, func(token int) float64 { return 0.02 + 0.01*float64(token/2%2) })
	of, change := r.Cells[1].Figure(figure.PerplexityRatio), r.Cells[1].Figure(figure.NLLChange)
	// Student's interval of ten times 0.02 and ten times 0.03, of 19 degrees of freedom: 0.025 ± 2.093 × 0.00513/√20.
	if math.Abs(change.Center()-0.025) > 1e-9 || math.Abs(change.Interval.Lo-0.0226) > 1e-5 ||
		math.Abs(change.Interval.Hi-0.0274) > 1e-5 || change.N != 20 {
		t.Errorf("NLL change %g, %+v of %d windows", change.Center(), change.Interval, change.N)
	}
	if math.Abs(math.Log(of.Center())-0.025) > 1e-9 || math.Abs(math.Log(of.Interval.Hi)-0.0274) > 1e-5 {
		t.Errorf("ratio %g, %+v", of.Center(), of.Interval)
	}
	if wide := r.Cells[1].Figure(figure.Perplexity); wide.Interval.Hi/wide.Interval.Lo < 5 {
		t.Errorf("windows differ little: %+v", wide.Interval)
	}
	if f := r.Cells[0].Figure(figure.PerplexityRatio); f.Known() || f.Absent != "it is the reference" {
		t.Errorf("the reference against itself: %+v", f)
	}
	few := formsOf(t, 15, func(token int) float64 { return 0.02 + 0.01*float64(token%4) })
	if f := few.Cells[1].Figure(figure.PerplexityRatio); !f.Known() || f.Interval != nil ||
		f.Note != "too few windows: 15 of 16" {
		t.Errorf("15 windows: %+v", f)
	}
}

// A log-probability that the engine cannot report is in no figure. The difference has the same tokens on both sides.
func TestUnderflowIsAbsent(t *testing.T) {
	r := formsOf(t, 16, func(token int) float64 {
		if token%4 == 3 { // the second token of every other window
			return math.NaN()
		}
		return 0.5
	})
	a, b := r.Cells[0], r.Cells[1]
	if q := b.Quality; q.Tokens != 32 || q.Absent != 8 || q.Windows[1].Paired != 1 || a.Quality.Absent != 0 {
		t.Errorf("%d of %d tokens are absent, %d of window 2 paired", q.Absent, q.Tokens, q.Windows[1].Paired)
	}
	change := b.Figure(figure.NLLChange)
	if math.Abs(change.Center()-0.5) > 1e-9 {
		t.Errorf("NLL change %g of the tokens that both report", change.Center())
	}
	if ratio := b.Figure(figure.Perplexity).Center() / a.Figure(figure.Perplexity).Center(); ratio > 2 {
		t.Errorf("a value was filled in: perplexity is %g times as high", ratio)
	}
	warned := func(text string) bool {
		return slices.ContainsFunc(r.Warnings, func(w evidence.Warning) bool {
			return w.Code == warning.Perplexity && w.Where == b.Label && strings.Contains(w.Text, text)
		})
	}
	if !warned("8 of 32 log-probabilities are too small") || !warned("8 of 32 tokens are left out") {
		t.Errorf("no warning says how many: %v", r.Warnings)
	}
}

// A perplexity above the vocabulary's size is called meaningless, and compared with none.
func TestMeaninglessPerplexity(t *testing.T) {
	r := formsOf(t, 16, func(int) float64 { return 60 })
	b := r.Cells[1]
	ppl, ratio := b.Figure(figure.Perplexity), b.Figure(figure.PerplexityRatio)
	if ppl.Interval != nil || ppl.Note != "meaningless" || ratio.Known() ||
		ratio.Absent != "the perplexity is meaningless" {
		t.Errorf("%g %+v %q; ratio %+v", ppl.Center(), ppl.Interval, ppl.Note, ratio)
	}
	if !slices.ContainsFunc(r.Warnings, func(w evidence.Warning) bool {
		return w.Code == warning.Perplexity && strings.Contains(w.Text, "is meaningless: above 512,")
	}) {
		t.Errorf("no warning: %v", r.Warnings)
	}
	if f := r.Cells[0].Figure(figure.Perplexity); f.Interval == nil || len(f.Warnings) > 0 {
		t.Errorf("the other one: %+v", f)
	}
}
