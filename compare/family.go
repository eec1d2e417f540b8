package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
)

// Family is what one question is answered by: does B differ from A? Its tests are those of every figure in every pair
// of cells of the two sides, and those of the means over the pairs. Holm corrects for their number, so that of families
// of equals at most alpha have any difference in them at all.
type Family struct {
	A     string `json:"a"` // names of the two sides: runs, or engines of one run
	B     string `json:"b"`
	Runs  bool   `json:"of_runs,omitempty"`     // A and B are runs
	First bool   `json:"of_baseline,omitempty"` // A is the first of the runs
	Tests int    `json:"tests"`                 // that are told apart: figures that order the launches alike are one
	Means []Mean `json:"means"`
	key   string
}

// Mean is the geometric mean of a figure's ratios over several pairs of cells.
type Mean struct {
	Figure string   `json:"figure"`
	Title  string   `json:"title"`
	Group  string   `json:"group"` // what the pairs have in common
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

	test     stats.Test
	headline bool
}

// Judgement is what is to be thought of a difference.
type Judgement struct {
	Family int `json:"family"` // index into Families
	// Raw is the p of the test alone, P is corrected by Holm for the tests of the family.
	Raw         float64    `json:"p"`
	P           float64    `json:"p_holm"`
	Significant bool       `json:"significant"` // P is at most alpha
	Call        stats.Call `json:"call"`
}

// headline tells the figures that the verdict is made of.
func headline(name string, together bool) bool {
	r := figure.Of(name)
	return r != nil && r.Headline.In(together)
}

// judge tests families, and puts what comes of it into words.
func (r *Result) judge(o Options) {
	for i := range r.Comparisons {
		r.enlist(i)
	}
	r.means(o)
	for f := range r.Families {
		var tests []stats.Test
		var of []*Judgement
		each := func(t stats.Test, j *Judgement) { tests, of = append(tests, t), append(of, j) }
		for i := range r.Comparisons {
			c := &r.Comparisons[i]
			for k := range c.Ratios {
				if c.Ratios[k].Family == f {
					each(c.tests[k], &c.Ratios[k].Judgement)
				}
			}
		}
		for i := range r.Families[f].Means {
			m := &r.Families[f].Means[i]
			each(m.test, &m.Judgement)
		}
		r.Families[f].Tests = stats.Distinct(tests)
		corrected := stats.Holm(tests, func(t stats.Test) float64 { return t.P })
		best := stats.Holm(tests, func(t stats.Test) float64 { return t.Least })
		for i, j := range of {
			j.Family, j.Raw, j.P, j.Significant = f, stats.Round(tests[i].P, 9), stats.Round(corrected[i], 9),
				corrected[i] <= stats.Alpha
			j.Call = stats.CallOf(j.Significant, best[i])
		}
	}
	r.word(o)
}

// word writes the verdicts, when effects that are too small are known.
func (r *Result) word(o Options) {
	small := func(ratio float64) bool { return math.Abs(math.Log(ratio)) < math.Log1p(o.MinEffect)*(1-1e-9) }
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		for k := range c.Ratios {
			x := &c.Ratios[k]
			if x.Call == stats.Differs && x.Ratio != nil && small(*x.Ratio) {
				x.Call = stats.TooSmall
			}
			x.spread(&r.Cells[c.A], &r.Cells[c.B], c.sides[k])
			x.disturbed(&r.Cells[c.A], &r.Cells[c.B])
			x.Verdict = x.words(&r.Cells[c.A], &r.Cells[c.B], c.tests[k], c.sides[k], o)
		}
	}
	for f := range r.Families {
		for i := range r.Families[f].Means {
			m := &r.Families[f].Means[i]
			if m.Call == stats.Differs && small(m.Ratio) {
				m.Call = stats.TooSmall
			}
			m.Verdict = m.words(r.Families[f], o)
		}
	}
}

// enlist puts a comparison's tests into their family.
func (r *Result) enlist(i int) {
	c := &r.Comparisons[i]
	a, b := &r.Cells[c.A], &r.Cells[c.B]
	family := Family{A: a.Spec.Engine, B: b.Spec.Engine, Means: []Mean{},
		key: fmt.Sprintf("%d %q %q", a.Run, a.Spec.Engine, b.Spec.Engine)}
	if a.Run != b.Run {
		family.A, family.B, family.Runs, family.First = r.runName(a.Run), r.runName(b.Run), true, a.Run == 0
		family.key = fmt.Sprintf("%d %d", a.Run, b.Run)
	} else if len(r.Runs) > 1 {
		family.A, family.B = family.A+" in "+r.runName(a.Run), family.B+" in "+r.runName(b.Run)
	}
	at := slices.IndexFunc(r.Families, func(f Family) bool { return f.key == family.key })
	if at < 0 {
		at = len(r.Families)
		r.Families = append(r.Families, family)
	}
	c.Family = at
	for k := range c.Ratios {
		c.Ratios[k].Family = at
		c.tests[k].Same = fmt.Sprint(i, " ", c.tests[k].Same)
	}
}

