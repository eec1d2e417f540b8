package verdict

import (
	"fmt"
	"math"

	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/stats"
)

// Names are the names of the larger side and of the other one.
func (v *Verdict) Names() (larger, other string) {
	if v.Larger == 1 {
		return v.Sides[1].Name, v.Sides[0].Name
	}
	return v.Sides[0].Name, v.Sides[1].Name
}

// Sentence has both medians and the test. It names a larger side only if that is no chance.
func (v *Verdict) Sentence() string {
	a, b := &v.Sides[0], &v.Sides[1]
	medians := fmt.Sprintf(explain.Medians, v.Title, explain.WithUnit(a.Median, v.Unit), a.Name,
		explain.WithUnit(b.Median, v.Unit), b.Name)
	n := fmt.Sprintf(explain.LaunchesOfSides, a.N, b.N)
	text := ""
	switch v.Outcome {
	case Different, TooSmall:
		text = medians + explain.IsSignificant
		if v.Times != nil {
			larger, other := v.Names()
			text = fmt.Sprintf(explain.TimesThat, v.Title, larger, explain.Short(v.Times.Value), other,
				explain.CI(v.Times.Interval, explain.Short))
		}
		text += v.underMinEffect() + fmt.Sprintf(explain.TestAndLaunches, chance(v.P), n)
		if v.Uneven {
			text += explain.VaryDifferently
		}
	case TooFew:
		text = medians + fmt.Sprintf(explain.TooFewToCompare, n)
		if v.Reused {
			text = medians + fmt.Sprintf(explain.TooFewReused, a.N, b.N)
		}
	default:
		text = medians + fmt.Sprintf(explain.NotSignificant, v.P, n, v.ShortageText())
	}
	if v.Note != "" {
		text += fmt.Sprintf(explain.InParentheses, v.Note)
	}
	return text + v.unlike()
}

// SentenceOver is the sentence of a mean.
func (v *Verdict) SentenceOver(m *ratio.Mean) string {
	over := fmt.Sprintf(explain.OverPairs, m.Title, m.Cells, m.Group)
	if m.Left > 0 {
		over += fmt.Sprintf(explain.LeftOut, m.Left)
	}
	a, b := v.Sides[0].Name, v.Sides[1].Name
	text := ""
	switch v.Outcome {
	case Different, TooSmall:
		larger, other := v.Names()
		text = fmt.Sprintf(explain.MeanTimesThat, larger, explain.Short(v.Times.Value), other,
			explain.CI(v.Times.Interval, explain.Short))
		text += v.underMinEffect() + fmt.Sprintf(explain.InParentheses, chance(v.P))
	case TooFew:
		text = fmt.Sprintf(explain.MeanTooFew, a, b)
	default:
		text = fmt.Sprintf(explain.MeanNotSignificant, a, b, v.P)
	}
	return over + ": " + text + v.unlike()
}

func (v *Verdict) underMinEffect() string {
	if v.Outcome != TooSmall {
		return ""
	}
	return fmt.Sprintf(explain.UnderMinEffect, explain.Percent(v.MinEffect))
}

// unlike marks what is compared on request alone.
func (v *Verdict) unlike() string {
	if v.Unlike == "" {
		return ""
	}
	return fmt.Sprintf(explain.MarkedUnlike, v.Unlike)
}

// chance writes a p. It is never 0, which rounding would make of a small one.
func chance(p float64) string {
	const least = 1e-9 // p are rounded to nine digits
	if p < least {
		return fmt.Sprintf(explain.PBelow, least)
	}
	return fmt.Sprintf(explain.PIs, p)
}

// ShortageText says which change the launches could not have shown; empty if they could have shown one of 10%.
func (v *Verdict) ShortageText() string {
	if v.Shortage == nil {
		return ""
	}
	over := ""
	if v.Shortage.Over {
		over = explain.Over
	}
	return fmt.Sprintf(explain.NeedsLaunches, 100*v.Shortage.Vary, over, v.Shortage.Launches)
}

// Called is the outcome in two words.
func (v *Verdict) Called() string {
	if v.Outcome == TooSmall {
		return fmt.Sprintf(v.Outcome.words().Called, explain.Percent(v.MinEffect))
	}
	return v.Outcome.words().Called
}

