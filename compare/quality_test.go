package compare_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
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
