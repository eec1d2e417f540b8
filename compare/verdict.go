package compare

import (
	"fmt"
	"strconv"
)

// words say what the statistics call the two medians, and no more: which is the larger is said where that is not chance.
func (x *Ratio) words(a, b *Cell, t test, o Options) string {
	few := fmt.Sprintf("n = %d and %d", t.n1, t.n2)
	sides := fmt.Sprintf("%s: %s for %s and %s for %s", x.Title, withUnit(x.Left.Median, x.Unit), a.Label, withUnit(x.Right.Median, x.Unit), b.Label)
	var words string
	switch x.Call {
	case Differs, TooSmall:
		words = x.apart(a, b, sides)
		if x.Call == TooSmall {
			words += fmt.Sprintf(", which is real but under %s %%", percent(o.MinEffect))
		}
		words += fmt.Sprintf(" (p = %.2g, %s)", x.P, few)
	case TooFewToSay:
		words = sides + fmt.Sprintf(", but %s are too few runs to tell that from chance", few)
		if a.Spec.Reused {
			words = sides + fmt.Sprintf(", but of %d and %d launches that can't be told from chance: repetitions in one launch share its luck",
				t.n1, t.n2)
		}
	default:
		words = sides + fmt.Sprintf(", which can't be told from chance (p = %.2g, %s)", x.P, few)
	}
	if x.Note != "" {
		words += " (" + x.Note + ")"
	}
	return words + notAlike(x.Different)
}

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
		words := fmt.Sprintf("%s: that of %s is %s times that of %s in the geometric mean%s", of, left, short(ratio), right, between(interval))
		if m.Call == TooSmall {
			words += fmt.Sprintf(", which is real but under %s %%", percent(o.MinEffect))
		}
		return words + fmt.Sprintf(" (p = %.2g)", m.P) + notAlike(m.Different)
	case TooFewToSay:
		return fmt.Sprintf("%s: %s and %s have too few runs to tell them from chance", of, f.A, f.B) + notAlike(m.Different)
	}
	return fmt.Sprintf("%s: %s and %s can't be told from chance (p = %.2g)", of, f.A, f.B, m.P) + notAlike(m.Different)
}
