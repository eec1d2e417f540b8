package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
)

// qualityCard says how well a text was predicted: forms of a model against the reference, by paired differences.
func (r view) qualityCard() Card {
	of, forms := r.scored()
	if of == nil {
		return Card{}
	}
	ppl := of.Figure(figure.Perplexity)
	out := Card{Name: "Quality", Text: r.perplexities(of, forms)}
	var compared []*compare.Cell
	for _, c := range forms {
		if c.Figure(figure.PerplexityRatio).Known() {
			compared = append(compared, c)
		}
	}
	switch {
	case of.Quality.Guesses():
		out.Headline, out.Unknown = "Perplexity is meaningless", true
		out.reason(fmt.Sprintf("It is above %d, the size of the vocabulary", of.Spec.Model.Vocab))
	case !ppl.Known():
		out.Headline, out.Unknown = "Perplexity is not known", true
		out.reason(explain.Capital(ppl.Absent))
	case len(forms) == 0:
		out.Headline, out.Text = "Perplexity "+explain.Amount(ppl.Center()), valued(ppl, "")+" on "+textOf(of)+"."
	case len(compared) == 0:
		out.Headline, out.Unknown = verdict.NotComparable.Headline(), true
		out.reason(explain.Capital(forms[0].Figure(figure.PerplexityRatio).Absent))
	case len(compared) == 1:
		a, b := r.pairNames(of, compared[0])
		v := verdict.OfPerplexity(compared[0].Figure(figure.PerplexityRatio), a, b)
		headline, rest := v.PerplexityHeadline()
		out.Headline, out.Unknown, out.Verdicts = headline, v.Outcome == verdict.TooFew, []verdict.Verdict{v}
		out.reason(rest)
	default:
		out.Headline = r.worst(compared)
		out.reason(r.perplexitiesOf(of, compared))
	}
	return out
}

// reason is said before the rest of a card's text.
func (c *Card) reason(text string) { c.Text = strings.TrimSpace(open(text) + ". " + c.Text) }

// worst names the form with the highest perplexity, or says that none is higher than the reference's.
func (r view) worst(forms []*compare.Cell) string {
	change := func(c *compare.Cell) float64 { return c.Figure(figure.PerplexityRatio).Center() - 1 }
	worst := slices.MaxFunc(forms, func(a, b *compare.Cell) int { return cmp.Compare(change(a), change(b)) })
	if change(worst) <= 0 {
		return "No form has a higher perplexity"
	}
	return fmt.Sprintf("Perplexity at most %s higher: %s", verdict.Fine(change(worst)), r.cellTitle(worst))
}

// scored returns the reference and the other cells that scored a text, one for each set of scores.
func (r view) scored() (reference *compare.Cell, others []*compare.Cell) {
	seen := map[[2]int]bool{}
	for _, c := range r.Cells {
		if c.Quality != nil && c.Quality.Reference == c.Label {
			reference = c
			seen[scoresOf(c)] = true
		}
	}
	for _, c := range r.Cells {
		if c.Quality != nil && !seen[scoresOf(c)] {
			seen[scoresOf(c)] = true
			others = append(others, c)
		}
	}
	return reference, others
}

// scoresOf identifies a cell's scores: cells with the same start settings share them.
func scoresOf(c *compare.Cell) [2]int { return [2]int{c.Run, c.Quality.Windows[0].Attempt} }

func textOf(c *compare.Cell) string {
	windows := explain.Plural(c.Quality.Of, "window", "windows")
	return fmt.Sprintf("%d %s of the text %s", c.Quality.Of, windows, explain.Cut(c.Quality.Text, 40))
}

// perplexities are the perplexities of a few cells.
func (r view) perplexities(of *compare.Cell, forms []*compare.Cell) string {
	var words []string
	for _, c := range append([]*compare.Cell{of}, forms...) {
		f := c.Figure(figure.Perplexity)
		switch {
		case !f.Known() || len(words) == mostValues:
		case c.Quality.Guesses():
			words = append(words, fmt.Sprintf("%s above %d, the size of the vocabulary, and so meaningless",
				r.cellTitle(c), c.Spec.Model.Vocab))
		default:
			words = append(words, r.cellTitle(c)+" "+explain.Amount(f.Center()))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("Perplexity on %s: %s.", textOf(of), strings.Join(words, ", "))
}

// perplexitiesOf answers for several forms.
func (r view) perplexitiesOf(of *compare.Cell, forms []*compare.Cell) string {
	var words []string
	for _, c := range forms[:min(len(forms), mostValues)] {
		f := c.Figure(figure.PerplexityRatio)
		text := r.cellTitle(c) + " " + verdict.FineSigned(f.Center()-1)
		if f.Interval != nil {
			text += fmt.Sprintf(" (%s to %s)", verdict.FineSigned(f.Interval.Lo-1), verdict.FineSigned(f.Interval.Hi-1))
		}
		words = append(words, text)
	}
	if more := len(forms) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("Perplexity against %s, 95%% CI: %s", r.cellTitle(of), strings.Join(words, ", "))
}
