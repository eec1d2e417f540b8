package parity

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Figures are the figures of the text, alone and compared with a reference, which may be q itself. q may be nil.
func (q *Quality) Figures(reference *Quality) (out []evidence.Figure) {
	for _, of := range textFigures {
		f := evidence.New(of.name)
		f.Values = []evidence.Value{}
		if f.Absent = q.lacks(of, reference); f.Absent == "" {
			of.fill(&f, q)
		}
		q.judge(of, &f)
		out = append(out, f)
	}
	return out
}

// textFigure is a figure of a text: a mean over its windows, with Student's interval. Windows take the place of
// launches.
type textFigure struct {
	name   string
	value  func(Window) *float64
	as     func(float64) float64 // of a mean
	paired bool                  // a difference from the reference, window by window
}

var textFigures = []textFigure{
	{figure.Perplexity, func(w Window) *float64 { return w.NLL }, math.Exp, false},
	{figure.NLLChange, func(w Window) *float64 { return w.Change }, asIs, true},
	{figure.PerplexityRatio, func(w Window) *float64 { return w.Change }, math.Exp, true},
	{figure.Top1, func(w Window) *float64 { return w.Top1 }, func(v float64) float64 { return 100 * v }, false},
	{figure.KL, func(w Window) *float64 { return w.KL }, asIs, false},
}

func asIs(v float64) float64 { return v }

// lacks says why a figure is absent; empty: it is present.
func (q *Quality) lacks(of textFigure, reference *Quality) string {
	switch {
	case q == nil:
		return "its engine scored no text"
	case !q.Whole():
		return fmt.Sprintf("%d of %d windows were scored", len(q.Windows), q.Of)
	case of.name == figure.Perplexity:
		if q.Absent == q.Tokens {
			return "all log-probabilities are too small for the engine to report"
		}
		return ""
	case q == reference:
		return "it is the reference"
	case of.paired && reference.Guesses():
		return "the reference's perplexity is meaningless"
	case of.paired && q.Guesses():
		return "the perplexity is meaningless"
	case !slices.ContainsFunc(q.Windows, func(w Window) bool { return w.KL != nil }):
		return "the reference scored other tokens"
	case !slices.ContainsFunc(q.Windows, func(w Window) bool { return of.value(w) != nil }):
		return "no log-probability is known on both sides"
	}
	return ""
}

// MinWindows is the fewest windows for an interval of a paired difference.
const MinWindows = 16

// fill sets value and interval.
func (of textFigure) fill(f *evidence.Figure, q *Quality) {
	each, windows := q.Each(of.value)
	for i, v := range each {
		f.Values = append(f.Values, evidence.Value{Attempt: windows[i].Attempt, Value: stats.Round(of.as(v), 6)})
	}
	mean, _, _ := stats.Moments(each)
	f.N, f.Median = len(each), new(of.as(mean))
	f.Origin, f.Method = record.OriginReported, evidence.ByLogProbs
	if of.paired && f.N < MinWindows {
		f.Note = fmt.Sprintf("too few windows: %d of %d", f.N, MinWindows)
		return
	}
	if f.Interval = stats.MeanInterval(each, stats.Confidence); f.Interval == nil {
		f.Note = "one window"
		return
	}
	f.Interval.Lo, f.Interval.Hi = of.as(f.Interval.Lo), of.as(f.Interval.Hi)
	if f.Unit != "" && !of.paired { // a share or a divergence
		f.Interval.Lo = max(f.Interval.Lo, 0)
	}
	if of.name == figure.Top1 {
		f.Interval.Hi = min(f.Interval.Hi, 100)
	}
}

// judge warns of tokens that a figure leaves out, and of a perplexity that is meaningless.
func (q *Quality) judge(of textFigure, f *evidence.Figure) {
	if q == nil || !f.Known() {
		return
	}
	switch {
	case of.name == figure.Perplexity && q.Absent > 0:
		f.Warnings = append(f.Warnings, explain.Underflow.With(q.Absent, q.Tokens))
	case of.name == figure.PerplexityRatio:
		tokens, paired := 0, 0
		for _, w := range q.Windows {
			if w.KL != nil { // the same window of the reference
				tokens, paired = tokens+w.Tokens, paired+w.Paired
			}
		}
		if paired < tokens {
			f.Warnings = append(f.Warnings, explain.PositionsOut.With(tokens-paired, tokens))
		}
	}
	if of.name == figure.Perplexity && q.Guesses() {
		f.Interval, f.Note, f.Meaningless = nil, "meaningless", true
		f.Warnings = append(f.Warnings, explain.Meaningless.With(q.vocab))
	}
}

// Guesses reports whether the perplexity is above the size of the vocabulary. Guessing each token with the same
// probability would be better, so the perplexity says nothing of how good a form of a model is.
func (q *Quality) Guesses() bool {
	if q == nil || q.vocab == 0 {
		return false
	}
	each, _ := q.Each(textFigures[0].value)
	mean, _, _ := stats.Moments(each)
	return mean > math.Log(float64(q.vocab))
}

// Changes compares it with that of another cell, window by window: by how much the negative log-likelihood rose, the
// divergence of its distributions from the other's, or minus the share of tokens at which they predict different ones.
// nil: they scored other texts.
func (q *Quality) Changes(base *Quality, name string) []float64 {
	again := *q // only a copy is compared with another reference
	again.Windows = slices.Clone(q.Windows)
	again.Against(base)
	changes, _ := again.Each(func(w Window) *float64 {
		switch {
		case name == figure.KL:
			return w.KL
		case name == figure.Top1 && w.Top1 != nil:
			return new(*w.Top1 - 1)
		case name == figure.Top1:
			return nil
		}
		return w.Change
	})
	return changes
}
