package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
)

// pair is two cells with the verdict on a figure of both.
type pair struct {
	a, b *compare.Cell
	verdict.Verdict
	family int
}

// names are the names of the sides.
func (p *pair) names() [2]string { return [2]string{p.Sides[0].Name, p.Sides[1].Name} }

// pairs are the pairs of cells that answer a question: pairs of runs if there are several runs. Both cells have the
// figure.
func (r view) pairs(q *question) []pair {
	var out []pair
	topic := r.topic()
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		p := pair{a: r.Cells[c.A], b: r.Cells[c.B], family: c.Family}
		x, y := q.of(p.a), q.of(p.b)
		if r.about(c) != topic || !x.Known() || !y.Known() || !compare.SameRequest(p.a, p.b) {
			continue
		}
		a, b := r.sides(c)
		p.Verdict = r.Verdict(c, x, y, a, b)
		out = append(out, p)
	}
	return out
}

// compared are the comparisons of the answer's topic.
func (r view) compared() (out []*compare.Comparison) {
	topic := r.topic()
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; r.about(c) == topic && compare.SameRequest(r.Cells[c.A], r.Cells[c.B]) {
			out = append(out, c)
		}
	}
	return out
}

// sides names the sides of a comparison.
func (r view) sides(c *compare.Comparison) (string, string) {
	if c.Axes != nil {
		return r.SideNames(c)
	}
	return r.pairNames(r.Cells[c.A], r.Cells[c.B])
}

// topic is what a result compares: the answer is about it.
type topic int

const (
	ofEngines topic = iota
	ofCells         // cells with their reference cells
	ofRuns
)

// about is the topic of a comparison.
func (r view) about(c *compare.Comparison) topic {
	switch {
	case r.Families[c.Family].Runs:
		return ofRuns
	case c.Axes != nil:
		return ofCells
	}
	return ofEngines
}

// topic is runs, if there are several; else what a plan varies of an engine's own, such as its versions; else engines,
// if there are several; else what one engine's cells differ in.
func (r view) topic() topic {
	var engines, cells, own bool
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		switch r.about(c) {
		case ofRuns:
			return ofRuns
		case ofEngines:
			engines = true
		case ofCells:
			cells = true
			own = own || slices.ContainsFunc(c.Axes, func(name string) bool {
				_, set := r.Cells[c.B].Spec.Settings[name]
				return set || name == axis.Model
			})
		}
	}
	if own || cells && !engines {
		return ofCells
	}
	return ofEngines
}

// pairNames names two cells: by their runs or engines if these differ, else by their labels.
func (r view) pairNames(a, b *compare.Cell) (string, string) {
	switch {
	case a.Run != b.Run:
		return r.runTitle(a.Run), r.runTitle(b.Run)
	case a.Spec.Engine != b.Spec.Engine:
		return a.Title(), b.Title()
	}
	return a.Label, b.Label
}

// finding is the card of some pairs.
type finding struct {
	Card
	named bool // the headline begins with a side's name
	// interval of the headline, in parentheses
	interval string
	size     float64 // how many times as much one side has; 0: no difference
}

// single answers for one pair.
func (r view) single(q *question, p *pair) finding {
	names := p.names()
	referenced := r.topic() != ofEngines
	out := finding{Card: Card{Headline: p.Headline(q.Phrases, referenced),
		Unknown: !p.Equal() && p.Outcome != verdict.Different,
		Text:    fmt.Sprintf(explain.BothValues, names[0], q.says(p.a), names[1], q.value(p.b, q.Unit))},
		interval: p.CI(referenced)}
	if times := p.Ratio(q.Phrases); referenced && q == &speedQuestion && times != "" {
		out.interval, out.Text = "", times+": "+
			fmt.Sprintf(explain.BothValues, names[0], q.value(p.a, q.Unit), names[1], q.value(p.b, q.Unit))
	}
	out.Line = fmt.Sprintf(explain.BothShort, explain.Amount(q.of(p.b).Center()), explain.Amount(q.of(p.a).Center()),
		q.Unit)
	switch p.Outcome {
	case verdict.NotComparable:
		out.Line = open(p.Forbids.Sentence) + "."
		out.named, out.Reason = p.AtLeast > 0, p.Forbids
		out.Text = joined(". ", open(p.Forbids.Sentence), out.Text)
	case verdict.Different:
		out.named = true
		if q == &memoryQuestion && !p.AmountOnly {
			out.Headline += p.partlyShared()
		}
		if prompts := compare.PromptsDiffer(p.a, p.b); prompts != "" && q.prompts {
			out.Headline += fmt.Sprintf(explain.WithPrompts, prompts)
		}
	case verdict.NoDifference, verdict.TooNoisy:
		out.Text += p.ShortageText()
	}
	out.Text = joined(". ", explain.Capital(strings.Trim(out.interval, " ()")), out.Text)
	out.Text += notAlike(p)
	return out
}

// open is a reason without its full stop, which those from an engine's warning may have.
func open(reason string) string { return strings.TrimSuffix(reason, ".") }

