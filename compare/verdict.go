package compare

import (
	"fmt"
	"math"
	"strconv"
)

// words say what the statistics call the two medians, and no more: which is the larger is said where that is not
// chance.
func (x *Ratio) words(a, b *Cell, t test, s sides, o Options) string {
	few := fmt.Sprintf("n = %d and %d", t.n1, t.n2)
	sides := fmt.Sprintf("%s: %s for %s and %s for %s", x.Title, withUnit(x.Left.Median, x.Unit), a.Label,
		withUnit(x.Right.Median, x.Unit), b.Label)
	var words string
	switch x.Call {
	case Differs, TooSmall:
		words = x.apart(a, b, sides)
		if x.Call == TooSmall {
			words += fmt.Sprintf(", which is real but under %s %%", percent(o.MinEffect))
		}
		words += fmt.Sprintf(" (%s, %s)", pWords(x.P), few)
		if x.uneven {
			words += "; their launches do not vary alike, which alone makes such a call likelier"
		}
	case TooFewToSay:
		words = sides + fmt.Sprintf(", but %s are too few runs to tell that from chance", few)
		if a.Spec.Reused {
			words = sides + fmt.Sprintf(
				", but of %d and %d launches that can't be told from chance: repetitions in one launch share its luck",
				t.n1, t.n2)
		}
	default:
		words = sides + fmt.Sprintf(", which can't be told from chance (p = %.2g, %s%s)", x.P, few, x.limit(s))
	}
	if x.Note != "" {
		words += " (" + x.Note + ")"
	}
	return words + notAlike(x.Different)
}

// pWords writes a p that is at most alpha. It is never nothing, as what is rounded may be.
func pWords(p float64) string {
	if p < leastP {
		return fmt.Sprintf("p < %.0e", leastP)
	}
	return fmt.Sprintf("p = %.2g", p)
}

// leastP is the smallest p that is told: p are rounded to nine digits behind the point.
const leastP = 1e-9

// apart is said of a difference: how many times as much the larger is.
func (x *Ratio) apart(a, b *Cell, sides string) string {
	if x.Ratio == nil {
		return sides + ", which is different"
	}
	ratio, interval, left, right := *x.Ratio, x.Interval, a.Label, b.Label
	if ratio < 1 {
		ratio, interval, left, right = 1/ratio, inverse(interval), right, left
	}
	return fmt.Sprintf("%s of %s is %s times that of %s%s", x.Title, left, short(ratio), right, between(interval))
}

func inverse(i *Interval) *Interval {
	if i == nil || i.Lo <= 0 {
		return nil
	}
	return &Interval{Lo: 1 / i.Hi, Hi: 1 / i.Lo, Confidence: i.Confidence}
}

func between(i *Interval) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf(" (95 %% interval: %s to %s)", short(i.Lo), short(i.Hi))
}

// notAlike marks what would have been refused.
func notAlike(why string) string {
	if why == "" {
		return ""
	}
	return " [not alike: " + why + "]"
}

// percent writes a share in full.
func percent(share float64) string { return strconv.FormatFloat(round(100*share, 6), 'g', -1, 64) }

func withUnit(v float64, unit string) string {
	if unit == "" {
		return short(v)
	}
	return short(v) + " " + unit
}

func (m *Mean) words(f Family, o Options) string {
	of := fmt.Sprintf("%s over %d pairs of cells (%s)", m.Title, m.Cells, m.Group)
	if m.Left > 0 {
		of += fmt.Sprintf(", %d left out", m.Left)
	}
	switch m.Call {
	case Differs, TooSmall:
		ratio, interval, left, right := m.Ratio, m.Interval, f.A, f.B
		if ratio < 1 {
			ratio, interval, left, right = 1/ratio, inverse(interval), right, left
		}
		words := fmt.Sprintf("%s: that of %s is %s times that of %s in the geometric mean%s", of, left, short(ratio),
			right, between(interval))
		if m.Call == TooSmall {
			words += fmt.Sprintf(", which is real but under %s %%", percent(o.MinEffect))
		}
		return words + fmt.Sprintf(" (%s)", pWords(m.P)) + notAlike(m.Different)
	case TooFewToSay:
		return fmt.Sprintf("%s: %s and %s have too few runs to tell them from chance", of, f.A, f.B) +
			notAlike(m.Different)
	}
	return fmt.Sprintf("%s: %s and %s can't be told from chance (p = %.2g)", of, f.A, f.B, m.P) + notAlike(m.Different)
}

// tenth is by what share launches may vary, so many a side, for a change of a tenth in a headline to be called
// different nine times in ten: of a family of three headlines and three other figures, in simulations with bell curves
// and with long tails, whichever is the worse. Of six launches which vary by 5 % it is found every other time, whatever
// the correction: the test alone would find it eight times in ten.
func tenth() []enough {
	return []enough{{6, 0.031}, {7, 0.037}, {8, 0.043}, {9, 0.046}, {10, 0.05}, {12, 0.057}, {15, 0.064}, {20, 0.076},
		{30, 0.094}}
}

type enough struct {
	launches int
	vary     float64
}

// limit says what these launches could not have shown; empty where a change of a tenth would have been seen, or nobody
// asked first.
func (x *Ratio) limit(s sides) string {
	vary := s.vary()
	if !x.headline || math.IsNaN(vary) {
		return ""
	}
	needed, over := 0, ""
	for _, e := range tenth() {
		if needed = e.launches; vary <= e.vary {
			break
		}
	}
	if last := tenth()[len(tenth())-1]; vary > last.vary {
		over = "over "
	}
	if over == "" && min(len(s.a), len(s.b)) >= needed {
		return ""
	}
	return fmt.Sprintf("; launches vary by %.0f %%, at which a change of a tenth takes %s%d a side to be seen",
		100*vary, over, needed)
}

// vary is the standard deviation of both sides' launches as a share, each side's about its own mean; NaN where that
// makes no sense.
func (s sides) vary() float64 {
	if !s.positive || len(s.a)+len(s.b) < 3 {
		return math.NaN()
	}
	squares := 0.0
	for _, values := range [][]float64{s.a, s.b} {
		mean := 0.0
		for _, v := range values {
			mean += math.Log(v) / float64(len(values))
		}
		for _, v := range values {
			squares += (math.Log(v) - mean) * (math.Log(v) - mean)
		}
	}
	return math.Sqrt(squares / float64(len(s.a)+len(s.b)-2))
}

// shortly is what is called of a ratio of A over B, in as few words as there are several pairs.
func shortly(title string, call Call, ratio *float64) string {
	switch {
	case call == Differs && ratio == nil:
		return title + " different"
	case call == Differs:
		return fmt.Sprintf("%s %s times", title, short(*ratio))
	case call == TooSmall:
		return title + " all but the same"
	case call == TooFewToSay:
		return title + " of too few runs"
	}
	return title + " not told apart"
}
