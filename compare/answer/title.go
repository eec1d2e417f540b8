package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/compare/parity"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
)

// title is the answer in one line: what grows, or what differs and what does not; empty without an answer.
func (r view) title(a *Answer) string {
	if t := r.growthTitle(); t != "" {
		return t
	}
	if t := r.formsTitle(); t != "" {
		return t
	}
	if t := r.costTitle(a); t != "" {
		return t
	}
	speeds, memories := r.pairs(&speedQuestion), r.pairs(&memoryQuestion)
	if t := r.gateTitle(); t != "" && len(speeds)+len(memories) == 0 {
		return t
	}
	if len(speeds) > 1 || len(memories) > 1 {
		return r.manyTitle(a, speeds, memories)
	}
	return r.pairTitle(a, speeds, memories)
}

// failed says by which figure a gate of two interleaved sides failed. It is empty if the sides differ in a figure that
// fails and that the title is about.
func (r view) failed(speeds, memories []pair) string {
	if r.Gate == nil || r.Gate.Baseline == nil || !r.Gate.Interleaved {
		return ""
	}
	different := func(pairs []pair) bool {
		return slices.ContainsFunc(pairs, func(p pair) bool { return p.Outcome == verdict.Different })
	}
	titled := slices.ContainsFunc(r.Gate.Checks, func(c gates.Check) bool {
		speed, size := []string{figure.DecodeTPS, figure.AggregateTPS}, []string{figure.PeakPSS, figure.PeakRSS}
		return c.Status == gates.Failed && (slices.Contains(speed, c.Figure) && different(speeds) ||
			slices.Contains(size, c.Figure) && different(memories))
	})
	c := r.Gate.Worst()
	if titled || c == nil || c.Status != gates.Failed || c.Kind != gates.KindChange || c.Percent == nil {
		return ""
	}
	base, now := r.Gate.Baseline.Name, r.Gate.Run.Name
	if c.Figure == figure.TokenCPU {
		return fmt.Sprintf(explain.TitleFailedCPU, now, explain.Share(*c.Percent/100), base)
	}
	is := "higher"
	if *c.Percent < 0 {
		is = "lower"
	}
	title := figure.Title(c.Figure)
	if bar := figure.New(c.Figure).Bar[1]; bar != "" {
		title = explain.Lower(bar)
	}
	return fmt.Sprintf(explain.TitleFailed, now, title, explain.Share(math.Abs(*c.Percent)/100), is, base)
}

// gateTitle says which figure a gate found to be worse than in the baseline run, or that none is: of a run that has
// nothing else to compare. It is empty if the gate could not tell.
func (r view) gateTitle() string {
	if r.Gate == nil || r.Gate.Baseline == nil {
		return ""
	}
	name := cmp.Or(r.Gate.Baseline.Stored, r.Gate.Baseline.Name)
	c := r.Gate.Worst()
	switch {
	case c == nil || c.Kind != gates.KindChange || c.Percent == nil:
	case c.Status == gates.Failed:
		is := explain.TitleHigher
		if *c.Percent < 0 {
			is = explain.TitleLower
		}
		title := explain.Capital(cmp.Or(figure.New(c.Figure).Bar[1], figure.Title(c.Figure)))
		return fmt.Sprintf(is, title, explain.Share(math.Abs(*c.Percent)/100), name)
	case c.Status == gates.Passed:
		return fmt.Sprintf(explain.TitleNoWorse, name)
	}
	return ""
}

// clauses are the parts of a title.
type clauses struct{ differ, same, other []string }

// write joins them; none is what to say of sides without a difference, which has what is the same.
func (c *clauses) write(none string) string {
	var parts []string
	switch {
	case len(c.differ) > 0:
		parts = []string{explain.And(c.differ, 2)}
	case none != "":
		return strings.Join(append([]string{none}, c.other...), "; ")
	}
	if parts = append(parts, c.other...); len(c.same) > 0 {
		is := explain.Plural(len(c.same), "is", "are")
		parts = append(parts, fmt.Sprintf(explain.TitleSame, explain.And(c.same, 3), is))
	}
	text := strings.Join(parts, "; ")
	if len(c.differ) > 0 { // it begins with a name
		return text
	}
	return explain.Capital(text)
}

// failures begin a title by what failed a gate.
func (r view) failures(speeds, memories []pair) (out clauses) {
	if text := r.failed(speeds, memories); text != "" {
		out.differ = append(out.differ, text)
	}
	return out
}

// pairTitle is the title of two cells.
func (r view) pairTitle(a *Answer, speeds, memories []pair) string {
	out := r.failures(speeds, memories)
	failed := len(out.differ) > 0 // more CPU time a token is no equal speed
	var bounds []string
	var sides [2]string
	for _, of := range []struct {
		q     *question
		pairs []pair
	}{{&speedQuestion, speeds}, {&memoryQuestion, memories}} {
		if len(of.pairs) == 0 {
			continue
		}
		p := &of.pairs[0]
		sides = p.names()
		most, known := p.Most()
		switch {
		case p.Outcome == verdict.Different, p.Outcome == verdict.NotComparable && p.AtLeast > 0:
			text := p.Headline(of.q.Phrases, r.topic() != ofEngines)
			for i, side := range sides { // "B is slower than A and uses more memory"
				is := side + " "
				if len(out.differ) > 0 && strings.HasPrefix(out.differ[0], is) && strings.HasPrefix(text, is) {
					text = strings.TrimSuffix(strings.TrimPrefix(text, is), " than "+sides[1-i])
				}
			}
			out.differ = append(out.differ, text)
		case p.Outcome == verdict.NotComparable, p.Outcome == verdict.TooFew, !known:
		default:
			bounds = append(bounds, fmt.Sprintf(explain.TitleBound, verdict.Whole(most), of.q.Same))
			if p.Equal() && !(failed && of.q == &speedQuestion) {
				out.same = append(out.same, of.q.Same)
			}
		}
	}
	none := ""
	if len(bounds) > 0 {
		none = fmt.Sprintf(explain.TitleNone, sides[1], sides[0], explain.And(bounds, 2))
	}
	if r.addOutput(&out, a); len(out.differ) == 0 && none == "" {
		return ""
	}
	return out.write(none)
}

