package matrix

import (
	"fmt"
	"slices"

	"llmparity/compare/parity"
)

// judge returns a field for each cell.
func judge(cells []Cell, pairs []parity.Parity) []Field {
	j := &judgement{cells: cells, pairs: pairs, fields: make([]Field, len(cells))}
	for i, c := range cells {
		j.fields[i] = ended(i, c)
	}
	for i := range cells {
		j.byReference(i)
	}
	for i := range cells {
		j.byOthers(i)
	}
	for _, p := range pairs {
		j.byTokens(p)
	}
	for i := range cells {
		j.unclear(i)
	}
	return j.fields
}

// judgement decides cells one after another: by what is most certain first.
type judgement struct {
	cells  []Cell
	pairs  []parity.Parity
	fields []Field // one without a state is open
}

// ended is the field of a cell that has no output; one without a state has some.
func ended(at int, c Cell) Field {
	f := Field{Cell: at}
	switch {
	case c.Absent:
		f.State = None
	case c.Refused != "":
		f.State, f.Text = Refused, c.Refused
	case c.Error != "" || c.Class != "":
		f.State, f.Class, f.Text = Failed, string(c.Class), c.Error
	case c.Counted == 0:
		f.State, f.Class = Failed, c.Ended
	case c.Unstable != "":
		f.State, f.Text, f.From = Differs, c.Unstable, "itself"
	}
	return f
}

// byReference decides a cell by the reference implementation's scores. Wrong scores tell more than how a launch failed.
func (j *judgement) byReference(i int) {
	f, s := &j.fields[i], j.cells[i].Scores
	switch {
	case f.State == Refused || !s.Known():
	case s.Differs():
		f.State, f.From, f.Text = Differs, s.With, j.apart(i, s)
	case f.State == "":
		f.State, f.From, f.Text = OK, s.With, s.Words()
	}
}

// apart says how far the scores are apart, where, and which token shows it.
func (j *judgement) apart(i int, s *parity.Check) string {
	text := fmt.Sprintf("%s, at position %d of %d", s.Words(), s.MaxAt, s.Positions)
	if s.MaxSteps <= s.Nats {
		text += ", as a prompt alone"
	} else if s.MaxSteps == s.Max {
		text += ", step by step"
	}
	for _, p := range j.pairs {
		if o := other(p, i); o >= 0 && p.First != nil && !j.cells[o].Scores.Differs() {
			return text + fmt.Sprintf("; tokens of %s differ from number %d on", j.cells[o].Label, p.First.Index+1)
		}
	}
	return text
}

// other is the other cell of a pair; -1: it is not about this one.
func other(p parity.Parity, i int) int {
	switch i {
	case p.A:
		return p.B
	case p.B:
		return p.A
	}
	return -1
}

// byOthers decides a cell without a reference by the scores of other cells: it is wrong if it differs from more than it
// agrees with.
func (j *judgement) byOthers(i int) {
	f := &j.fields[i]
	if f.State != "" || j.cells[i].Scores.Known() {
		return
	}
	agrees, differs, last := 0, 0, (*parity.Parity)(nil)
	for n := range j.pairs {
		p := &j.pairs[n]
		switch {
		case other(*p, i) < 0 || !p.Scores.Known():
		case p.Scores.Differs():
			differs++
			if last == nil || p.Scores.Max > last.Scores.Max {
				last = p
			}
		default:
			agrees++
			f.Text, f.From = p.Scores.Words(), j.cells[other(*p, i)].Label
		}
	}
	switch {
	case agrees+differs == 0:
	case agrees >= max(1, differs):
		f.State = OK
	default:
		from := other(*last, i)
		f.State, f.From, f.Text = Differs, j.cells[from].Label, j.apart(i, last.Scores)
		if agrees == 0 && differs == 1 {
			f.Text += "; without the reference implementation, either may be wrong"
		}
	}
}

// byTokens decides cells by a pair's tokens. Scores of a text do not show whether an engine draws tokens rightly.
func (j *judgement) byTokens(p parity.Parity) {
	a, b := &j.fields[p.A], &j.fields[p.B]
	switch state := p.State(); {
	case state == parity.NotCompared:
	case state != parity.Parting || p.First != nil && p.First.Rounding:
		j.agrees(p.A, p.B, p)
		j.agrees(p.B, p.A, p)
	case p.First == nil || p.First.Words == "": // nothing says how close the choice was
	default:
		wrongA, wrongB := blamed(p)
		if !wrongA && !wrongB {
			wrongA, wrongB = a.State != OK, b.State != OK
		}
		j.parts(p.A, p.B, wrongA, p)
		j.parts(p.B, p.A, wrongB, p)
	}
}

// agrees notes that an engine without scores generates what a right cell does. One that could not make the score check
// is not right by its tokens.
func (j *judgement) agrees(i, with int, p parity.Parity) {
	if f := &j.fields[i]; f.State == "" && !j.cells[i].Checked && j.fields[with].State == OK {
		f.State, f.From, f.Text = Tokens, j.cells[with].Label, p.Verdict
	}
}

// parts makes a cell wrong whose tokens part from another's.
func (j *judgement) parts(i, from int, wrong bool, p parity.Parity) {
	if f := &j.fields[i]; wrong && (f.State == "" || !f.Wrong()) {
		f.State, f.From, f.Text = Differs, j.cells[from].Label, p.Verdict
	}
}

// blamed says which side generated a token that no engine here finds likeliest, where the other side's is.
func blamed(p parity.Parity) (a, b bool) {
	d := p.First
	likeliest := []int{}
	for _, m := range []*parity.Margin{d.MarginA, d.MarginB} {
		if m != nil {
			likeliest = append(likeliest, m.ID)
		}
	}
	hasA, hasB := slices.Contains(likeliest, d.IDA), slices.Contains(likeliest, d.IDB)
	return !hasA && hasB, hasA && !hasB
}

// unclear closes a cell that nothing decided.
func (j *judgement) unclear(i int) {
	f := &j.fields[i]
	if f.State != "" {
		return
	}
	f.State = Unclear
	if s := j.cells[i].Scores; s != nil {
		f.Text, f.From = s.Words(), s.With
		return
	}
	f.Text = "there is nothing to compare it with"
	for _, p := range j.pairs {
		if o := other(p, i); o >= 0 {
			f.Text, f.From = p.Verdict, j.cells[o].Label
			if j.cells[i].Checked && p.Scores != nil {
				f.Text = p.Scores.Words()
			}
			return
		}
	}
}
