package compare

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// quality compares cells that scored a text with one of them, the reference, and adds the figures to all cells. The
// reference is the cell that the first scored cell was to be compared with, or else that first cell itself.
func (r *Result) quality() {
	scored := func(c *Cell) bool { return c.Quality != nil }
	var of *Cell
	if first := slices.IndexFunc(r.Cells, scored); first >= 0 {
		of = r.Cells[first]
		if at := slices.IndexFunc(r.Cells, func(c *Cell) bool {
			return scored(c) && c.Run == of.Run && c.Spec.ID == of.Quality.Compared
		}); at >= 0 {
			of = r.Cells[at]
		}
	}
	for _, c := range r.Cells {
		if scored(c) {
			c.Quality.Against(of.Quality)
			c.Quality.Reference = of.Label
		}
		if of != nil {
			c.Figures = append(c.Figures, c.qualityFigures(of)...)
		}
	}
}

// MinWindows is the fewest windows for an interval of a paired difference.
const MinWindows = 16

// ofQuality is a figure of a text: a mean over its windows, with Student's interval. Windows take the place of
// launches.
type ofQuality struct {
	name   string
	value  func(parity.Window) *float64
	as     func(float64) float64 // of a mean
	paired bool                  // a difference from the reference, window by window
}

var qualityFigures = []ofQuality{
	{figure.Perplexity, func(w parity.Window) *float64 { return w.NLL }, math.Exp, false},
	{figure.NLLChange, func(w parity.Window) *float64 { return w.Change }, same, true},
	{figure.PerplexityRatio, func(w parity.Window) *float64 { return w.Change }, math.Exp, true},
	{figure.Top1, func(w parity.Window) *float64 { return w.Top1 }, func(v float64) float64 { return 100 * v }, false},
	{figure.KL, func(w parity.Window) *float64 { return w.KL }, same, false},
}

func same(v float64) float64 { return v }

// qualityFigures are the figures of a text that the cell's engine scored, alone and compared with the reference.
func (c *Cell) qualityFigures(reference *Cell) (out []evidence.Figure) {
	for _, of := range qualityFigures {
		f := evidence.New(of.name)
		f.Values = []evidence.Value{}
		if f.Absent = c.lacksQuality(of, reference); f.Absent == "" {
			of.fill(&f, c.Quality)
		}
		c.judgeQuality(of, &f)
		out = append(out, f)
	}
	return out
}

// lacksQuality says why a figure is absent; empty: it is present.
func (c *Cell) lacksQuality(of ofQuality, reference *Cell) string {
	switch q := c.Quality; {
	case q == nil:
		return "its engine scored no text"
	case !q.Whole():
		return fmt.Sprintf("%d of %d windows were scored", len(q.Windows), q.Of)
	case of.name == figure.Perplexity:
		if q.Absent == q.Tokens {
			return "all log-probabilities are too small for the engine to report"
		}
		return ""
	case c == reference:
		return "it is the reference"
	case of.paired && reference.Guesses():
		return "the reference's perplexity is meaningless"
	case of.paired && c.Guesses():
		return "the perplexity is meaningless"
	case !slices.ContainsFunc(q.Windows, func(w parity.Window) bool { return w.KL != nil }):
		return "the reference scored other tokens"
	case !slices.ContainsFunc(q.Windows, func(w parity.Window) bool { return of.value(w) != nil }):
		return "no log-probability is known on both sides"
	}
	return ""
}

// fill sets value and interval.
func (of ofQuality) fill(f *evidence.Figure, q *parity.Quality) {
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

// judgeQuality warns of tokens that a figure leaves out, and of a perplexity that is meaningless.
func (c *Cell) judgeQuality(of ofQuality, f *evidence.Figure) {
	q := c.Quality
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
	if of.name == figure.Perplexity && c.Guesses() {
		f.Interval, f.Note, f.Meaningless = nil, "meaningless", true
		f.Warnings = append(f.Warnings, explain.Meaningless.With(c.Spec.Model.Vocab))
	}
}

// Guesses reports whether the cell's perplexity is above the size of the vocabulary. Guessing each token with the same
// probability would be better, so the perplexity says nothing of how good a form of a model is.
func (c *Cell) Guesses() bool {
	if c.Quality == nil || c.Spec.Model.Vocab == 0 {
		return false
	}
	each, _ := c.Quality.Each(qualityFigures[0].value)
	mean, _, _ := stats.Moments(each)
	return mean > math.Log(float64(c.Spec.Model.Vocab))
}

// QualityChanges compares the scores of a text by two cells, window by window: by how much the negative log-likelihood
// rose, the divergence of the second's distributions from the first's, or minus the share of tokens at which they
// predict different ones. If they cannot be compared, it returns the reason.
func QualityChanges(base, now *Cell, name string) (changes []float64, why string) {
	if why := lacking(base.Figure(figure.Perplexity), now.Figure(figure.Perplexity)); why != "" {
		return nil, why
	}
	if name == figure.Perplexity && base.Guesses() {
		return nil, "the baseline run's perplexity is meaningless: worse than guessing uniformly"
	}
	q := *now.Quality // of which only a copy is compared with another
	q.Windows = slices.Clone(q.Windows)
	q.Against(base.Quality)
	changes, _ = q.Each(func(w parity.Window) *float64 {
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
	if changes == nil {
		why = "the baseline run scored another text"
	}
	return changes, why
}
