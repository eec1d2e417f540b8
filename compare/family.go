package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// judge tests families and writes the verdicts.
func (r *Result) judge() {
	for i := range r.Comparisons {
		r.compareAmounts(&r.Comparisons[i])
		r.addToFamily(i)
	}
	r.means()
	for f := range r.Families {
		var of []*ratio.Judgement
		pairs := 0
		for i := range r.Comparisons {
			tests := r.Comparisons[i].judged()
			if r.Comparisons[i].Family != f || len(tests) == 0 {
				continue
			}
			pairs++
			for _, x := range tests {
				of = append(of, &x.Judgement)
			}
		}
		for i := range r.Families[f].Means {
			of = append(of, &r.Families[f].Means[i].Judgement)
		}
		r.Families[f].Correction = stats.CorrectionOf(pairs)
		r.Families[f].Tests = ratio.Judge(of, r.Families[f].Correction)
		for _, j := range of {
			j.Family = f
		}
	}
	r.writeVerdicts()
}

// judged returns all ratios and amounts of the comparison.
func (c *Comparison) judged() (out []*ratio.Ratio) {
	for _, list := range [][]ratio.Ratio{c.Ratios, c.amounts} {
		for k := range list {
			out = append(out, &list[k])
		}
	}
	return out
}

// writeVerdicts writes the verdicts, with small effects marked as too small.
func (r *Result) writeVerdicts() {
	small := func(times float64) bool {
		return math.Abs(math.Log(times)) < math.Log1p(r.Statistics.MinEffect)*(1-1e-9)
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		for k := range c.Ratios {
			x := &c.Ratios[k]
			if x.Call == stats.Differs && x.Ratio != nil && small(*x.Ratio) {
				x.Call = stats.TooSmall
			}
			a, b := r.Cells[c.A], r.Cells[c.B]
			x.Agree()
			x.Spread(a.Label, b.Label)
			disturbed(x, a, b)
			v := verdict.Of(x, a.Label, b.Label, r.Statistics.MinEffect)
			v.Reused = a.Spec.Reused
			x.Verdict, x.Better = v.Sentence(), v.BetterSide()
		}
		for k := range c.amounts {
			c.amounts[k].Agree()
		}
	}
	for f := range r.Families {
		for i := range r.Families[f].Means {
			m := &r.Families[f].Means[i]
			if m.Call == stats.Differs && small(m.Ratio) {
				m.Call = stats.TooSmall
			}
			m.Agree()
			v := verdict.OfMean(m, m.A, m.B, r.Statistics.MinEffect)
			m.Verdict, m.Better = v.SentenceOver(m), v.BetterSide()
		}
	}
}

// addToFamily adds a comparison's tests to their family.
func (r *Result) addToFamily(i int) {
	c := &r.Comparisons[i]
	a, b := r.Cells[c.A], r.Cells[c.B]
	family := ratio.Family{A: a.Spec.Engine, B: b.Spec.Engine, Means: []ratio.Mean{},
		Key: fmt.Sprintf("%d %q %q", a.Run, a.Spec.Engine, b.Spec.Engine)}
	if c.along != nil {
		family.Axes, family.Key = c.Axes, family.Key+fmt.Sprintf(" %q", c.Axes)
		family.A, family.B = r.labels.Values(c.A, c.along), r.labels.Values(c.B, c.along)
	}
	if a.Run != b.Run {
		family.A, family.B, family.Runs, family.First = r.RunName(a.Run), r.RunName(b.Run), true, a.Run == 0
		family.Key = fmt.Sprintf("%d %d", a.Run, b.Run)
	} else if len(r.Runs) > 1 {
		family.A, family.B = family.A+" in "+r.RunName(a.Run), family.B+" in "+r.RunName(b.Run)
	}
	at := slices.IndexFunc(r.Families, func(f ratio.Family) bool { return f.Key == family.Key })
	if at < 0 {
		at = len(r.Families)
		r.Families = append(r.Families, family)
	}
	if of := &r.Families[at]; c.along != nil && of.B != family.B && of.A == family.A {
		of.B = "other " + c.along[0].Phrase
	}
	c.Family = at
	for _, x := range c.judged() {
		x.Test.Same = fmt.Sprint(i, " ", x.Test.Same)
	}
}