// partlyShared names the side whose memory other programs share so much that the ratio misleads; empty if there is
// none.
func (p *pair) partlyShared() string {
	for i, c := range []*compare.Cell{p.a, p.b} {
		if left := c.Footprint().LeftOut(); left > memory.OthersShare {
			return fmt.Sprintf(explain.PartlyShared, explain.Share(left), p.Sides[i].Name)
		}
	}
	return ""
}

// notAlike says how cells differ that are compared on request.
func notAlike(p *pair) string {
	if p.Unlike == "" {
		return ""
	}
	return fmt.Sprintf(explain.NotAlike, p.Unlike)
}

// several answers for many pairs: for each two sides the counts of both directions, and the extremes of all cells.
func (r view) several(q *question, pairs []pair, known []*compare.Cell) Card {
	var by evidence.Groups[[2]string, pair]
	for _, p := range pairs {
		sides := p.names()
		if turned := [2]string{sides[1], sides[0]}; by.Of[turned] != nil {
			sides = turned
		}
		by.Add(sides, p)
	}
	forbidden := slices.IndexFunc(pairs, func(p pair) bool { return p.Outcome == verdict.NotComparable })
	if len(by.Keys) == 1 {
		out := r.together(q, by.Keys[0], pairs).Card
		if forbidden < 0 { // else the extremes would compare what is not comparable
			out.Text = joined(". ", explain.Capital(out.Text), r.extremes(q, known))
		}
		return out
	}
	if !slices.ContainsFunc(pairs, func(p pair) bool { return !p.Equal() }) {
		return Card{Headline: noneOf(pairs), Text: r.values(q, known)}
	}
	answers, others := r.bySides(q, &by)
	if len(answers) == 0 && !slices.ContainsFunc(pairs, func(p pair) bool { return p.Outcome != pairs[0].Outcome }) {
		together := r.together(q, pairs[0].names(), pairs).Card // no two sides are worth a name
		if together.Reason.Code == "" {
			together.Text = r.values(q, known)
		}
		return together
	}
	out := Card{Unknown: len(answers) == 0}
	all := append(answers, others...)
	const most = 3
	more := len(all) - most
	if more > 1 {
		all = all[:most]
	} else {
		more = 0
	}
	var texts []string
	said := map[verdict.Reason]bool{}
	for _, f := range all {
		texts, said[f.Reason] = append(texts, f.Headline+f.interval), true
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf(explain.PairsInTables, more))
	}
	if best := q.winner(pairs, known); best != nil {
		out.Headline = q.Best + ": " + r.cellTitle(best)
	} else {
		out.Headline, texts[0] = all[0].Headline, strings.Trim(all[0].interval, " ()")
	}
	out.Text = joined("; ", texts...)
	if forbidden < 0 || len(known) <= mostValues {
		out.Text += ". " + r.values(q, known)
	}
	if forbidden >= 0 && !said[pairs[forbidden].Forbids] {
		out.Reason = pairs[forbidden].Forbids
		out.Text += fmt.Sprintf(explain.WhyNot, open(out.Reason.Text))
	}
	return out
}

// noneOf says that no pair differs, by more than the largest change that they cannot rule out.
func noneOf(pairs []pair) string {
	most := 0.0
	for i := range pairs {
		of, known := pairs[i].Most()
		if !known {
			return fmt.Sprintf(explain.InPairs, verdict.NoDifference.Headline(), anyOf(len(pairs), false))
		}
		most = max(most, of)
	}
	return fmt.Sprintf(explain.NoneAbove, verdict.Whole(most))
}

// bySides has a line for each two sides: those with an answer, and the others.
func (r view) bySides(q *question, by *evidence.Groups[[2]string, pair]) (answers, others []finding) {
	for sides, all := range by.All() {
		f := r.together(q, sides, all)
		if len(all) == 1 {
			f = r.single(q, &all[0])
			if t := all[0].Times; t != nil && all[0].Outcome == verdict.Different {
				f.size = t.Value
			}
			f.Reason = verdict.Reason{} // the line is the headline alone
		} else if f.Text != "" {
			f.Headline += fmt.Sprintf(explain.InParentheses, f.Text)
		}
		if !f.named {
			f.Headline = fmt.Sprintf(explain.SidesAnd, sides[0], sides[1], explain.Lower(f.Headline))
		}
		if f.Unknown {
			others = append(others, f)
		} else {
			answers = append(answers, f)
		}
	}
	if r.topic() == ofCells { // the largest difference first
		slices.SortStableFunc(answers, func(a, b finding) int { return cmp.Compare(b.size, a.size) })
	}
	return answers, others
}

// joined joins the texts that are not empty.
func joined(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), between)
}

// anyOf names any of so many pairs; two is whether they are called either pair.
func anyOf(n int, two bool) string {
	if n == 2 && two {
		return explain.EitherPair
	}
	return fmt.Sprintf(explain.AnyPair, n)
}

// tally counts the pairs of the same two sides.
type tally struct {
	larger, other string // the side that is larger more often
	more, less    int    // pairs in which it is larger, and smaller
	times, mib    []float64
	of            map[verdict.Outcome]int
	why           verdict.Reason // why the first pair that is not comparable is not
}