// manyTitle is the title of several pairs.
func (r view) manyTitle(a *Answer, speeds, memories []pair) string {
	out := r.failures(speeds, memories)
	failed := len(out.differ) > 0
	for _, of := range []struct {
		q     *question
		card  *Card
		pairs []pair
	}{{&speedQuestion, &a.Speed, speeds}, {&memoryQuestion, &a.Memory, memories}} {
		different := func(p pair) bool { return p.Outcome == verdict.Different }
		unequal := func(p pair) bool { return !p.Equal() }
		switch best := of.q.winner(of.pairs, r.Cells); {
		case best != nil:
			out.differ = append(out.differ, fmt.Sprintf(of.q.BestOf, r.cellTitle(best)))
		case of.q == &speedQuestion && r.extreme(of.pairs) != "":
			out.differ = append(out.differ, r.extreme(of.pairs))
		case slices.ContainsFunc(of.pairs, different) && !of.card.Unknown:
			out.differ = append(out.differ, of.card.Headline)
		case len(of.pairs) > 0 && !slices.ContainsFunc(of.pairs, unequal) && !(failed && of.q == &speedQuestion):
			out.same = append(out.same, of.q.Same)
		}
	}
	if r.addOutput(&out, a); len(out.differ) == 0 && len(out.same) < 2 {
		return ""
	}
	return out.write("")
}

// extreme says which of the cells that a plan varies is the slowest or the fastest, and by how much: one that differs
// from the reference cell, and whose interval lies apart from every other cell's. It is empty if there is none.
func (r view) extreme(pairs []pair) string {
	var cells []*compare.Cell
	for _, p := range pairs {
		cells = explain.AppendNew(explain.AppendNew(cells, p.a), p.b)
	}
	if r.topic() != ofCells || len(cells) < 3 || len(pairs) != len(cells)-1 {
		return "" // not all are compared with one
	}
	for i := range pairs {
		p := &pairs[i]
		if p.Outcome != verdict.Different {
			continue
		}
		name, cell := p.names()[0], p.a
		if next := pairs[(i+1)%len(pairs)]; next.a == p.a || next.b == p.a { // the reference cell
			name, cell = p.names()[1], p.b
		}
		format, fastest := explain.TitleSlowest, (p.Better == 0) == (cell == p.a)
		if fastest {
			format = explain.TitleFastest
		}
		if !apart(cell, cells, fastest) {
			continue
		}
		text := fmt.Sprintf(format, name, len(cells))
		f := r.single(&speedQuestion, p)
		if size, ok := strings.CutPrefix(f.Headline, name+" is "); ok {
			text += ", " + size + f.interval
		}
		return text
	}
	return ""
}

// apart reports whether the interval of a cell's speed lies above, or below, that of every other cell.
func apart(cell *compare.Cell, all []*compare.Cell, above bool) bool {
	own := speed(cell).Interval
	return own != nil && !slices.ContainsFunc(all, func(c *compare.Cell) bool {
		i := speed(c).Interval
		return c != cell && (i == nil || above && own.Lo <= i.Hi || !above && own.Hi >= i.Lo)
	})
}

// addOutput adds what is said of the output.
func (r view) addOutput(out *clauses, a *Answer) {
	unlike := func(p parity.Parity) bool { return !p.Compared || !p.Identical || p.Scores.Differs() }
	switch {
	case a.Output.Unknown || a.Output.Headline == "" || len(r.Parity) == 0:
	case len(out.differ) > 0 && len(out.same) > 0 && !slices.ContainsFunc(r.Parity, unlike):
		out.same = append(out.same, "output")
	default:
		out.other = append(out.other, explain.Lower(a.Output.Headline))
	}
}

// growthTitle says by how much the KV cache, or else memory, grows with each token of the context.
func (r view) growthTitle() string {
	var engines evidence.Groups[string, string] // by what is said of them
	what := ""
	for _, s := range r.Sweeps {
		if s.Axis != growth.AxisContext {
			continue
		}
		rate, _ := quotedSlope(&s)
		if rate == nil || rate.Of != growth.OfReserved {
			return "" // memory has an interval, which the card gives
		}
		what = "KV cache"
		in := fmt.Sprintf("%s KiB a token in %%s", explain.Amount(rate.Center()/1024))
		if rate.DType != "" {
			in += fmt.Sprintf(" (%s)", rate.DType)
		}
		evidence.AddNew(&engines, in, r.Cells[s.Cells[0]].Title())
	}
	var words []string
	for format, who := range engines.All() {
		words = append(words, fmt.Sprintf(format, explain.And(who, 3)))
	}
	if len(words) == 0 || len(words) > 3 {
		return ""
	}
	for i := range words[1:] { // the unit is said once
		words[i+1] = strings.Replace(words[i+1], " KiB a token", "", 1)
	}
	return what + ": " + strings.Join(words, ", ")
}
