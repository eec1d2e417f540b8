package parity

import (
	"fmt"
	"slices"
	"strings"
)

// Matrix sets all cells of one model and prompt against each other.
type Matrix struct {
	Title string          `json:"title"` // the model and the prompt, in words
	Cells []int           `json:"cells"` // indexes into Result.Cells: the rows, and the columns
	Rows  [][]MatrixEntry `json:"rows"`
}

// MatrixEntry is one pair, in few words.
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

// Matrices puts the pairs into tables, in the order of the cells. alike tells whether two are about the same task, self
// how each agrees with itself.
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
		e.Forced = fmt.Sprintf("forced: %d of %d", f.Agreed, f.Positions)
	}
	return e
}

func (s SelfParity) entry() MatrixEntry {
	e := MatrixEntry{Parity: -1, State: ByItself, Text: "not known"}
	switch {
	case s.Identical:
		e.Text = fmt.Sprintf("%d the same", s.Sequences)
	case s.Known:
		e.Text = "differs from itself"
	}
	return e
}

// State is what came of the comparison.
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
		return "not compared"
	case p.ByText && state == Parting:
		return fmt.Sprintf("text differs from byte %d on", p.Shared+1)
	case p.ByText && state == Shorter:
		return "same text as far as both go"
	case p.ByText:
		return "same text"
	case p.First == nil:
		return fmt.Sprintf("%d of %d", p.Agreed, p.Tokens)
	}
	text := fmt.Sprintf("%d of %d", p.Agreed, p.Tokens)
	if widest, known := p.First.widest(); known {
		text += fmt.Sprintf(", %s apart", Nats(widest))
	}
	return text
}

// widest is the larger of the distances that had to be turned, of those that are known.
func (d *Divergence) widest() (widest float64, known bool) {
	for _, m := range []*Margin{d.MarginA, d.MarginB} {
		if m != nil {
			widest, known = max(widest, m.turn), true
		}
	}
	return widest, known
}

// Answer says whether pairs of cells generated the same, in a headline and a text; false where that is not known.
// refuted tells that the reference implementation has decided about scores, so that pairs say nothing of them.
func Answer(pairs []Parity, label func(cell int) string, refuted bool) (headline, text string, known bool) {
	compared := slices.DeleteFunc(slices.Clone(pairs), func(p Parity) bool { return !p.Compared })
	identical := 0
	for _, p := range compared {
		identical += one(p.Identical)
	}
	n := len(compared)
	if n == 0 {
		return "Not compared", strings.TrimPrefix(pairs[0].Verdict, "not compared: "), false
	}
	words := ""
	if !refuted {
		words = scores(compared, label)
	}
	if n > 1 {
		text = fmt.Sprintf("pairs of cells generated identical %s from %s", whatWasCompared(compared), fromWhat(compared))
		of := fmt.Sprintf("all %d", n)
		switch {
		case identical < n:
			return fmt.Sprintf("Same tokens in %d of %d pairs", identical, n),
				fmt.Sprintf("%d of %d %s%s%s", identical, n, text, ties(compared), words), true
		case n == 2:
			of = "both"
		}
		return fmt.Sprintf("%s in %s pairs", same(compared), of),
			fmt.Sprintf("All %d %s%s", n, text, words), true
	}
	p := compared[0]
	a, b := label(p.A), label(p.B)
	switch {
	case p.Identical && p.ByText:
		return same(compared), fmt.Sprintf("%s and %s: %s%s", a, b, p.Verdict, words), true
	case p.Identical:
		return same(compared), fmt.Sprintf("%s and %s generated the same %d tokens, id by id, from %s%s%s", a, b, p.Tokens,
			fromWhat(compared), words, p.but), true
	case p.First != nil:
		headline = fmt.Sprintf("Different from token %d", p.Agreed+1)
		return headline, strings.TrimPrefix(p.Verdict, strings.ToLower(headline)+" on: ") + words, true
	}
	return "Different", p.Verdict + words, true
}

// same is the headline of pairs that all generated the same.
func same(pairs []Parity) string {
	unlike := func(p Parity) bool { return !p.Scores.Known() || p.Scores.Differs() }
	switch {
	case slices.ContainsFunc(pairs, func(p Parity) bool { return p.Scores.Differs() }):
		return "Same tokens, other scores"
	case !slices.ContainsFunc(pairs, unlike):
		return "Same tokens, same scores"
	case !slices.ContainsFunc(pairs, func(p Parity) bool { return !p.ByText }):
		return "Same text"
	}
	return "Same tokens"
}

// scores says what came of the pairs' score checks: of those that differ, or in which least is known, first.
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
		return fmt.Sprintf("; %s and %s: %s", label(differ.A), label(differ.B), differ.Scores.Words())
	case within != nil && n < len(pairs):
		return fmt.Sprintf("; %s, in %d of %d pairs%s", within.Scores.Words(), n, len(pairs), absent)
	case within != nil:
		return "; " + within.Scores.Words()
	}
	if absent == "" {
		absent = "; scores not checked"
	}
	return absent
}

// fromWhat claims no more of the weights than is known.
func fromWhat(pairs []Parity) string {
	if slices.ContainsFunc(pairs, func(p Parity) bool { return len(p.Unverified) > 0 }) {
		return "the same prompt and unverified weights of the same name"
	}
	if slices.ContainsFunc(pairs, func(p Parity) bool { return p.rounded }) {
		return "the same model and prompt"
	}
	return "the same weights and prompt"
}

func whatWasCompared(pairs []Parity) string {
	texts := 0
	for _, p := range pairs {
		texts += one(p.ByText)
	}
	switch texts {
	case 0:
		return "tokens"
	case len(pairs):
		return "text"
	}
	return fmt.Sprintf("output (%d by tokens, %d by text)", len(pairs)-texts, texts)
}