// Headline says in a few words who has more, or why that is not known. Of a cell and its reference cell, the second
// side is the subject.
func (v *Verdict) Headline(of *explain.Phrases, referenced bool) string {
	switch v.Outcome {
	case Different:
		larger, other := v.Names()
		if v.lessens(referenced) {
			return other + " " + fmt.Sprintf(of.Less, explain.Share(-v.Change.Value/100), larger)
		}
		return larger + " " + v.more(of, other)
	case NotComparable:
		if v.AtLeast > 0 {
			larger, other := v.Names()
			return fmt.Sprintf(explain.AtLeastMore, larger, explain.Amount(v.AtLeast), other)
		}
	case NoDifference, TooNoisy, TooSmall:
		if most, known := v.Most(); known {
			return fmt.Sprintf(explain.NoneAbove, Whole(most))
		}
	}
	return v.Outcome.Headline()
}

// lessens reports whether a headline says by how much the second side has less.
func (v *Verdict) lessens(referenced bool) bool {
	return referenced && v.Outcome == Different && v.Larger == 0 && !v.AmountOnly && v.Change != nil
}

// Most is the largest change that the launches cannot rule out, as a share; false: unknown.
func (v *Verdict) Most() (share float64, known bool) {
	if v.Change == nil || v.Change.Interval == nil {
		return 0, false
	}
	i := v.Change.Interval
	return max(math.Abs(i.Lo), math.Abs(i.Hi)) / 100, true
}

// Whole is a share in percent, rounded up, as a bound is.
func Whole(share float64) string {
	if share < 0.01 {
		return fmt.Sprintf("%.1f%%", max(0.1, math.Ceil(1000*share-1e-9)/10))
	}
	return fmt.Sprintf("%.0f%%", math.Ceil(100*share-1e-9))
}

// Ratio says how many times as much the larger side has, with its interval; empty if that is not known.
func (v *Verdict) Ratio(of *explain.Phrases) string {
	if v.Outcome != Different || v.AmountOnly || v.Times == nil {
		return ""
	}
	larger, other := v.Names()
	return fmt.Sprintf(of.Ratio, larger, explain.Amount(v.Times.Value), other,
		v.interval(v.Times.Interval, explain.Amount))
}

// CI is the interval of the headline, or why there is none; empty if it needs none.
func (v *Verdict) CI(referenced bool) string {
	switch {
	case v.lessens(referenced):
		i := v.Change.Interval
		if i != nil {
			i = &stats.Interval{Lo: -i.Hi / 100, Hi: -i.Lo / 100, Confidence: i.Confidence}
		}
		return v.interval(i, explain.Share)
	case v.Outcome == Different && v.AmountOnly:
		return v.interval(v.Amount.Interval, explain.Amount)
	case v.Outcome == Different && v.Times != nil && v.Times.Value < 2:
		return v.interval(v.Times.Interval, func(t float64) string { return explain.Share(t - 1) })
	case v.Outcome == Different && v.Times != nil:
		return v.interval(v.Times.Interval, explain.Amount)
	case (v.Outcome == NoDifference || v.Outcome == TooNoisy) && v.Change != nil && v.Change.Interval != nil:
		i := v.Change.Interval
		return fmt.Sprintf(explain.ChangeFromTo, v.Sides[0].Name, v.Sides[1].Name, Signed(i.Lo/100), Signed(i.Hi/100))
	}
	return ""
}

func (o Outcome) words() explain.Outcome { return explain.Outcomes[string(o)] }

// Headline is the outcome where no side is named.
func (o Outcome) Headline() string { return o.words().Headline }

// Pairs is the outcome behind a number of pairs.
func (o Outcome) Pairs() string { return o.words().Pairs }

// more says by how much the larger side has more than the other.
func (v *Verdict) more(of *explain.Phrases, other string) string {
	switch {
	case v.AmountOnly:
		return fmt.Sprintf(explain.MoreMiB, explain.Amount(v.Amount.Value), other)
	case v.Times == nil:
		return fmt.Sprintf(explain.MoreThan, of.More, other)
	}
	if v.Times.Value < 2 {
		return fmt.Sprintf(of.Share, explain.Share(v.Times.Value-1), other)
	}
	return fmt.Sprintf(of.Times, explain.Amount(v.Times.Value), other)
}

// interval writes an interval in parentheses, or that there are too few launches for one.
func (v *Verdict) interval(i *stats.Interval, write func(float64) string) string {
	least, most := min(v.Sides[0].N, v.Sides[1].N), max(v.Sides[0].N, v.Sides[1].N)
	switch {
	case i != nil || least >= stats.MinRuns:
		return explain.CI(i, write)
	case least < most:
		return fmt.Sprintf(explain.TooFewOfSides, v.Sides[0].N, v.Sides[1].N)
	}
	return fmt.Sprintf(explain.TooFewForInterval, least)
}

