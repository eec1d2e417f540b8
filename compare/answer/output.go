package answer

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
)

// outputCard says whether cells generated the same output; if none are compared, whether the launches of each cell did.
func (r view) outputCard() Card {
	if len(r.Parity) == 0 {
		return r.selfCard()
	}
	refuted := slices.ContainsFunc(r.Cells, func(c *compare.Cell) bool { return c.Scores.Differs() })
	name := func(cell int) string { return r.cellTitle(r.Cells[cell]) }
	headline, text, known := parity.Answer(r.Parity, name, refuted)
	c := Card{Name: "Output", Headline: headline, Text: text + ".", Unknown: !known}
	if p := r.Parity[0]; len(r.Parity) == 1 && p.Identical && p.Tokens > 0 {
		scores := explain.ScoresNotChecked
		if p.Scores != nil {
			scores = p.Scores.Words()
			if p.Scores.Known() && p.Scores.Max == 0 {
				scores = explain.AnswerNoNats
			} else if p.Scores.Known() && p.Scores.Within {
				scores = fmt.Sprintf(explain.AnswerNats, parity.Nats(p.Scores.Max))
			}
		}
		c.Line = fmt.Sprintf(explain.AnswerLine, p.Agreed, p.Tokens, scores)
	}
	other := func(p parity.Parity) bool { return p.Scores.Differs() }
	if len(r.Parity) > 1 && known && !slices.ContainsFunc(r.Parity, other) { // the headline has the scores
		line, _, _ := strings.Cut(text, ";")
		c.Line = line + "."
	}
	return r.wrong(c)
}

// wrong changes a card about output if the reference implementation refutes the scores of a cell.
func (r view) wrong(c Card) Card {
	var wrong, right, words []string
	for _, cell := range r.Cells {
		switch s := cell.Scores; {
		case s.Differs():
			wrong = append(wrong, r.cellTitle(cell))
			words = append(words, fmt.Sprintf("%s against %s: %s.", r.cellTitle(cell), s.With, s.Words()))
		case s.Known():
			right = append(right, r.cellTitle(cell))
		}
	}
	if len(wrong) == 0 {
		return c
	}
	if len(right) > 0 {
		words = append(words, fmt.Sprintf("It agrees with %s.", explain.And(right, 3)))
	}
	c.Headline, c.Unknown = "Wrong scores: "+explain.And(wrong, 2), false
	c.Text = strings.TrimSpace(strings.Join(words, " ") + " " + c.Text)
	return c
}

// selfCard says whether the launches of each cell agree.
func (r view) selfCard() Card {
	known, identical, text := 0, 0, ""
	for _, c := range r.Cells {
		if s := c.Self; s.Known {
			known, text = known+1, explain.Capital(s.Verdict)+"."
			if s.Identical {
				identical++
			}
		}
	}
	if known > 1 {
		text = fmt.Sprintf("%d of %d cells gave the same output in every launch.", identical, known)
	}
	switch {
	case known == 0 && r.right():
		return Card{Name: "Output", Headline: "Right scores", Text: strings.TrimSpace(r.anchored())}
	case known == 0:
		return r.wrong(Card{Name: "Output"}).orNone()
	case identical == known && r.right():
		return Card{Name: "Output", Headline: "Repeatable, right scores", Text: text + r.anchored()}
	case identical == known:
		return r.wrong(Card{Name: "Output", Headline: "Repeatable", Text: text + r.anchored()})
	}
	return r.wrong(Card{Name: "Output", Headline: "Not repeatable", Text: text + r.anchored()})
}

// orNone is the card, or an empty one if it has no headline.
func (c Card) orNone() Card {
	if c.Headline == "" {
		return Card{}
	}
	return c
}

// right reports whether the reference implementation confirms every cell's scores.
func (r view) right() bool {
	return !slices.ContainsFunc(r.Cells, func(c *compare.Cell) bool { return !c.Scores.Known() || c.Scores.Differs() })
}

// anchored says how far scores are from the reference implementation's, for the cell where they are farthest.
func (r view) anchored() string {
	var farthest *compare.Cell
	for _, c := range r.Cells {
		if c.Scores.Known() && !c.Scores.Differs() && (farthest == nil || c.Scores.Max > farthest.Scores.Max) {
			farthest = c
		}
	}
	if farthest == nil {
		return ""
	}
	return fmt.Sprintf(" %s and %s: %s.", r.cellTitle(farthest), farthest.Scores.With, farthest.Scores.Words())
}