func tallied(sides [2]string, pairs []pair) tally {
	t := tally{of: map[verdict.Outcome]int{}}
	more := map[string]int{}
	for i := range pairs {
		p := &pairs[i]
		switch {
		case p.Equal():
			t.of[verdict.NoDifference]++
			continue
		case p.Outcome != verdict.Different:
			t.of[p.Outcome]++
			t.why = cmp.Or(t.why, p.Forbids)
			continue
		case p.AmountOnly:
			t.mib = append(t.mib, p.Amount.Value)
		case p.Times != nil:
			t.times = append(t.times, p.Times.Value)
		}
		larger, _ := p.Names()
		more[larger]++
	}
	t.larger, t.other = sides[0], sides[1]
	if more[t.other] > more[t.larger] {
		t.larger, t.other = t.other, t.larger
	}
	t.more, t.less = more[t.larger], more[t.other]
	return t
}

// together answers for pairs of cells of the same two sides.
func (r view) together(q *question, sides [2]string, pairs []pair) finding {
	all, t := len(pairs), tallied(sides, pairs)
	every := fmt.Sprintf(explain.AllPairs, all)
	if all == 2 {
		every = explain.BothPairs
	}
	some := func(n int) string { return fmt.Sprintf(explain.SomePairs, n, all) }
	in := func(o verdict.Outcome, pairs string) string { return fmt.Sprintf(explain.InPairs, o.Headline(), pairs) }
	out := finding{Card: Card{Headline: in(verdict.NoDifference, anyOf(all, true))}, named: t.more > 0}
	switch n := t.of[verdict.TooNoisy]; {
	case t.of[verdict.NotComparable] == all:
		return finding{Card: Card{Headline: verdict.NotComparable.Headline(), Text: open(t.why.Sentence),
			Reason: t.why, Unknown: true}}
	case t.of[verdict.TooFew] == all:
		return finding{Card: Card{Headline: verdict.TooFew.Headline(), Unknown: true}}
	case n == all:
		return finding{Card: Card{Headline: in(verdict.TooNoisy, anyOf(all, true)), Unknown: true}}
	case t.of[verdict.NoDifference] == all:
		out.Headline = noneOf(pairs)
	case t.more == all:
		out.Headline = fmt.Sprintf(explain.MoreInPairs, t.larger, q.More, t.other, every)
	case t.more > 0:
		out.Headline = fmt.Sprintf(explain.MoreInPairs, t.larger, q.More, t.other, some(t.more))
	case n > 0:
		out.Headline = in(verdict.TooNoisy, some(n))
	}
	out.Text = strings.Join(r.counts(q, &t, pairs), "; ") + notAlike(&pairs[0])
	return out
}

// counts says how much pairs differ, and how many do not or go the other way.
func (r view) counts(q *question, t *tally, pairs []pair) []string {
	var out []string
	if len(t.times) > 0 {
		out = append(out, fmt.Sprintf(explain.TimesOfPairs, rangeOf(t.times), q.Factor))
	}
	if len(t.mib) > 0 {
		out = append(out, fmt.Sprintf(explain.MiBOfPairs, rangeOf(t.mib)))
	}
	if mean := r.meanOf(pairs[0].Figure, pairs[0].family); mean != "" {
		out = append(out, mean)
	}
	if t.less > 0 {
		out = append(out, fmt.Sprintf(explain.Plural(t.less, explain.OtherWay, explain.OtherWays), t.less))
	}
	for _, o := range []verdict.Outcome{verdict.NoDifference, verdict.TooFew, verdict.TooNoisy, verdict.NotComparable} {
		if n := t.of[o]; n > 0 && n < len(pairs) {
			out = append(out, fmt.Sprintf(explain.Plural(n, explain.PairOutcome, explain.PairsOutcome), n, o.Pairs()))
		}
	}
	return out
}

// meanOf is the geometric mean of a family's ratios, if it has one mean only. It can differ although no pair does.
func (r view) meanOf(name string, family int) string {
	f := &r.Families[family]
	means := slices.DeleteFunc(slices.Clone(f.Means), func(m ratio.Mean) bool { return m.Figure != name })
	if len(means) != 1 {
		return ""
	}
	v := verdict.OfMean(&means[0], means[0].A, means[0].B, r.Statistics.MinEffect)
	if v.Outcome != verdict.Different {
		return ""
	}
	return fmt.Sprintf(explain.MeanOfPairs, explain.Amount(v.Times.Value), explain.CI(v.Times.Interval, explain.Amount))
}

// winner is the cell that is better than each other one, by a difference that was found; nil if there is none.
func (q *question) winner(pairs []pair, known []*compare.Cell) *compare.Cell {
	won := map[*compare.Cell]int{}
	for _, p := range pairs {
		switch p.Better {
		case 0:
			won[p.a]++
		case 1:
			won[p.b]++
		}
	}
	for _, c := range known {
		if won[c] == len(known)-1 {
			return c
		}
	}
	return nil
}