// means averages each family's ratios over the pairs of cells that have the asked fields in common, and the class of
// their devices: those that may be compared.
func (r *Result) means(o Options) {
	by := o.By
	if by == nil {
		by = []string{"engine"}
	}
	by = slices.DeleteFunc(slices.Clone(by), func(s string) bool { return s == "run" }) // a family has its runs
	for f := range r.Families {
		var groups []string
		members := map[string][]int{}
		for i := range r.Comparisons {
			if c := &r.Comparisons[i]; c.Family == f {
				g := r.common(c, by)
				c.group = g
				groups = explain.AppendNew(groups, g)
				members[g] = append(members[g], i)
			}
		}
		for _, g := range groups {
			for _, figure := range r.comparedIn(members[g]) {
				if m, ok := r.mean(members[g], figure, by); ok {
					m.Group, m.Family = g, f
					m.test.Same = fmt.Sprint("mean ", g, " ", m.test.Same)
					r.Families[f].Means = append(r.Families[f].Means, m)
				}
			}
		}
	}
}

// comparedIn lists the figures that comparisons have ratios of, in the order in which cells have them.
func (r *Result) comparedIn(comparisons []int) []string {
	var out []string
	for _, i := range comparisons {
		for _, x := range r.Comparisons[i].Ratios {
			out = explain.AppendNew(out, x.Figure)
		}
	}
	known := compared(false)
	slices.SortStableFunc(out, func(a, b string) int {
		place := func(name string) int {
			if at := slices.Index(known, name); at >= 0 {
				return at
			}
			return len(known)
		}
		return place(a) - place(b)
	})
	return out
}

// common names what both cells of a comparison have of the asked fields.
func (r *Result) common(c *Comparison, by []string) string {
	a, b := &r.Cells[c.A], &r.Cells[c.B]
	if !slices.Contains(by, "device") {
		by = append(slices.Clone(by), "device")
	}
	var words []string
	for _, name := range by {
		x, y := r.field(a, name), r.field(b, name)
		if x != y {
			x += " against " + y
		}
		words = append(words, name+" "+x)
	}
	return strings.Join(words, ", ")
}

// mean is that of one figure over comparisons; false where fewer than two have a ratio of it.
func (r *Result) mean(comparisons []int, figure string, by []string) (Mean, bool) {
	m := Mean{Figure: figure}
	var all []stats.Sides
	var cells, others []int // of A, of B
	sum := 0.0
	for _, i := range comparisons {
		c := &r.Comparisons[i]
		k := slices.IndexFunc(c.Ratios, func(x Ratio) bool { return x.Figure == figure && x.Ratio != nil })
		// a launch counts once, whatever it is set against
		if k < 0 || slices.Contains(cells, c.A) || slices.Contains(others, c.B) {
			m.Left++
			continue
		}
		x := c.Ratios[k]
		all, cells, others = append(all, c.sides[k]), append(cells, c.A), append(others, c.B)
		sum += math.Log(*x.Ratio)
		m.Title, m.headline = x.Title, m.headline || x.headline
		if x.Different != "" && !strings.Contains(m.Different, x.Different) {
			m.Different = strings.TrimPrefix(m.Different+"; "+x.Different, "; ")
		}
	}
	m.Cells, m.Over = len(all), r.varied(cells, by)
	if m.Cells < 2 {
		return m, false
	}
	m.Ratio = stats.Round(math.Exp(sum/float64(m.Cells)), 6)
	m.Percent = stats.Round(100*(math.Exp(-sum/float64(m.Cells))-1), 6)
	m.Interval, m.PercentInterval = stats.MeanRatio(all)
	switch {
	case m.Interval != nil:
	case slices.ContainsFunc(all, func(s stats.Sides) bool { return s.Few }):
		m.Note = evidence.TooFewRuns
	default:
		m.Note = notPositive
	}
	m.test = stats.OverCells(all)
	m.test.Weight, m.test.Same = stats.Weight(m.headline, m.test.Least),
		fmt.Sprint(cells, others, stats.OrderOf(all...))
	return m, true
}
