// Package ratio compares a figure of two sides: their ratio, the change from one to the other, the intervals of both,
// and the tests of a family of questions.
//
// It does not know whether two sides may be compared, which package compare decides, or why they differ. Callers pass
// the figures and their values by launch.
package ratio

import (
	"fmt"
	"math"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/stats"
)

// Ratio compares a figure of cell A with that of cell B.
type Ratio struct {
	Figure string `json:"figure"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	Left   Side   `json:"left"`  // A's
	Right  Side   `json:"right"` // B's
	// Ratio is A's median over B's; nil unless both are above zero. Its interval is a percentile bootstrap over
	// launches; nil with too few launches, or a value that is not above zero.
	Ratio    *float64        `json:"ratio"`
	Interval *stats.Interval `json:"ratio_interval"`
	// Delta is B's median minus A's. Percent is Delta in percent of A's median; nil unless that is above zero.
	Delta           float64         `json:"delta"`
	DeltaInterval   *stats.Interval `json:"delta_interval"`
	Percent         *float64        `json:"delta_percent"`
	PercentInterval *stats.Interval `json:"delta_percent_interval"`
	IntervalNote    string          `json:"interval_note,omitempty"` // why there is no interval
	// Note names differences of the two cells that affect the figure and allow comparing it.
	Note string `json:"note,omitempty"`
	// Different names differences that forbid a ratio, which --allow-different gives nevertheless.
	Different string `json:"different,omitempty"`
	Judgement        // Mann-Whitney's over launches
	Verdict   string `json:"verdict"`
	// Noise is the change from A to A measured once more; nil: that was not measured.
	Noise *Noise `json:"noise,omitempty"`
	// Warnings are those of the figure in either cell.
	Warnings []evidence.Warning `json:"warnings,omitempty"`

	Headline bool        `json:"-"` // a figure of the answer
	Sides    stats.Sides `json:"-"`
	Uneven   bool        `json:"-"` // the launches of one side vary much more than those of the other
}

// Noise is how much a figure of one cell changed although nothing changed but the time.
type Noise struct {
	Again    Side            `json:"again"` // the figure measured once more
	Percent  float64         `json:"delta_percent"`
	Interval *stats.Interval `json:"delta_percent_interval"`
	Note     string          `json:"interval_note,omitempty"` // why there is no interval
}

// Side is a figure of one of two cells.
type Side struct {
	Median   float64         `json:"median"`
	Interval *stats.Interval `json:"interval"`
	N        int             `json:"launches"`
}

// Family is the tests that answer one question: does B differ from A? There is one for each figure in each pair of
// cells, and one for each mean over pairs. The correction keeps the chance that equal sides show any difference in the
// family at alpha.
type Family struct {
	A     string   `json:"a"` // names of the two sides: runs, engines of one run, or values of axes
	B     string   `json:"b"`
	Axes  []string `json:"axes,omitempty"`        // along which cells are compared with their reference cells
	Runs  bool     `json:"of_runs,omitempty"`     // A and B are runs
	First bool     `json:"of_baseline,omitempty"` // A is the first of the runs
	Tests int      `json:"tests"`                 // distinct tests: figures that order the launches alike count as one
	Means []Mean   `json:"means"`
	// Correction is how p values are corrected for the number of tests: by Holm up to five pairs of cells, else by
	// Benjamini and Hochberg.
	Correction stats.Correction `json:"correction"`
	Key        string           `json:"-"`
}

// Mean is the geometric mean of a figure's ratios over several pairs of cells.
type Mean struct {
	Figure string   `json:"figure"`
	Title  string   `json:"title"`
	Group  string   `json:"group"` // what the pairs have in common
	A      string   `json:"a"`     // names of the two sides
	B      string   `json:"b"`
	Over   []string `json:"over"`  // what is averaged over: fields of cells, and how many values each has
	Cells  int      `json:"cells"` // pairs
	Left   int      `json:"left_out,omitempty"`
	// Ratio is A's over B's.
	Ratio           float64         `json:"ratio"`
	Interval        *stats.Interval `json:"ratio_interval"`
	Percent         float64         `json:"delta_percent"` // from A to B
	PercentInterval *stats.Interval `json:"delta_percent_interval"`
	Note            string          `json:"interval_note,omitempty"`
	Different       string          `json:"different,omitempty"` // in which way the sides are not alike
	Judgement
	Verdict string `json:"verdict"`

	Sides    []stats.Sides `json:"-"` // of each pair
	Headline bool          `json:"-"` // of a figure of the answer
}

// Letter is a side.
type Letter string

// The sides.
const (
	SideA Letter = "a"
	SideB Letter = "b"
)

// Judgement is the result of a test.
type Judgement struct {
	Family int `json:"family"` // index into Families
	// Raw is the p of the test alone; P is corrected for the number of tests in the family, as Family.Correction says.
	Raw         float64    `json:"p"`
	P           float64    `json:"p_corrected"`
	Significant bool       `json:"significant"` // P is at most alpha
	Call        stats.Call `json:"call"`
	// Better is the better side. It is empty if no difference was found, or no direction of the figure is better.
	Better Letter `json:"better,omitempty"`

	Test  stats.Test `json:"-"`
	level float64    // of the test: what the correction leaves it of alpha
}

// Judge corrects the tests of a family and sets their calls. It returns how many distinct tests there are.
func Judge(of []*Judgement, by stats.Correction) int {
	tests := make([]stats.Test, len(of))
	for i, j := range of {
		tests[i] = j.Test
	}
	corrected := by.Correct(tests, func(t stats.Test) float64 { return t.P })
	best := by.Correct(tests, func(t stats.Test) float64 { return t.Least })
	for i, j := range of {
		j.Raw, j.P = stats.Round(tests[i].P, 9), stats.Round(corrected[i], 9)
		j.Significant = corrected[i] <= stats.Alpha
		j.Call, j.level = stats.CallOf(j.Significant, best[i]), stats.Alpha*tests[i].P/corrected[i]
	}
	return stats.Distinct(tests)
}

// LaunchesDisagree is the note of a missing interval if the launches differ significantly and the medians do not.
const LaunchesDisagree = "none: the launches differ more than the medians"

// contradicts reports whether an interval of a change contradicts the corrected test.
func (j *Judgement) contradicts(i *stats.Interval) bool {
	return i != nil && j.Significant == (i.Lo <= 0 && i.Hi >= 0)
}

// missing is the note if the test has no interval either.
func (j *Judgement) missing() string {
	if j.Significant {
		return LaunchesDisagree
	}
	return evidence.TooFewRuns
}

// Agree replaces intervals that contradict the corrected test by those of that test, at the level that the correction
// leaves. Only reports use the result.
func (x *Ratio) Agree() {
	if x.contradicts(x.PercentInterval) {
		if x.Interval, x.PercentInterval = stats.TestedRatio(x.level, *x.Ratio, x.Sides); x.Interval == nil {
			x.IntervalNote = x.missing()
		}
	}
	if x.contradicts(x.DeltaInterval) {
		x.DeltaInterval = stats.TestedChange(x.level, x.Delta, x.Sides)
	}
}

// Agree does the same for a mean.
func (m *Mean) Agree() {
	if m.contradicts(m.PercentInterval) {
		if m.Interval, m.PercentInterval = stats.TestedRatio(m.level, m.Ratio, m.Sides...); m.Interval == nil {
			m.Note = m.missing()
		}
	}
}

// NotPositive is the note of a missing interval if there are enough launches but some values are not above zero.
const NotPositive = "not all values above 0"

// New compares two figures by their launches.
func New(fa, fb evidence.Figure, s stats.Sides) Ratio {
	a, b := fa.Center(), fb.Center()
	r := Ratio{Figure: fa.Name, Title: fa.Title, Unit: fa.Unit, Left: Side{a, fa.Interval, len(s.A)},
		Right: Side{b, fb.Interval, len(s.B)},
		Delta: stats.Round(b-a, 6), DeltaInterval: s.Change(), Sides: s, Judgement: Judgement{Test: s.Chance()}}
	if s.Few {
		r.IntervalNote = evidence.TooFewRuns
	}
	if a > 0 {
		r.Percent = new(stats.Round(100*(b-a)/a, 6))
	}
	if ratio := stats.Round(a/b, 6); a > 0 && b > 0 && ratio > 0 { // of less than half a millionth there is no ratio
		r.Ratio = &ratio
		r.Interval, r.PercentInterval = s.Ratio()
	}
	if r.PercentInterval == nil && !s.Few {
		r.IntervalNote = NotPositive
	}
	return r
}

// Spread warns if one side's launches vary much more than the other's. Mann and Whitney's test assumes equal spread,
// and calls equal medians different too often without it.
func (x *Ratio) Spread(a, b string) {
	times, right, ok := x.Sides.Wider()
	if !x.Significant || !ok {
		return
	}
	of, than := a, b
	if right {
		of, than = b, a
	}
	vary := fmt.Sprintf("launches vary %s times as much as those of %s", explain.Short(times), than)
	if math.IsInf(times, 1) {
		vary = fmt.Sprintf("launches vary and those of %s do not", than)
	}
	x.Warnings = append(x.Warnings, evidence.Warning{Warning: explain.UnevenSpread.With(vary),
		Where: of})
	x.Uneven = true
}
