package parity

import (
	"fmt"
	"llmparity/compare/explain"
	"slices"
	"strings"
)

// Matrix is a table of all cells of one model and prompt against each other.
type Matrix struct {
	Title string          `json:"title"` // the model and the prompt, in words
	Cells []int           `json:"cells"` // indexes into Result.Cells: the rows, and the columns
	Rows  [][]MatrixEntry `json:"rows"`
}

// MatrixEntry is one pair of cells.
type MatrixEntry struct {
	Parity int    `json:"parity"` // index into Result.Parity; -1: none
	State  string `json:"state"`  // Agreeing, Shorter, Parting, ByItself …
	Text   string `json:"text"`   // of the free runs
	Forced string `json:"teacher_forced,omitempty"`
}

// The states of a pair.
const (
	Agreeing    = "identical"
	Shorter     = "identical_as_far_as_both_go"
	Parting     = "different"
	NotCompared = "not_compared"
	ByItself    = "itself" // a cell's launches against each other
)

// Matrices puts pairs into tables, in the order of the cells. alike reports whether two cells have the same task, and
// self how each agrees with itself.
func Matrices(pairs []Parity, alike func(a, b int) bool, self func(cell int) SelfParity) []Matrix {
	out := []Matrix{}
	for _, p := range pairs {
		at := slices.IndexFunc(out, func(m Matrix) bool { return alike(m.Cells[0], p.A) })
		if at < 0 {
			out = append(out, Matrix{})
			at = len(out) - 1
		}
		for _, c := range []int{p.A, p.B} {
			if !slices.Contains(out[at].Cells, c) {
				out[at].Cells = append(out[at].Cells, c)
			}
		}
	}
	for i := range out {
		m := &out[i]
		slices.Sort(m.Cells)
		for _, a := range m.Cells {
			var row []MatrixEntry
			for _, b := range m.Cells {
				if a == b {
					row = append(row, self(a).entry())
				} else {
					row = append(row, entry(pairs, a, b))
				}
			}
			m.Rows = append(m.Rows, row)
		}
	}
	return out
}

func entry(pairs []Parity, a, b int) MatrixEntry {
	k := slices.IndexFunc(pairs, func(p Parity) bool { return p.A == min(a, b) && p.B == max(a, b) })
	if k < 0 {
		return MatrixEntry{Parity: -1, State: NotCompared}
	}
	p := &pairs[k]
	e := MatrixEntry{Parity: k, State: p.State(), Text: p.short()}
	if f := p.Forced; f != nil {
		e.Forced = fmt.Sprintf(explain.TableForced, f.Agreed, f.Positions)
	}
	return e
}

func (s SelfParity) entry() MatrixEntry {
	e := MatrixEntry{Parity: -1, State: ByItself, Text: explain.TableSelfUnknown}
	switch {
	case s.Identical:
		e.Text = fmt.Sprintf(explain.TableSelfSame, s.Sequences)
	case s.Known:
		e.Text = explain.TableSelfDiffers
	}
	return e
}

// State is the code of the comparison's result.
func (p *Parity) State() string {
	switch {
	case !p.Compared:
		return NotCompared
	case p.Identical:
		return Agreeing
	case p.First != nil, p.ByText && p.Shared < min(len(p.TextA), len(p.TextB)):
		return Parting
	}
	return Shorter
}

func (p *Parity) short() string {
	switch state := p.State(); {
	case state == NotCompared:
		return explain.TableNotCompared
	case p.ByText && state == Parting:
		return fmt.Sprintf(explain.TableTextDiffers, p.Shared+1)
	case p.ByText && state == Shorter:
		return explain.TableShorterText
	case p.ByText:
		return explain.TableSameText
	case p.First != nil:
		if widest, known := p.First.widest(); known {
			return fmt.Sprintf(explain.TableApart, p.Agreed, p.Tokens, Nats(widest))
		}
	}
	return fmt.Sprintf(explain.TableAgreed, p.Agreed, p.Tokens)
}

// widest is the largest known gap that the two tokens had to close.
func (d *Divergence) widest() (widest float64, known bool) {
	for _, m := range []*Margin{d.MarginA, d.MarginB} {
		if m != nil {
			widest, known = max(widest, m.gap), true
		}
	}
	return widest, known
}

// others names pairs whose output is not identical.
func others(pairs []Parity, label func(cell int) string) string {
	const most = 2
	var names []string
	for _, p := range pairs {
		if !p.Identical {
			names = append(names, fmt.Sprintf(explain.AnswerWith, label(p.A), label(p.B)))
		}
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf(explain.AnswerMore, len(names)-most))
	}
	return fmt.Sprintf(explain.AnswerOthers, strings.Join(names, "; "))
}