// means averages each family's ratios over pairs of cells with the same values of the requested fields and the same
// class of device.
func (r *Result) means() {
	fields := []string{"engine"}
	if r.Statistics.By != nil {
		fields = r.Statistics.By
	}
	// A family has its runs.
	fields = slices.DeleteFunc(slices.Clone(fields), func(s string) bool { return s == axis.Run })
	for f := range r.Families {
		fields := slices.Concat(fields, r.Families[f].Axes)
		var by evidence.Groups[string, int]
		for i := range r.Comparisons {
			if c := &r.Comparisons[i]; c.Family == f {
				by.Add(r.common(c, fields), i)
			}
		}
		for g, members := range by.All() {
			for _, figure := range r.comparedIn(members) {
				if m, ok := r.mean(members, figure, fields); ok {
					m.Group, m.A, m.B = g, r.Families[f].A, r.Families[f].B
					if c := r.Comparisons[members[0]]; c.along != nil {
						m.A, m.B = r.labels.Values(c.A, c.along), r.labels.Values(c.B, c.along)
					}
					m.Test.Same = fmt.Sprint("mean ", g, " ", m.Test.Same)
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
	first := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !slices.Contains(out, name) })
	return append(first, slices.DeleteFunc(out, func(name string) bool { return slices.Contains(known, name) })...)
}

// common names the values of the requested fields in both cells of a comparison.
func (r *Result) common(c *Comparison, by []string) string {
	a, b := r.Cells[c.A], r.Cells[c.B]
	if !slices.Contains(by, axis.Device) {
		by = append(slices.Clone(by), axis.Device)
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

// mean averages one figure over comparisons; false: fewer than two have a ratio of it.
func (r *Result) mean(comparisons []int, figure string, by []string) (ratio.Mean, bool) {
	m := ratio.Mean{Figure: figure}
	var cells, others []int // of A, of B
	var unlike []string
	sum := 0.0
	for _, i := range comparisons {
		c := &r.Comparisons[i]
		k := slices.IndexFunc(c.Ratios, func(x ratio.Ratio) bool { return x.Figure == figure && x.Ratio != nil })
		// a launch counts once, even if it is compared with several
		if k < 0 || slices.Contains(cells, c.A) || slices.Contains(others, c.B) {
			m.Left++
			continue
		}
		x := c.Ratios[k]
		m.Sides, cells, others = append(m.Sides, x.Sides), append(cells, c.A), append(others, c.B)
		sum += math.Log(*x.Ratio)
		m.Title, m.Headline = x.Title, m.Headline || x.Headline
		for _, text := range c.Different {
			unlike = explain.AppendNew(unlike, text)
		}
	}
	m.Different = strings.Join(unlike, "; ")
	m.Cells, m.Over = len(cells), r.varied(cells, by)
	if m.Cells < 2 {
		return m, false
	}
	m.Ratio = stats.Round(math.Exp(sum/float64(m.Cells)), 6)
	m.Percent = stats.Round(100*(math.Exp(-sum/float64(m.Cells))-1), 6)
	m.Interval, m.PercentInterval = stats.MeanRatio(m.Sides)
	if few := func(s stats.Sides) bool { return s.Few }; m.Interval == nil && slices.ContainsFunc(m.Sides, few) {
		m.Note = evidence.TooFewRuns
	} else if m.Interval == nil {
		m.Note = ratio.NotPositive
	}
	m.Test = stats.OverCells(m.Sides)
	m.Test.Weight, m.Test.Same = stats.Weight(m.Headline, m.Test.Least),
		fmt.Sprint(cells, others, stats.OrderOf(m.Sides...))
	return m, true
}

// field is a cell's value of a field.
func (r *Result) field(c *Cell, name string) string {
	switch name {
	case axis.Device:
		return deviceClass(c)
	case axis.Run:
		return r.RunName(c.Run)
	}
	x := axis.Named(name)
	of := reported[x.Name]
	switch {
	case x.Own: // of one engine
		return cmp.Or(x.Value(&c.Spec), "none")
	case of != nil:
		return cmp.Or(of(c), "unknown")
	}
	return cmp.Or(x.Value(&c.Spec), "unknown")
}

// reported are fields whose values are measured or reported if none was requested, or because that says more.
var reported = map[string]func(*Cell) string{
	axis.Input: func(c *Cell) string { // as requested, else as the engine counts tokens
		if f := c.Figure(figure.Prompt); c.Spec.InputTokens <= 0 && f.Known() {
			return f.Count()
		}
		return c.Requested(axis.Input)
	},
	axis.Prompt: func(c *Cell) string { return strconv.Quote(c.Spec.Prompt) },
	axis.DType:  func(c *Cell) string { return cmp.Or(c.DTypes(), c.Spec.Model.DType) },
	axis.KVDType: func(c *Cell) string {
		return cmp.Or(c.Spec.KVDType, c.Policy("kv_dtype"))
	},
}

// fieldsOf lists the fields that some cells can be grouped by.
func fieldsOf(cells ...*record.Cell) []string {
	var out []string
	for _, x := range axis.Of(cells...) {
		out = append(out, x.ByName())
	}
	return append(out, axis.Device, axis.Run)
}

// specs are what cells request.
func specs(cells []*Cell) []*record.Cell {
	out := make([]*record.Cell, len(cells))
	for i, c := range cells {
		out[i] = &c.Spec
	}
	return out
}

// varied lists the fields in which averaged cells differ, with their numbers of values.
func (r *Result) varied(cells []int, but []string) []string {
	out := []string{}
	for _, name := range fieldsOf(specs(r.Cells)...) {
		if slices.Contains(but, name) {
			continue
		}
		values := map[string]bool{}
		for _, i := range cells {
			values[r.field(r.Cells[i], name)] = true
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("%s (%d)", name, len(values)))
		}
	}
	return out
}

func deviceClass(c *Cell) string {
	if c.Device == nil {
		return "unknown"
	}
	return string(c.Device.Class)
}
