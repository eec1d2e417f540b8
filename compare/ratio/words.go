package ratio

import (
	"fmt"
	"math"

	"llmparity/compare/explain"
	"llmparity/internal/stats"
)

// Say says what the statistics call the two medians, and no more: which is the larger is said where that is not
// chance. Repetitions of reused launches are not independent; a difference under minEffect, a share, does not matter.
func (x *Ratio) Say(a, b string, reused bool, minEffect float64) {
	few := fmt.Sprintf("n = %d and %d", x.Left.N, x.Right.N)
	sides := fmt.Sprintf("%s: %s for %s and %s for %s", x.Title, explain.WithUnit(x.Left.Median, x.Unit), a,
		explain.WithUnit(x.Right.Median, x.Unit), b)
	var words string
	switch x.Call {
	case stats.Differs, stats.TooSmall:
		words = sides + ", significantly different"
		if x.Ratio != nil {
			times, interval, left, right := larger(*x.Ratio, x.Interval, a, b)
			words = fmt.Sprintf("%s of %s is %s times that of %s%s", x.Title, left, times, right, interval)
		}
		if x.Call == stats.TooSmall {
			words += tooSmall(minEffect)
		}
		words += fmt.Sprintf(" (%s, %s)", pWords(x.P), few)
		if x.uneven {
			words += "; their launches vary differently, which makes this more likely by chance"
		}
	case stats.TooFewToSay:
		words = sides + fmt.Sprintf("; too few launches to compare (%s)", few)
		if reused {
			words = sides + fmt.Sprintf("; too few launches to compare (%d and %d): repetitions in one launch are not "+
				"independent", x.Left.N, x.Right.N)
		}
	default:
		x.Limit = x.limit()
		words = sides + fmt.Sprintf("; no significant difference (p = %.2g, %s%s)", x.P, few, x.Limit)
	}
	if x.Note != "" {
		words += " (" + x.Note + ")"
	}
	x.Verdict = words + NotAlike(x.Different)
}

// Unsettled tells that no difference was found, and that one of a tenth is not excluded either.
func Unsettled(call stats.Call, change *stats.Interval) bool {
	const most = 10 // percentage points
	return call == stats.Chance && (change == nil || change.Hi-change.Lo > most)
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

// AtLeast1 turns a ratio with its interval round where it is below 1.
func AtLeast1(ratio float64, i *stats.Interval) (float64, *stats.Interval) {
	switch {
	case ratio >= 1:
		return ratio, i
	case i == nil || i.Lo <= 0:
		return 1 / ratio, nil
	}
	return 1 / ratio, &stats.Interval{Lo: 1 / i.Hi, Hi: 1 / i.Lo, Confidence: i.Confidence}
}

// More is by how much the larger side is above the other, with its interval.
func (x *Ratio) More() (float64, *stats.Interval) {
	if i := x.DeltaInterval; x.Delta < 0 && i != nil {
		return -x.Delta, &stats.Interval{Lo: -i.Hi, Hi: -i.Lo, Confidence: i.Confidence}
	}
	return math.Abs(x.Delta), x.DeltaInterval
}

// Few says that the launches of a side are too few for an interval; empty where they are not.
func (x *Ratio) Few() string {
	a, b := min(x.Left.N, x.Right.N), max(x.Left.N, x.Right.N)
	switch {
	case a >= stats.MinRuns:
		return ""
	case a < b:
		return fmt.Sprintf("%d and %d launches: too few for an interval", x.Left.N, x.Right.N)
	}
	return fmt.Sprintf("%d launches: too few for an interval", a)
}

// larger writes a ratio of two sides as one of at least 1, with its interval.
func larger(ratio float64, i *stats.Interval, a, b string) (times, interval, left, right string) {
	if ratio < 1 {
		a, b = b, a
	}
	ratio, i = AtLeast1(ratio, i)
	return explain.Short(ratio), explain.CI(i, explain.Short), a, b
}

// NotAlike marks what would have been refused.
func NotAlike(why string) string {
	if why == "" {
		return ""
	}
	return " [not alike: " + why + "]"
}

// Say says what the statistics call a mean over cells.
func (m *Mean) Say(f *Family, minEffect float64) {
	of := fmt.Sprintf("%s over %d pairs of cells (%s)", m.Title, m.Cells, m.Group)
	if m.Left > 0 {
		of += fmt.Sprintf(", %d left out", m.Left)
	}
	words := ""
	switch m.Call {
	case stats.Differs, stats.TooSmall:
		times, interval, left, right := larger(m.Ratio, m.Interval, f.A, f.B)
		words = fmt.Sprintf("that of %s is %s times that of %s in the geometric mean%s", left, times, right, interval)
		if m.Call == stats.TooSmall {
			words += tooSmall(minEffect)
		}
		words += fmt.Sprintf(" (%s)", pWords(m.P))
	case stats.TooFewToSay:
		words = fmt.Sprintf("too few launches of %s and %s to compare", f.A, f.B)
	default:
		words = fmt.Sprintf("no significant difference between %s and %s (p = %.2g)", f.A, f.B, m.P)
	}
	m.Verdict = of + ": " + words + NotAlike(m.Different)
}

func tooSmall(minEffect float64) string {
	return fmt.Sprintf("; significant, but under %s%%", explain.Percent(minEffect))
}

// limit says what these launches could not have shown; empty where a change of a tenth would have been seen, nobody
// asked first, or the medians are farther apart.
func (x *Ratio) limit() string {
	vary := x.Sides.Vary()
	if !x.Headline || math.IsNaN(vary) || x.Percent != nil && math.Abs(*x.Percent) > 10 {
		return ""
	}
	needed, over := 0, "over "
	for _, e := range stats.TenthFound() {
		if needed = e.Launches; vary <= e.Vary {
			over = ""
			break
		}
	}
	if over == "" && min(x.Left.N, x.Right.N) >= needed {
		return ""
	}
	return fmt.Sprintf("; launches vary by %.0f%%, so a change of 10%% needs %s%d launches a side to be seen",
		100*vary, over, needed)
}