// InTable is the change from the first side to the second with its interval, for two columns or lines of a table. Where
// no difference is seen, it is the change that the launches cannot rule out.
func (v *Verdict) InTable() (change, interval string) {
	switch most, known := v.Most(); {
	case v.Outcome == NotComparable, v.Outcome == TooFew:
		return "–", v.Called()
	case v.Outcome == Different && v.AmountOnly:
		return v.signed(v.Amount, explain.Amount)
	case v.Outcome == Different && v.Change == nil:
		return v.Called(), ""
	case v.Outcome == Different && v.Larger == 1 && v.Times != nil && v.Times.Value >= 2:
		change, interval = Ends(v.Times, explain.Amount)
		return fmt.Sprintf(explain.TableTimes, change), interval
	case v.Outcome == Different:
		return Ends(v.Change, signedPercent(v.Change))
	case known:
		return "~", fmt.Sprintf(explain.TableBelow, Whole(most))
	}
	return "~", v.Called()
}

// signedPercent writes the ends of an interval with so many decimals that they differ, two at most.
func signedPercent(of *Estimate) func(float64) string {
	write := func(percent float64) string { return Signed(percent / 100) }
	for digits := 1; digits <= 2 && of.Interval != nil && write(of.Interval.Lo) == write(of.Interval.Hi); digits++ {
		write = func(percent float64) string { return fmt.Sprintf("%+.*f%%", digits, percent) }
	}
	return write
}

// Ends writes an estimate, and the ends of its interval, or that there is none.
func Ends(e *Estimate, write func(float64) string) (value, interval string) {
	i := e.Interval
	if i == nil {
		return write(e.Value), explain.TableNoCI
	}
	interval = fmt.Sprintf(explain.TableEnds, write(i.Lo), write(i.Hi))
	if i.Confidence > stats.Confidence {
		interval += fmt.Sprintf(explain.TableCI, 100*i.Confidence)
	}
	return write(e.Value), interval
}

// signed is an amount of MiB from the first side to the second.
func (v *Verdict) signed(e Estimate, write func(float64) string) (value, interval string) {
	if v.Larger == 0 {
		if i := e.Interval; i != nil {
			e.Interval = &stats.Interval{Lo: -i.Hi, Hi: -i.Lo, Confidence: i.Confidence}
		}
		e.Value = -e.Value
	}
	value, interval = Ends(&e, write)
	if e.Value > 0 {
		value = "+" + value
	}
	return value + " MiB", interval
}

// Perplexity says by how much the perplexity of a form differs from that of the reference.
func (v *Verdict) Perplexity() string {
	reference, form, i := v.Sides[0].Name, v.Sides[1].Name, v.Change.Interval
	switch v.Outcome {
	case TooFew:
		return fmt.Sprintf(explain.PerplexityAlone, form, Fine(1+v.Change.Value/100), reference, v.Note)
	case NoDifference:
		return v.Outcome.Headline() + fmt.Sprintf(explain.PerplexityChange, FineSigned(i.Lo/100), FineSigned(i.Hi/100),
			reference, form)
	}
	format, between := explain.PerplexityHigher, *i
	if v.Change.Value < 0 {
		format, between.Lo, between.Hi = explain.PerplexityLower, -i.Hi, -i.Lo
	}
	return fmt.Sprintf(format, form, Fine(math.Abs(v.Change.Value)/100), reference,
		explain.CI(&between, func(percent float64) string { return Fine(percent / 100) }))
}

// PerplexityHeadline is the change of perplexity in a few words, and the rest of what there is to say of it.
func (v *Verdict) PerplexityHeadline() (headline, rest string) {
	reference, form, i := v.Sides[0].Name, v.Sides[1].Name, v.Change.Interval
	is := "higher"
	switch {
	case v.Outcome == TooFew:
		return explain.PerplexityFew, v.Perplexity()
	case v.Outcome == NoDifference:
		return v.Outcome.Headline(), v.Perplexity()
	case v.Change.Value < 0:
		is = "lower"
	}
	return fmt.Sprintf(explain.PerplexityOf, form, Fine(math.Abs(v.Change.Value)/100), is),
		fmt.Sprintf(explain.PerplexityFrom, reference, FineSigned(v.Change.Value/100), FineSigned(i.Lo/100),
			FineSigned(i.Hi/100))
}

// Fine is a percentage with two digits: forms of a model often differ by less than one percent.
func Fine(share float64) string {
	if math.Abs(share) < 0.00005 {
		share = 0 // not -0
	}
	return fmt.Sprintf("%.2f%%", 100*share)
}

// FineSigned is Fine with its sign.
func FineSigned(share float64) string {
	if share < 0.00005 {
		return Fine(share)
	}
	return "+" + Fine(share)
}

// Signed is a change in percent, with its sign.
func Signed(share float64) string {
	if share < 0.0005 {
		return explain.Share(share)
	}
	return "+" + explain.Share(share)
}
