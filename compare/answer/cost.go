package answer

import (
	"fmt"
	"slices"

	"llmparity/compare"
	"llmparity/compare/cost"
	"llmparity/compare/explain"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
)

// costCard says what the browser costs where one library computes on the CPU in a page and outside of it. It is empty
// without such a pair, and with several: the section has all.
func (r view) costCard() Card {
	if len(r.Costs) != 1 {
		return Card{}
	}
	c := r.Costs[0]
	decode := decodeOf(c)
	if decode == nil {
		return Card{}
	}
	page, program := r.Cells[c.Browser], r.Cells[c.Native]
	share := decode.Whole.Inverse()
	out := Card{Name: "The browser's cost",
		Headline: fmt.Sprintf(explain.CostHeadline, page.Title(), explain.Amount(share.Times), program.Title())}
	sure := "Too few launches for an interval"
	if share.Interval != nil {
		sure = explain.Interval(share.Interval, explain.Amount)
	}
	threads := page.Threads()
	if threads == "" {
		threads = "as many threads"
	}
	out.Line = explain.Capital(fmt.Sprintf(explain.CostSame, sure, threads))
	out.Text = out.Line + " " + CostSentence(r.Result, c)
	return out
}

// costTitle begins with what the browser costs; empty without it, and where runs or a gate are the question.
func (r view) costTitle(a *Answer) string {
	if a.Cost.Headline == "" || r.topic() == ofRuns || r.Gate != nil {
		return ""
	}
	out := clauses{differ: []string{a.Cost.Headline}}
	if q := &memoryQuestion; r.topic() == ofEngines {
		if least := q.winner(r.pairs(q), r.Cells); least != nil {
			out.other = append(out.other, fmt.Sprintf(q.BestOf, r.cellTitle(least)))
		}
	}
	r.addOutput(&out, a)
	return out.write("")
}

// onlyCost reports whether speeds differ in no other pair of cells than that of the browser's cost.
func (r view) onlyCost() bool {
	c := r.Costs[0]
	return !slices.ContainsFunc(r.pairs(&speedQuestion), func(p pair) bool {
		of := []*compare.Cell{p.a, p.b}
		both := slices.Contains(of, r.Cells[c.Browser]) && slices.Contains(of, r.Cells[c.Native])
		return p.Outcome != verdict.NotComparable && !both
	})
}

// CostSentence says of which shares the time of a decoded token consists.
func CostSentence(r *compare.Result, c *cost.Cost) string {
	decode := decodeOf(c)
	if decode == nil {
		return ""
	}
	text := fmt.Sprintf(explain.CostOf, r.Cells[c.Browser].Title(), explain.Amount(decode.Whole.Times))
	wide, narrow := c.NativeVector, c.BrowserVector
	switch {
	case decode.Vectors != nil && decode.Rest != nil:
		text += fmt.Sprintf(explain.CostShares, explain.Amount(decode.Vectors.Times), narrow, wide,
			explain.Amount(decode.Rest.Times), c.Library)
	case wide > narrow && narrow > 0:
		text += fmt.Sprintf(explain.CostUnsplit, narrow, wide)
	default:
		text += explain.CostUnknown
	}
	return text
}

// decodeOf is the row of decoded tokens; nil: it is not known.
func decodeOf(c *cost.Cost) *cost.Row {
	for i := range c.Rows {
		if c.Rows[i].Figure == figure.DecodeTPS {
			return &c.Rows[i]
		}
	}
	return nil
}
