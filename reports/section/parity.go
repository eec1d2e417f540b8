package section

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/parity"
	"llmparity/internal/kit/safe"
	"llmparity/internal/kit/words"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// paritySection has one line per pair and cell; the page shows the tokens of each pair.
func paritySection(v *chart.View) Section {
	if len(v.Res.Cells) == 0 {
		return Section{}
	}
	itself := plain.PerCell(v.Res, []string{"cell", "over its launches"},
		func(c *compare.Cell, add func(...string)) { add(c.Self.Verdict) })
	parts := []Section{{For: InTerminal | Document, Lines: append(parityLines(v.Res), selfLines(v.Res)...), Mark: "- "},
		{Title: "Score check", Lines: scoreWords(v.Res), Grid: scoreGrid(v.Res)}}
	for _, m := range v.Res.Matrices {
		if len(m.Cells) == 2 {
			continue // the pair has it
		}
		parts = append(parts, Section{For: OnPage, Grid: matrixGrid(v.Res, m)})
	}
	var pairs []parityBlock
	for i, pair := range v.Res.Parity {
		pairs = append(pairs, newParityBlock(v, i, pair))
		pairs[i].Last = i == len(v.Res.Parity)-1
		pairs[i].More = words.Count(len(v.Res.Parity)-pairsShown, "more pair")
	}
	return Section{ID: "parity", Title: "Parity", Parts: append(parts,
		Section{For: OnPage, View: "parity", Data: pairs},
		Section{Title: "Each cell with itself", For: OnPage, Folded: len(v.Res.Parity) > 0 && repeatable(v.Res),
			Grid: itself})}
}

// repeatable reports whether all launches of each cell gave the same output.
func repeatable(res *compare.Result) bool {
	return !slices.ContainsFunc(res.Cells, func(c *compare.Cell) bool { return !c.Self.Identical })
}

// scoreWords say what the score check is, where there was one.
func scoreWords(res *compare.Result) []string {
	if scoreGrid(res) == nil {
		return nil
	}
	return []string{"Each engine scored one text. The table has the largest difference of the log-probabilities of " +
		"one token, in nats, and the largest that rounding explains."}
}

// scoreGrid has a row per comparison, those with the reference implementation first; nil if there was none.
func scoreGrid(res *compare.Result) *plain.Grid {
	g := &plain.Grid{Name: "Score check", Head: []string{"cell", "compared with", "positions", "step by step", "apart",
		"step by step, apart", "explained", "by", "result"}}
	add := func(cell string, with string, c *parity.Check) {
		if c == nil {
			return
		}
		row := []string{plain.Line(cell), plain.Line(with), "–", "–", "–", "–", "–", "–",
			plain.Line("not checked: " + c.Absent)}
		if c.Known() {
			row = append(row[:2], fmt.Sprint(c.Positions), fmt.Sprint(c.Positions-c.AsPrompt), parity.Nats(c.Max),
				parity.Nats(c.MaxSteps), parity.Nats(c.Nats), c.Arithmetic, "same scores")
			if c.Differs() {
				row[8] = "scores differ"
			}
			if c.Yardstick != nil {
				row[7] += ", by this model's yardstick"
			}
		}
		g.Rows = append(g.Rows, row)
	}
	for _, c := range res.Cells {
		if c.Scores != nil {
			add(c.Label, c.Scores.With, c.Scores)
		}
	}
	for _, p := range res.Parity {
		add(res.Cells[p.A].Label, res.Cells[p.B].Label, p.Scores)
	}
	return g.OrNil()
}

// selfLines say how cells agree with themselves, once for all cells with the same answer.
func selfLines(res *compare.Result) []string {
	var verdicts evidence.Groups[string, string]
	for _, c := range res.Cells {
		evidence.AddNew(&verdicts, c.Self.Verdict, c.Label)
	}
	return verdicts.Lines(func(verdict string, cells []string) string {
		switch len(cells) {
		case 1:
			return fmt.Sprintf("%s with itself: %s.", cells[0], verdict)
		case len(res.Cells):
			return fmt.Sprintf("Each cell with itself: %s.", verdict)
		}
		return fmt.Sprintf("Each of these with itself: %s: %s.", verdict, strings.Join(cells, "; "))
	})
}

