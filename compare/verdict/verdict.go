// Package verdict is what a comparison of two cells concludes about one figure: whether the sides differ, which has
// more, which is better, by how much, and what forbids comparing them. A verdict is a value of codes and figures.
// words.go puts it into sentences, whose texts are in compare/explain/pairs.go.
//
// It does not decide what may be compared, which package compare does, and it computes no statistics, which package
// ratio does.
package verdict

import (
	"cmp"
	"fmt"
	"math"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// Outcome is the code of a verdict.
type Outcome string

// The outcomes.
const (
	Different     Outcome = "different"        // significant, and not below the minimum effect
	TooSmall      Outcome = "too-small"        // significant, but below the minimum effect
	NoDifference  Outcome = "no-difference"    // not significant, and the interval of the change is narrow
	TooNoisy      Outcome = "too-noisy"        // not significant, and the interval of the change is wide or missing
	TooFew        Outcome = "too-few-launches" // no launches of this number could be significant
	NotComparable Outcome = "not-comparable"
)

// Equal reports whether the sides were compared with enough launches and no difference matters.
func (o Outcome) Equal() bool { return o == TooSmall || o == NoDifference }

// None is the index of no side.
const None = -1

// Side is the figure of one of the two cells.
type Side struct {
	Name string
	ratio.Side
}

// Estimate is a number with its interval, which is nil where there is none.
type Estimate struct {
	Value    float64
	Interval *stats.Interval
}

// Reason is why two cells are not compared, or what to know when they are. Its code is one of explain's reasons. Its
// sentence is its text with a capital, unless that begins with a name.
type Reason struct{ Code, Text, Sentence string }

// ReasonOf fills in a reason.
func ReasonOf(of explain.Reason, args ...any) Reason {
	return Reason{of.Code, fmt.Sprintf(of.Text, args...), explain.Sentence(of.Text, args...)}
}

// Verdict is the conclusion about one figure of two cells.
type Verdict struct {
	Outcome
	Figure, Title, Unit string
	Sides               [2]Side // a change goes from the first to the second

	Larger int // index of the side with the larger median; None: the medians are equal, or not known to differ
	Better int // index of the better side, if the outcome is Different and the figure has a better direction

	Times  *Estimate // how many times as much the larger median is; nil: it has no meaning
	Amount Estimate  // by how much the larger median is above the other
	Change *Estimate // in percent of the first side's median

	AmountOnly bool    // a ratio would mislead: only Amount may be given
	AtLeast    float64 // MiB that the larger side uses more at least, if nothing else is known; 0: unknown

	P         float64
	Reused    bool    // the repetitions of a side ran in one launch
	Uneven    bool    // the launches of one side vary much more than those of the other
	MinEffect float64 // a share
	Shortage  *Shortage

	Forbids Reason // why the sides are not compared, if the outcome is NotComparable
	Note    string // how the figure is not quite the same on both sides
	Unlike  string // how the cells are not alike although they are compared
}

// Shortage is how many launches a change of 10% would need to be seen.
type Shortage struct {
	Vary     float64 // by how much launches vary, as a share
	Launches int
	Over     bool // even more than so many
}

// Of is the verdict of a ratio that package ratio has judged. a and b name its sides.
func Of(x *ratio.Ratio, a, b string, minEffect float64) Verdict {
	v := Verdict{Figure: x.Figure, Title: x.Title, Unit: x.Unit, Sides: [2]Side{{a, x.Left}, {b, x.Right}},
		Larger: None, Better: None, P: x.P, MinEffect: minEffect, Uneven: x.Uneven, Note: x.Note, Unlike: x.Different,
		Outcome: outcome(x.Call, x.PercentInterval), Amount: amount(x)}
	switch cmp.Compare(x.Left.Median, x.Right.Median) {
	case 1:
		v.Larger = 0
	case -1:
		v.Larger = 1
	}
	if x.Ratio != nil {
		v.Times = times(*x.Ratio, x.Interval)
	}
	if x.Percent != nil {
		v.Change = &Estimate{*x.Percent, x.PercentInterval}
	}
	switch {
	case v.Outcome == Different && v.Larger == None:
		v.Outcome = TooSmall
	case v.Outcome == Different:
		v.Better = better(v.Figure, v.Larger)
	case x.Call == stats.Chance:
		v.Shortage = shortage(x)
	}
	return v
}

// OfAmounts is the verdict of figures of which only amounts may be compared.
func OfAmounts(x *ratio.Ratio, a, b string, minEffect float64) Verdict {
	v := Of(x, a, b, minEffect)
	v.AmountOnly, v.Times, v.Shortage = true, nil, nil
	return v
}

// Forbidden is the verdict on figures that may not be compared.
func Forbidden(x, y evidence.Figure, a, b string, why Reason) Verdict {
	return Verdict{Outcome: NotComparable, Figure: x.Name, Title: x.Title, Unit: x.Unit, Larger: None, Better: None,
		Sides: [2]Side{{a, ratio.Side{Median: x.Center(), Interval: x.Interval, N: x.N}},
			{b, ratio.Side{Median: y.Center(), Interval: y.Interval, N: y.N}}}, Forbids: why}
}

// OfMean is the verdict of a mean over pairs of cells. Its sides have names alone.
func OfMean(m *ratio.Mean, a, b string, minEffect float64) Verdict {
	v := Verdict{Figure: m.Figure, Title: m.Title, Sides: [2]Side{{Name: a}, {Name: b}}, Larger: 0, Better: None,
		Times: times(m.Ratio, m.Interval), Change: &Estimate{m.Percent, m.PercentInterval}, P: m.P,
		MinEffect: minEffect, Unlike: m.Different, Outcome: outcome(m.Call, m.PercentInterval)}
	if m.Ratio < 1 {
		v.Larger = 1
	}
	if v.Outcome == Different {
		v.Better = better(v.Figure, v.Larger)
	}
	return v
}

// OfPerplexity is the verdict on the perplexities of a reference and of another form of a model: of is the ratio of the
// form's to the reference's, paired by windows.
func OfPerplexity(of evidence.Figure, reference, form string) Verdict {
	v := Verdict{Figure: of.Name, Title: of.Title, Sides: [2]Side{{Name: reference}, {Name: form}}, Larger: 1,
		Better: None, Outcome: TooFew, Times: times(of.Center(), of.Interval), Note: of.Note,
		Change: &Estimate{Value: 100 * (of.Center() - 1)}}
	if of.Center() < 1 {
		v.Larger = 0
	}
	i := of.Interval
	if i == nil {
		return v
	}
	v.Change.Interval = &stats.Interval{Lo: 100 * (i.Lo - 1), Hi: 100 * (i.Hi - 1), Confidence: i.Confidence}
	if v.Outcome = NoDifference; i.Lo > 1 || i.Hi < 1 {
		v.Outcome, v.Better = Different, 1-v.Larger
	}
	return v
}

// BetterSide is Better as the JSON has it.
func (v *Verdict) BetterSide() ratio.Letter {
	switch v.Better {
	case 0:
		return ratio.SideA
	case 1:
		return ratio.SideB
	}
	return ""
}

// outcome is that of a call. Without a significant difference it depends on whether one of a tenth is ruled out.
func outcome(call stats.Call, change *stats.Interval) Outcome {
	const wide = 10 // percentage points
	switch call {
	case stats.Differs:
		return Different
	case stats.TooSmall:
		return TooSmall
	case stats.TooFewToSay:
		return TooFew
	}
	if change == nil || change.Hi-change.Lo > wide {
		return TooNoisy
	}
	return NoDifference
}

// better is the better side of a figure; None if no direction is better.
func better(name string, larger int) int {
	row := figure.Of(name)
	switch {
	case row == nil || row.Better == figure.Neither:
		return None
	case row.Better == figure.Higher:
		return larger
	}
	return 1 - larger
}

// times turns a ratio below 1 round, with its interval.
func times(of float64, i *stats.Interval) *Estimate {
	switch {
	case of >= 1:
		return &Estimate{of, i}
	case i == nil || i.Lo <= 0:
		return &Estimate{Value: 1 / of}
	}
	return &Estimate{1 / of, &stats.Interval{Lo: 1 / i.Hi, Hi: 1 / i.Lo, Confidence: i.Confidence}}
}

// amount is by how much the larger side is above the other.
func amount(x *ratio.Ratio) Estimate {
	if i := x.DeltaInterval; x.Delta < 0 && i != nil {
		return Estimate{-x.Delta, &stats.Interval{Lo: -i.Hi, Hi: -i.Lo, Confidence: i.Confidence}}
	}
	return Estimate{math.Abs(x.Delta), x.DeltaInterval}
}

// shortage is nil where a change of 10% would have been seen, the figure is not a headline, or the medians are farther
// apart than that.
func shortage(x *ratio.Ratio) *Shortage {
	vary := x.Sides.Vary()
	if !x.Headline || math.IsNaN(vary) || x.Percent != nil && math.Abs(*x.Percent) > 10 {
		return nil
	}
	s := Shortage{Vary: vary, Over: true}
	for _, e := range stats.TenthFound() {
		if s.Launches = e.Launches; vary <= e.Vary {
			s.Over = false
			break
		}
	}
	n := min(x.Left.N, x.Right.N)
	if !s.Over && n >= s.Launches {
		return nil
	}
	s.Launches = max(s.Launches, n)
	return &s
}
