package sides

import (
	"fmt"
	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/reports/plain"
)

// ParityOf is a cell's parity in a word or two; the sentences below say more.
func ParityOf(res *compare.Result, c *compare.Cell) string {
	text, _ := parityOf(res, c)
	return plain.OrDash(text)
}

// IdenticalOf is ParityOf as a sentence of its own; empty if the cell's output is not compared.
func IdenticalOf(res *compare.Result, c *compare.Cell) string {
	text, differs := parityOf(res, c)
	if text == "" || differs {
		return text
	}
	return fmt.Sprintf(explain.TableIdentical, text)
}

func parityOf(res *compare.Result, c *compare.Cell) (text string, differs bool) {
	for _, p := range res.Parity {
		if res.Cells[p.A] != c && res.Cells[p.B] != c || !p.Compared {
			continue
		}
		switch {
		case p.First != nil:
			return fmt.Sprintf(explain.TableDiffersToken, p.Agreed+1), true
		case p.ByText && !p.Identical:
			text, differs = fmt.Sprintf(explain.TableDiffersByte, p.Shared+1), true
		case !p.Identical:
			text, differs = explain.TableInPart, false
		case text == "" && p.Tokens > 0:
			text = fmt.Sprintf(explain.TableAgreed, p.Agreed, p.Tokens)
		case text == "":
			text = explain.TableAsText
		}
	}
	return text, differs
}

// ScoresOf is the result of a cell's score checks in a few words: of the one that lies furthest from its tolerance.
func ScoresOf(res *compare.Result, c *compare.Cell) string {
	all := []*parity.Check{c.Scores}
	for _, p := range res.Parity {
		if res.Cells[p.A] == c || res.Cells[p.B] == c {
			all = append(all, p.Scores)
		}
	}
	var worst *parity.Check
	for _, s := range all {
		if s.Known() && (worst == nil || s.Max/s.Nats > worst.Max/worst.Nats) {
			worst = s
		}
	}
	switch {
	case worst == nil:
		return "–"
	case worst.Within:
		return fmt.Sprintf("within %s (%s: %s)", parity.Nats(worst.Max), worst.Arithmetic, parity.Nats(worst.Nats))
	}
	return fmt.Sprintf("up to %s apart (%s: %s)", parity.Nats(worst.Max), worst.Arithmetic, parity.Nats(worst.Nats))
}

// NoiseOf is the noise of a figure in a few words.
func NoiseOf(x *ratio.Ratio) string {
	if x.Noise == nil {
		return "–"
	}
	short := func(v float64) string { return fmt.Sprintf("%+.2g", v) }
	if i := x.Noise.Interval; i != nil {
		return fmt.Sprintf("%s%% (%s to %s)", short(x.Noise.Percent), short(i.Lo), short(i.Hi))
	}
	return fmt.Sprintf("%s%% (%s)", short(x.Noise.Percent), x.Noise.Note)
}

// Mark explains the mark of figures.
const Mark = "!: launches vary, drift or lie far apart; see the warnings."