// matrixGrid says of each two cells how far they agree.
func matrixGrid(res *compare.Result, m parity.Matrix) *plain.Grid {
	g := &plain.Grid{Name: "Parity of all engines with each other: " + plain.Line(m.Title), Head: []string{plain.Line(m.Title)}}
	for i, c := range m.Cells {
		name := plain.Line(res.Cells[c].Label)
		row := []string{name}
		for _, e := range m.Rows[i] {
			row = append(row, strings.TrimSpace(plain.Line(e.Text)+" "+e.Forced))
		}
		g.Head, g.Rows = append(g.Head, name), append(g.Rows, row)
	}
	return g
}

// pairsShown is how many pairs the page does not fold together.
const pairsShown = 3

// parityBlock is a pair, as the page shows it.
type parityBlock struct {
	parity.Parity
	Number           int    // from 1
	Last             bool   // of all
	More             string // how many pairs are folded together
	A, B             string // labels
	ColourA, ColourB template.CSS
	Tie              *plain.Grid // how close each engine's choice was at the first difference
	Title            string      // of the tokens
	Around           []tokenPair
	Common           string // what both texts begin with
	RestA, RestB     string
	Scored           *forcedPart
}

type tokenPair struct {
	Index        int // from 1
	A, B         string
	TextA, TextB string // empty: not known
	Differs      bool
}

// forcedPart is what both engines predict at each position of one text.
type forcedPart struct {
	Sentence, Own, Distance string
	Positions               int
	Differing               []int // places from 0
	Places                  string
	Rows                    *plain.Grid // some of them
}

// shownTokens is how many tokens the table around a difference has, and shownForced how many places at which engines
// differ have a row.
const (
	shownTokens = 24
	shownForced = 12
)

func newParityBlock(v *chart.View, i int, p parity.Parity) parityBlock {
	b := parityBlock{Parity: p, Number: i + 1,
		A: plain.Line(v.Res.Cells[p.A].Label), B: plain.Line(v.Res.Cells[p.B].Label),
		ColourA: template.CSS(v.Colour(p.A)), ColourB: template.CSS(v.Colour(p.B)),
		Title: "The first tokens", Common: safe.Text(p.TextA[:p.Shared]), RestA: safe.Text(p.TextA[p.Shared:]),
		RestB: safe.Text(p.TextB[p.Shared:])}
	a, c := textsOf(v.Res, p.A), textsOf(v.Res, p.B)
	longest := max(len(p.IDsA), len(p.IDsB))
	from := 0
	if p.Compared && !p.Identical && longest > 0 {
		from = max(0, p.Agreed-shownTokens/2)
		b.Title = "Tokens around the first difference"
	}
	for i := from; i < min(longest, from+shownTokens); i++ {
		idA, textA := a.at(p.IDsA, i)
		idB, textB := c.at(p.IDsB, i)
		b.Around = append(b.Around, tokenPair{i + 1, idA, idB, textA, textB, idA != idB})
	}
	if p.First != nil {
		b.Tie = tieGrid(b, p.First, a, c)
	}
	if p.Forced != nil {
		b.Scored = newForcedPart(b, p.Forced, a, c)
	}
	return b
}

// tieGrid is nil where no engine reports how close its choice was.
func tieGrid(b parityBlock, d *parity.Divergence, a, c texts) *plain.Grid {
	g := &plain.Grid{Name: fmt.Sprintf("How close the choice was, at token %d", d.Index+1),
		Head: []string{"engine", "first choice", "second choice", "difference (nats)"}}
	add := func(name string, m *parity.Margin, of texts) {
		if m != nil {
			g.Rows = append(g.Rows, []string{name, of.token(m.ID), of.token(m.NextID), plain.Num(m.Nats)})
		}
	}
	add(b.A, d.MarginA, a)
	add(b.B, d.MarginB, c)
	return g.OrNil()
}

