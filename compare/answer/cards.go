package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// question is about a figure of the answer: which cell has more of it?
type question struct {
	*explain.Phrases
	of      func(*compare.Cell) evidence.Figure
	prompts bool // the length of the prompt changes the figure
}

var (
	memoryQuestion = question{Phrases: &explain.Memory, of: peak}
	speedQuestion  = question{Phrases: &explain.Speed, of: speed, prompts: true}
)

// peak is a cell's peak memory: total PSS, or the sum of RSS if no PSS was read.
func peak(c *compare.Cell) evidence.Figure { return c.Points().Peak }

// speed is a cell's decode speed; under traffic, the rate of all requests together.
func speed(c *compare.Cell) evidence.Figure {
	if c.Load != nil {
		return c.Figure(figure.AggregateTPS)
	}
	return c.Figure(figure.DecodeTPS)
}

// value is a cell's figure with a unit and the width of its interval.
func (q *question) value(c *compare.Cell, unit string) string {
	f := q.of(c)
	s := valued(f, unit)
	if n := c.Launches.Counted; f.TimeOrRate() && f.N < n {
		s += fmt.Sprintf(" in %d of %d %s", f.N, n, c.Several())
	}
	return s
}

func valued(f evidence.Figure, unit string) string {
	s := strings.TrimSpace(explain.Amount(f.Center()) + " " + unit)
	if half, ok := f.HalfWidth(); ok && half <= evidence.Lopsided {
		return s + " (±" + explain.Share(half) + ")"
	}
	if f.Interval == nil {
		return s
	}
	least := stats.Interval{Lo: f.Interval.Lo, Hi: f.Interval.Hi, Confidence: stats.Confidence}
	return s + explain.CI(&least, explain.Amount)
}

// says is value after the verb.
func (q *question) says(c *compare.Cell) string {
	if c.Load != nil {
		return q.Together + " " + q.value(c, q.Unit)
	}
	return q.Verb + " " + q.value(c, q.Unit)
}

func (r view) memoryCard() Card {
	c := r.card(&memoryQuestion)
	var bases []float64
	var engines []string
	browser := true
	for _, c := range r.Cells {
		if f := c.Figure(figure.Baseline); f.Known() {
			bases, browser = append(bases, f.Center()), browser && c.Browser() != ""
			engines = explain.AppendNew(engines, c.Title())
		}
	}
	if len(bases) > 0 && !c.Unknown {
		who := "the processes of " + explain.And(engines, 2) + " take"
		if browser {
			who = "the browser alone takes"
		}
		c.Text += fmt.Sprintf(" Before the model loads, %s %s MiB.", who, rangeOf(bases))
	}
	held := r.Distinct(func(c *compare.Cell) string { return c.Policy("kv_dtype") })
	each := r.Distinct(func(c *compare.Cell) string {
		if dtype := c.Policy("kv_dtype"); dtype != "" {
			return c.Title() + " " + dtype
		}
		return ""
	})
	if len(held) > 1 && len(each) <= mostValues {
		c.Text += " The KV caches differ in dtype: " + strings.Join(each, ", ") + "."
	}
	return c
}

func (r view) speedCard() Card {
	c := r.card(&speedQuestion)
	if !slices.ContainsFunc(c.Verdicts, func(v verdict.Verdict) bool { return v.Outcome != verdict.NotComparable }) &&
		len(c.Verdicts) > 0 {
		return c // the table has the times
	}
	var words []string
	for i, c := range r.Cells {
		if f := c.Figure(figure.TTFT); f.Known() && c.Load == nil {
			who := c.Title()
			if len(r.Cells) == 2 && who == r.Cells[1-i].Title() {
				who = c.Label
			}
			words = append(words, who+" "+valued(f, "ms"))
		}
	}
	if n := len(words); n > 0 && n == len(r.Cells) && n <= 2 && c.Text != "" {
		c.Text += " Time to first token: " + strings.Join(words, ", ") + "."
	}
	return c
}

// card answers a question for all cells.
func (r view) card(q *question) Card {
	var known []*compare.Cell
	var values []float64
	absent := ""
	for _, c := range r.Cells {
		if f := q.of(c); f.Known() {
			known, values = append(known, c), append(values, f.Center())
		} else if f.Lacks != evidence.Refused {
			absent = cmp.Or(absent, f.Absent)
		}
	}
	pairs := r.pairs(q)
	out := Card{Headline: "Not measured", Text: explain.Capital(absent), Unknown: true}
	switch {
	case len(known) == 0:
	case len(pairs) == 0:
		out = Card{Headline: rangeOf(values) + " " + q.Unit, Text: r.values(q, known)}
		if len(known) == 1 {
			out.Headline = q.value(known[0], q.Unit)
		}
		if len(known) == 1 && len(r.Cells) > 1 {
			out.Headline = r.cellTitle(known[0]) + ": " + out.Headline
		}
	case len(pairs) == 1:
		out = r.single(q, &pairs[0]).Card
	default:
		out = r.several(q, pairs, known)
	}
	switch {
	case out.Line != "":
	case len(known) == 0:
		out.Line = firstSentence(out.Text)
	case len(pairs) > 1 && len(known) <= mostValues && len(r.Engines()) == len(known):
		var each []string
		for _, c := range known {
			each = append(each, c.Title()+" "+explain.Amount(q.of(c).Center()))
		}
		out.Line = strings.Join(each, ", ") + " " + q.Unit + "."
	case len(pairs) > 1:
		out.Line = fmt.Sprintf(explain.OfCells, rangeOf(values), q.Unit, len(known))
	}
	for i := range pairs {
		out.Verdicts = append(out.Verdicts, pairs[i].Verdict)
	}
	if out.Name = q.Name; out.Text != "" {
		out.Text += "."
	}
	return out
}

// cellTitle is the engine of a cell, or its label if the engine has several cells.
func (r view) cellTitle(c *compare.Cell) string {
	other := func(o *compare.Cell) bool { return o.Spec.Engine == c.Spec.Engine && o.Label != c.Label }
	if slices.ContainsFunc(r.Cells, other) {
		return c.Label
	}
	return c.Title()
}

const mostValues = 4

// values are the values of a few cells, or the extremes of many.
func (r view) values(q *question, known []*compare.Cell) string {
	if len(known) > mostValues {
		return r.extremes(q, known)
	}
	words := []string{r.cellTitle(known[0]) + " " + q.says(known[0])}
	for _, c := range known[1:] {
		words = append(words, r.cellTitle(c)+" "+q.value(c, ""))
	}
	return strings.Join(words, ", ")
}

// extremes names the cells with the lowest and the highest value.
func (r view) extremes(q *question, known []*compare.Cell) string {
	order := func(a, b *compare.Cell) int { return cmp.Compare(q.of(a).Center(), q.of(b).Center()) }
	low, high := slices.MinFunc(known, order), slices.MaxFunc(known, order)
	return fmt.Sprintf(explain.ExtremesOfCells, q.Least, len(known), low.Label, q.value(low, q.Unit), q.Most,
		high.Label, q.value(high, q.Unit))
}
