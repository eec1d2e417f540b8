package compare

import (
	"fmt"
	"math"

	"llmparity/compare/explain"
	"llmparity/compare/stats"
)

// words say what the statistics call the two medians, and no more: which is the larger is said where that is not
// chance.
func (x *Ratio) words(a, b *Cell, t stats.Test, s stats.Sides, o Options) string {
	few := fmt.Sprintf("n = %d and %d", t.Left, t.Right)
	sides := fmt.Sprintf("%s: %s for %s and %s for %s", x.Title, explain.WithUnit(x.Left.Median, x.Unit), a.Label,
		explain.WithUnit(x.Right.Median, x.Unit), b.Label)
	var words string
	switch x.Call {
	case stats.Differs, stats.TooSmall:
		words = x.apart(a, b, sides)
		if x.Call == stats.TooSmall {
			words += fmt.Sprintf(", which is real but under %s %%", explain.Percent(o.MinEffect))
		}
		words += fmt.Sprintf(" (%s, %s)", pWords(x.P), few)
		if x.uneven {
			words += "; their launches do not vary alike, which alone makes such a call likelier"
		}
	case stats.TooFewToSay:
		words = sides + fmt.Sprintf(", but %s are too few runs to tell that from chance", few)
		if a.Spec.Reused {
			words = sides + fmt.Sprintf(
				", but of %d and %d launches that can't be told from chance: repetitions in one launch share its luck",
				t.Left, t.Right)
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
	return fmt.Sprintf(
		"%s of %s is %s times that of %s%s",
		x.Title,
		left,
		explain.Short(ratio),
		right,
		between(interval),
	)
}

func inverse(i *stats.Interval) *stats.Interval {
	if i == nil || i.Lo <= 0 {
		return nil
	}
	return &stats.Interval{Lo: 1 / i.Hi, Hi: 1 / i.Lo, Confidence: i.Confidence}
}

func between(i *stats.Interval) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf(" (95 %% interval: %s to %s)", explain.Short(i.Lo), explain.Short(i.Hi))
}

// notAlike marks what would have been refused.
func notAlike(why string) string {
	if why == "" {
		return ""
	}
	return " [not alike: " + why + "]"
}

func (m *Mean) words(f Family, o Options) string {
	of := fmt.Sprintf("%s over %d pairs of cells (%s)", m.Title, m.Cells, m.Group)
	if m.Left > 0 {
		of += fmt.Sprintf(", %d left out", m.Left)
	}
	switch m.Call {
	case stats.Differs, stats.TooSmall:
		ratio, interval, left, right := m.Ratio, m.Interval, f.A, f.B
		if ratio < 1 {
			ratio, interval, left, right = 1/ratio, inverse(interval), right, left
		}
		words := fmt.Sprintf(
			"%s: that of %s is %s times that of %s in the geometric mean%s",
			of,
			left,
			explain.Short(ratio),
			right,
			between(interval),
		)
		if m.Call == stats.TooSmall {
			words += fmt.Sprintf(", which is real but under %s %%", explain.Percent(o.MinEffect))
		}
		return words + fmt.Sprintf(" (%s)", pWords(m.P)) + notAlike(m.Different)
	case stats.TooFewToSay:
		return fmt.Sprintf("%s: %s and %s have too few runs to tell them from chance", of, f.A, f.B) +
			notAlike(m.Different)
	}
	return fmt.Sprintf("%s: %s and %s can't be told from chance (p = %.2g)", of, f.A, f.B, m.P) + notAlike(m.Different)
}

// limit says what these launches could not have shown; empty where a change of a tenth would have been seen, or nobody
// asked first.
func (x *Ratio) limit(s stats.Sides) string {
	vary := s.Vary()
	if !x.headline || math.IsNaN(vary) {
		return ""
	}
	needed, over := 0, ""
	for _, e := range stats.TenthFound() {
		if needed = e.Launches; vary <= e.Vary {
			break
		}
	}
	if last := stats.TenthFound()[len(stats.TenthFound())-1]; vary > last.Vary {
		over = "over "
	}
	if over == "" && min(len(s.A), len(s.B)) >= needed {
		return ""
	}
	return fmt.Sprintf("; launches vary by %.0f %%, at which a change of a tenth takes %s%d a side to be seen",
		100*vary, over, needed)
}

// shortly is what is called of a ratio of A over B, in as few words as there are several pairs.
func shortly(title string, call stats.Call, ratio *float64) string {
	switch {
	case call == stats.Differs && ratio == nil:
		return title + " different"
	case call == stats.Differs:
		return fmt.Sprintf("%s %s times", title, explain.Short(*ratio))
	case call == stats.TooSmall:
		return title + " all but the same"
	case call == stats.TooFewToSay:
		return title + " of too few runs"
	}
	return title + " not told apart"
}