// forcedSentence says how often both engines predict the same token.
func forcedSentence(f *parity.Forced) string {
	return fmt.Sprintf("At %d of %d positions of the text of %s (%s%%), both engines predict the same token.", f.Agreed,
		f.Positions, plain.Line(f.Of), plain.Num(100*f.Share))
}

func newForcedPart(b parityBlock, f *parity.Forced, a, c texts) *forcedPart {
	out := &forcedPart{Positions: f.Positions, Sentence: forcedSentence(f),
		Own: fmt.Sprintf("%s predicts the given token at %d of them, %s at %d.", b.A, f.OwnA, b.B, f.OwnB)}
	rows := &plain.Grid{Name: "Where the predicted tokens differ",
		Head: []string{"token", b.A + " predicts", "ahead by", b.B + " predicts", "ahead by"}}
	var places []string
	for i, d := range f.Differing {
		out.Differing = append(out.Differing, d.Index)
		if place := fmt.Sprint(d.Index + 1); i < shownForced {
			places = append(places, place)
			rows.Rows = append(rows.Rows, []string{place, a.token(d.MarginA.ID), plain.Num(d.MarginA.Nats),
				c.token(d.MarginB.ID), plain.Num(d.MarginB.Nats)})
		}
	}
	out.Rows, out.Places = rows.OrNil(), strings.Join(places, ", ")
	if more := len(f.Differing) - len(places); more > 0 {
		out.Places += fmt.Sprintf(" and %d more", more)
	}
	if d := f.Distance; d != nil {
		out.Distance = fmt.Sprintf("Log-probabilities of the same tokens differ by %s on average and by at most %s, at token %d; for tokens with "+
			"a probability of 1%% or more, by at most %s. Based on %d log-probabilities that both engines report.", plain.Num(d.Mean), plain.Num(d.Max),
			d.MaxAt+1,
			plain.Num(d.MaxLikely), d.Compared)
		out.Distance += fmt.Sprintf(" The Kullback-Leibler divergence is at least %s nats per token on average and at least %s at its highest; it is a "+
			"lower bound, because only the most likely tokens are known one by one.", plain.Num(d.KLMean), plain.Num(d.KLMax))
	}
	return out
}

// texts are those of tokens in a run; nil if unknown.
type texts map[int]string

func textsOf(res *compare.Result, cell int) texts { return res.Runs[res.Cells[cell].Run].Pieces }

var spaces = strings.NewReplacer(" ", "␣", "\n", "⏎", "\t", "⇥")

// text is a token with its spaces made visible; empty if unknown.
func (t texts) text(id int) string { return plain.Shorten(plain.Line(spaces.Replace(t[id])), 24) }

// token is a token by its text and id.
func (t texts) token(id int) string {
	if text := t.text(id); text != "" {
		return fmt.Sprintf("%s (%d)", text, id)
	}
	return fmt.Sprint(id)
}

// at is a token of an answer by its id and text; a dash and nothing behind its end.
func (t texts) at(ids []int, i int) (id, text string) {
	if i >= len(ids) {
		return "–", ""
	}
	return fmt.Sprint(ids[i]), t.text(ids[i])
}

// parityLines has one line per pair for the terminal.
func parityLines(res *compare.Result) []string {
	var out []string
	for _, p := range res.Parity {
		a, b := res.Cells[p.A].Label, res.Cells[p.B].Label
		text := fmt.Sprintf("%s and %s: %s. Prompt: %s.", a, b, p.Verdict, p.Tokenisation)
		if f := p.Forced; f != nil {
			text += " " + forcedSentence(f)
			if d := f.Distance; d != nil {
				text += fmt.Sprintf(" Log-probabilities differ by up to %s; for tokens with a probability of 1%% or more, by up to %s.",
					plain.Num(d.Max), plain.Num(d.MaxLikely))
			}
		}
		out = append(out, text)
	}
	return out
}
