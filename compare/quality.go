package compare

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/parity"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// quality compares cells that scored a text with one of them, the reference, and adds the figures to all cells: the
// first setup's reference engine, or the first cell that scored.
func (r *Result) quality() {
	scored := func(c *Cell) bool { return c.Quality != nil }
	first := slices.IndexFunc(r.Cells, scored)
	if first < 0 {
		return
	}
	of := r.Cells[first]
	if at := slices.IndexFunc(r.Cells, func(c *Cell) bool {
		return scored(c) && c.Run == of.Run && c.Spec.ID == of.Quality.Compared
	}); at >= 0 {
		of = r.Cells[at]
	}
	for _, c := range r.Cells {
		if scored(c) {
			c.Quality.Against(of.Quality)
			c.Quality.Reference = of.Label
		}
	}
	for _, c := range r.Cells {
		c.Figures = append(c.Figures, c.qualityFigures(c.Quality != nil && c.Label == of.Label)...)
	}
}

// qualityFigures are means over the windows of the text, with Student's intervals. Windows take the place of launches.
func (c *Cell) qualityFigures(reference bool) (out []evidence.Figure) {
	same := func(v float64) float64 { return v }
	percent := func(v float64) float64 { return 100 * v }
	for _, of := range []struct {
		name  string
		value func(parity.Window) *float64
		as    func(float64) float64 // of a mean
	}{
		{figure.Perplexity, func(w parity.Window) *float64 { return &w.NLL }, math.Exp},
		{figure.Top1, func(w parity.Window) *float64 { return w.Top1 }, percent},
		{figure.KL, func(w parity.Window) *float64 { return w.KL }, same},
	} {
		f := evidence.New(of.name)
		f.Values = []evidence.Value{}
		switch q := c.Quality; {
		case q == nil:
			f.Absent = "its engine scored no text"
		case !q.Whole():
			f.Absent = fmt.Sprintf("%d of %d windows were scored", len(q.Windows), q.Of)
		case reference && of.name != figure.Perplexity:
			f.Absent = "it is the reference"
		default:
			each := q.Each(of.value)
			if each == nil {
				f.Absent = "the reference scored other tokens"
				break
			}
			for i, v := range each {
				f.Values = append(f.Values,
					evidence.Value{Attempt: q.Windows[i].Attempt, Value: stats.Round(of.as(v), 6)})
			}
			mean, _, _ := stats.Moments(each)
			f.N, f.Absent, f.Median = len(each), "", new(of.as(mean))
			f.Origin, f.Method = record.OriginReported, evidence.ByLogProbs
			if f.Interval = stats.MeanInterval(each, stats.Confidence); f.Interval == nil {
				f.Note = "one window"
				break
			}
			f.Interval.Lo, f.Interval.Hi = of.as(f.Interval.Lo), of.as(f.Interval.Hi)
			if f.Unit != "" { // a share or a divergence
				f.Interval.Lo = max(f.Interval.Lo, 0)
			}
			if of.name == figure.Top1 {
				f.Interval.Hi = min(f.Interval.Hi, 100)
			}
		}
		out = append(out, f)
	}
	return out
}

// QualityChanges compares what two cells made of a text, window by window: by how much the negative log-likelihood
// rose, the divergence of the second's distributions from the first's, or minus the share of tokens at which they
// predict different ones. If they can't be compared it says why.
func QualityChanges(base, now *Cell, name string) (changes []float64, why string) {
	if why := lacking(base.Figure(figure.Perplexity), now.Figure(figure.Perplexity)); why != "" {
		return nil, why
	}
	q := *now.Quality // of which only a copy is compared with another
	q.Windows = slices.Clone(q.Windows)
	for i := range q.Windows {
		q.Windows[i].KL, q.Windows[i].Top1 = nil, nil
	}
	q.Against(base.Quality)
	changes = q.Each(func(w parity.Window) *float64 {
		switch {
		case w.KL == nil:
			return nil
		case name == figure.KL:
			return w.KL
		case name == figure.Top1:
			return new(*w.Top1 - 1)
		}
		return new(w.NLL - w.Was)
	})
	if changes == nil {
		why = "the baseline run scored another text"
	}
	return changes, why
}