// Answer says in a headline and a sentence whether pairs of cells generated the same output; known is false if none was
// compared. With refuted, the reference implementation has judged the scores, and the pairs' scores are left out.
func Answer(pairs []Parity, label func(cell int) string, refuted bool) (headline, text string, known bool) {
	compared := slices.DeleteFunc(slices.Clone(pairs), func(p Parity) bool { return !p.Compared })
	identical := 0
	for _, p := range compared {
		identical += one(p.Identical)
	}
	n := len(compared)
	if n == 0 {
		return explain.AnswerNotCompared, pairs[0].detail.sentence, false
	}
	words := ""
	if !refuted {
		words = scores(compared, label)
	}
	if n > 1 {
		by, from := comparedBy(compared), fromWhat(compared)
		if identical < n {
			text = fmt.Sprintf(explain.AnswerPairs, identical, n, by, from)
			return fmt.Sprintf(explain.AnswerSameIn, identical, n),
				text + others(compared, label) + ties(compared) + words, true
		}
		headline = fmt.Sprintf(explain.AnswerInAll, same(compared), n)
		if n == 2 {
			headline = fmt.Sprintf(explain.AnswerInBoth, same(compared))
		}
		return headline, fmt.Sprintf(explain.AnswerAllPairs, n, by, from) + words, true
	}
	p := compared[0]
	a, b := label(p.A), label(p.B)
	switch {
	case p.Identical && p.ByText:
		return same(compared), fmt.Sprintf(explain.AnswerText, a, b, p.Verdict) + words, true
	case p.Identical:
		return same(compared),
			fmt.Sprintf(explain.AnswerTokens, a, b, p.Tokens, fromWhat(compared)) + words + p.but, true
	case p.First != nil:
		return fmt.Sprintf(explain.AnswerDiffersAt, p.Agreed+1), p.detail.sentence + words, true
	}
	return explain.AnswerDiffers, p.detail.sentence + words, true
}

// same is the headline for pairs that all generated the same.
func same(pairs []Parity) string {
	unlike := func(p Parity) bool { return !p.Scores.Known() || p.Scores.Differs() }
	switch {
	case slices.ContainsFunc(pairs, func(p Parity) bool { return p.Scores.Differs() }):
		return explain.AnswerOtherScores
	case !slices.ContainsFunc(pairs, unlike):
		return explain.AnswerSameScores
	case !slices.ContainsFunc(pairs, func(p Parity) bool { return !p.ByText }):
		return explain.AnswerSameText
	}
	return explain.AnswerSame
}

// scores is the result of the pairs' score checks: first of those that differ, then of those within the tolerance.
func scores(pairs []Parity, label func(cell int) string) string {
	var differ, within *Parity
	n, absent := 0, ""
	for i := range pairs {
		switch p := &pairs[i]; {
		case p.Scores.Differs() && (differ == nil || p.Scores.Max > differ.Scores.Max):
			differ = p
		case p.Scores.Differs():
		case p.Scores.Known():
			if n++; within == nil || p.Scores.Max > within.Scores.Max {
				within = p
			}
		case p.Scores != nil && absent == "":
			absent = "; " + p.Scores.Words()
		}
	}
	switch {
	case differ != nil:
		return fmt.Sprintf(explain.AnswerScores, label(differ.A), label(differ.B), differ.Scores.Words())
	case within != nil && n < len(pairs):
		return fmt.Sprintf(explain.AnswerScoresOfSome, within.Scores.Words(), n, len(pairs)) + absent
	case within != nil:
		return "; " + within.Scores.Words()
	}
	if absent == "" {
		absent = "; " + explain.ScoresNotChecked
	}
	return absent
}

// fromWhat says what the outputs come from, and claims no more about the weights than is known.
func fromWhat(pairs []Parity) string {
	if slices.ContainsFunc(pairs, func(p Parity) bool { return len(p.Unverified) > 0 }) {
		return explain.FromUnverified
	}
	if slices.ContainsFunc(pairs, func(p Parity) bool { return p.rounded }) {
		return explain.FromModel
	}
	return explain.FromWeights
}

func comparedBy(pairs []Parity) string {
	texts := 0
	for _, p := range pairs {
		texts += one(p.ByText)
	}
	switch texts {
	case 0:
		return explain.ByTokens
	case len(pairs):
		return explain.ByText
	}
	return fmt.Sprintf(explain.ByBoth, len(pairs)-texts, texts)
}
