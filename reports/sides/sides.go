// Package sides has the table of the answer: both sides with their difference, or a cell a row. Page, terminal and
// Markdown show the same one. It computes no figure, and knows nothing of other sections.
package sides

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
	"llmparity/reports/plain"
)

// Field is a field of the table of sides: a name, a figure or a change.
type Field struct {
	Text   string
	Spread string // of a figure, in percent
	Small  string // of a change its interval; of a figure the change from the reference cell
	Ends   string // of a figure the interval of that change
	Noise  string // of a change: that of the baseline run against itself
	Marked bool   // there is something to know of the figure's launches
	Worse  bool   // a difference for the worse
}

// Short is a field in one line. Of a figure it has the change, or else the spread.
func (f Field) Short() string {
	switch {
	case f.Text == "~":
		return plain.Joined(" ", f.Text, f.Small)
	case f.Small != "" && f.Marked:
		return f.Text + "! (" + f.Small + ")"
	case f.Small != "":
		return f.Text + " (" + f.Small + ")"
	}
	return plain.Joined(" ", f.Text, f.Spread)
}

// Table is the table of the answer. Of two cells, a row is a figure, with a column a cell and one for the difference.
// Of one cell or many, a row is a cell, with a column a figure.
type Table struct {
	Name  string
	Two   bool
	Head  []Field
	Rows  [][]Field
	Cells []*compare.Cell // of the rows, or of the columns
	Notes []string        // what the marks mean

	res     *compare.Result
	answer  *answer.Answer
	figures []sideFigure
	about   map[*compare.Cell]*compare.Comparison // with the reference cell
}

type sideFigure struct {
	title, unit string
	of          func(*compare.Cell) evidence.Figure
}

// in is the title with the unit.
func (f sideFigure) in() Field { return Field{Text: f.title, Small: f.unit} }

// New returns the table of a result, with the figures that some cell has; nil if no cell has any.
func New(res *compare.Result, a *answer.Answer) *Table {
	s := &Table{res: res, answer: a, about: map[*compare.Cell]*compare.Comparison{}}
	for _, c := range a.Compared { // rather with a cell that is itself compared with none
		b := res.Cells[c.B]
		if was := s.about[b]; was == nil || compared(a, was.A) && !compared(a, c.A) {
			s.about[b] = c
		}
	}
	s.Cells = slices.Clone(res.Cells)
	s.addFigures()
	if len(s.figures) == 0 {
		return nil
	}
	refused := func(c *compare.Cell) bool { return c.Refused != "" }
	switch two := len(res.Cells) == 2 && !slices.ContainsFunc(res.Cells, refused); {
	case two && len(a.Compared) == 1:
		s.two(a.Compared[0])
	case two && len(a.Compared) == 0:
		s.two(nil)
	default:
		s.many()
	}
	if s.some(func(f Field) bool { return f.Marked }) {
		s.Notes = append(s.Notes, Mark)
	}
	return s
}

// compared reports whether a cell is compared with a reference cell.
func compared(a *answer.Answer, cell int) bool {
	return slices.ContainsFunc(a.Compared, func(c *compare.Comparison) bool { return c.B == cell })
}

// addFigures adds those that some cell has. If the answer is about growth, memory comes first.
func (s *Table) addFigures() {
	named := func(name string) func(*compare.Cell) evidence.Figure {
		return func(c *compare.Cell) evidence.Figure { return c.Figure(name) }
	}
	all := []sideFigure{{"decode", "tok/s", named(figure.DecodeTPS)},
		{"all requests", "tok/s", named(figure.AggregateTPS)}, {"first token", "ms", named(figure.TTFT)}}
	peak := func(c *compare.Cell) evidence.Figure { return c.Points().Peak }
	all = append(all, sideFigure{"peak memory", "MiB", peak})
	if len(s.res.Engines()) > 1 { // a browser takes much before the model
		increase := func(c *compare.Cell) evidence.Figure { return c.Points().Increase }
		all = append(all, sideFigure{"increase", "MiB", increase})
	}
	all = append(all, sideFigure{"peak WebGPU", "MiB", named(figure.PeakWebGPU)}) // of imported rows
	all = append(all, sideFigure{"load", "ms", named(figure.LoadTime)})
	if s.cpu() != nil || s.computesOnCPU() {
		all = append(all, sideFigure{cpuTitle, "ms", named(figure.TokenCPU)})
	}
	all = append(all, sideFigure{"perplexity", "", named(figure.Perplexity)})
	if len(s.res.Cells) != 2 { // else the difference has it
		all = append(all, sideFigure{"perplexity ratio", "", named(figure.PerplexityRatio)})
	}
	for _, f := range all {
		if slices.ContainsFunc(s.Cells, func(c *compare.Cell) bool { return f.of(c).Known() }) {
			s.figures = append(s.figures, f)
		}
	}
	if s.answer.Growth.Headline != "" {
		at := slices.IndexFunc(s.figures, func(f sideFigure) bool { return f.unit == "MiB" })
		s.figures = slices.Concat(s.figures[max(at, 0):], s.figures[:max(at, 0)])
	}
}

const cpuTitle = "CPU time per token"

// cpu is a gate's check of the CPU time of two sides; nil: there is none. Only gates compare CPU time.
func (s *Table) cpu() *gates.Check {
	g := s.res.Gate
	if g == nil || !g.Interleaved || len(s.res.Cells) != 2 {
		return nil
	}
	is := func(c gates.Check) bool { return c.Figure == figure.TokenCPU && c.Percent != nil }
	if at := slices.IndexFunc(g.Checks, is); at >= 0 {
		return &g.Checks[at]
	}
	return nil
}

// computesOnCPU reports whether all cells, of one engine, do: then their CPU time may be compared.
func (s *Table) computesOnCPU() bool {
	judged := func(c *compare.Cell) bool { return c.Refused != "" || c.UnjudgedCPU() == "" }
	other := func(c *compare.Cell) bool { return !judged(c) }
	return len(s.res.Cells) > 2 && len(s.res.Engines()) == 1 && !slices.ContainsFunc(s.res.Cells, other)
}

// checked has the sides and the change of a gate's check of CPU time, with the interval that a failure takes. row is
// that of all processes.
func (s *Table) checked(row []Field, c *gates.Check) ([]Field, Field) {
	note := "of launches in pairs, so it is not that of the medians"
	if c.Part != "" && c.Baseline != nil && c.Measured != nil {
		row = []Field{{Text: cpuTitle + ", " + plain.Line(c.Part)}, {Text: plain.Num(*c.Baseline) + " " + c.Unit},
			{Text: plain.Num(*c.Measured) + " " + c.Unit}}
		note = "of the CPU time of all processes, and " + note
	}
	share := func(percent float64) string { return verdict.Signed(percent / 100) }
	out := Field{Text: share(*c.Percent), Worse: c.Status == gates.Failed}
	if i := c.PercentInterval; i != nil {
		out.Small = fmt.Sprintf("%s to %s, %.0f%% CI", share(i.Lo), share(i.Hi), 100*i.Confidence)
	}
	out.Small = plain.Joined(" ", out.Small, s.note(note))
	return row, out
}

// two has a figure a row. Cells that are not compared may still differ in their perplexity.
func (s *Table) two(c *compare.Comparison) {
	s.Two, s.Name = true, "Both sides and their difference"
	a, b := s.Cells[0].Label, s.Cells[1].Label
	if c != nil {
		s.Cells = []*compare.Cell{s.res.Cells[c.A], s.res.Cells[c.B]}
		a, b = s.res.SideNames(c)
	}
	s.Head = []Field{{Text: "figure"}, {Text: plain.Line(a)}, {Text: plain.Line(b)},
		{Text: "difference", Small: "95% CI"}}
	for _, f := range s.figures {
		row := []Field{{Text: f.title}}
		for _, cell := range s.Cells {
			row = append(row, s.value(f, cell, f.unit))
		}
		d := s.difference(f, c, false)
		if check := s.cpu(); f.title == cpuTitle && check != nil {
			row, d = s.checked(row, check)
		}
		if d.Text == "–" && d.Small != "" { // the reason says enough
			d.Text, d.Small = d.Small, ""
		}
		s.Rows = append(s.Rows, append(row, d))
	}
	if s.some(func(f Field) bool { return f.Text == "~" && f.Small != "" }) {
		s.Notes = append(s.Notes, "~: no difference is seen; ± has the largest that is still possible.")
	}
}

// many has a cell a row.
func (s *Table) many() {
	s.Name = "Cells"
	s.Head = []Field{{Text: "cell"}}
	for _, f := range s.figures {
		s.Head = append(s.Head, f.in())
	}
	names, amounts, blank := s.names(), s.amounts(), ""
	for i, cell := range s.Cells {
		row := []Field{{Text: names[i]}}
		for _, f := range s.figures {
			field := s.value(f, cell, "")
			if c := s.about[cell]; c != nil && f.of(cell).Known() {
				d := s.difference(f, c, amounts[f.title])
				if d.Text != "–" && d.Text != "" {
					field.Small, field.Worse = d.Text, d.Worse
				}
				if field.Small == "" {
					blank = "; nothing: not compared"
				} else if len(s.Cells) <= mostEnds {
					field.Ends = d.Small
				}
			}
			row = append(row, field)
		}
		switch {
		case cell.Refused != "":
			row[1].Text = "refused"
		case cell.Launches.Counted == 0:
			row[1].Text = cell.Launches.Ended()
		}
		s.Rows = append(s.Rows, row)
	}
	if s.some(func(f Field) bool { return f.Small != "" }) {
		s.Notes = append(s.Notes, secondFigure+s.reference()+"; ~: none is seen"+blank+".")
	}
}

// mostEnds is the most cells whose changes have their intervals: they take a line each.
const mostEnds = 6

// secondFigure begins the note on changes from the reference cell.
const secondFigure = "Second figure: the change from "

// names are those of what cells differ in, if that says which cell it is; else their labels.
func (s *Table) names() []string {
	labels, short := make([]string, len(s.Cells)), make([]string, len(s.Cells))
	at := func(i int) *string { return &short[slices.Index(s.Cells, s.res.Cells[i])] }
	for i, c := range s.Cells {
		labels[i] = plain.Line(c.Label)
	}
	for _, c := range s.answer.Compared {
		a, b := s.res.SideNames(c)
		*at(c.A), *at(c.B) = plain.Line(a), plain.Line(b)
	}
	seen := map[string]bool{"": true}
	for _, name := range short {
		if seen[name] {
			return labels
		}
		seen[name] = true
	}
	return short
}

// reference names the reference cell, if all rows have one.
func (s *Table) reference() string {
	var all []string
	for _, c := range s.about {
		a, _ := s.res.SideNames(c)
		all = explain.AppendNew(all, a)
	}
	if len(all) == 1 {
		return plain.Line(all[0])
	}
	return "the reference cell"
}

// value is a cell's figure.
func (s *Table) value(f sideFigure, cell *compare.Cell, unit string) Field {
	x := f.of(cell)
	if !x.Known() {
		return Field{Text: "–"}
	}
	out := Field{Text: strings.TrimSpace(plain.Num(x.Center()) + " " + unit), Marked: x.Marked(),
		Spread: plain.Spread(x)}
	if x.Name == figure.PeakRSS {
		out.Text += " " + s.note("the sum of RSS, in which shared pages count more than once")
	}
	return out
}

// amounts are the figures of which some change is an amount, not a share: a column has one kind.
func (s *Table) amounts() map[string]bool {
	out := map[string]bool{}
	for _, f := range s.figures {
		for cell, c := range s.about {
			if a := f.of(s.res.Cells[c.A]); f.unit != "" && a.Known() && f.of(cell).Known() {
				v := s.res.Verdict(c, a, f.of(cell), "", "")
				out[f.title] = out[f.title] || v.AmountOnly
			}
		}
	}
	return out
}

// difference is the change from the reference cell, if need be as an amount.
func (s *Table) difference(f sideFigure, c *compare.Comparison, amount bool) Field {
	if f.title == "perplexity" {
		return s.perplexities()
	}
	if c == nil {
		return Field{}
	}
	a, b := f.of(s.res.Cells[c.A]), f.of(s.res.Cells[c.B])
	if !a.Known() || !b.Known() || f.unit == "" {
		return Field{}
	}
	v := s.res.Verdict(c, a, b, "", "")
	if v.Outcome == verdict.NotComparable && v.Forbids.Code == "" {
		return Field{}
	}
	v.AmountOnly = v.AmountOnly || amount
	out := Field{Worse: v.Outcome == verdict.Different && v.Better == 0}
	out.Text, out.Small = v.InTable()
	for i := range c.Ratios {
		if x := &c.Ratios[i]; x.Figure == a.Name && x.Noise != nil {
			out.Noise = NoiseOf(x)
		}
	}
	if v.Outcome == verdict.NotComparable && !s.answer.Says(v.Forbids) && s.Two {
		out.Small += " " + s.note(v.Forbids.Text)
	}
	return out
}

// perplexities is how the perplexities of two forms of a model differ, by what differs in each window.
func (s *Table) perplexities() Field {
	if !s.Two {
		return Field{}
	}
	for _, c := range s.Cells {
		f := c.Figure(figure.PerplexityRatio)
		if !f.Known() {
			continue
		}
		v := verdict.OfPerplexity(f, "", "")
		fine := func(percent float64) string { return verdict.FineSigned(percent / 100) }
		change, interval := verdict.Ends(v.Change, fine)
		if v.Outcome == verdict.TooFew {
			interval += " " + s.note("perplexities: "+f.Note)
		}
		return Field{Text: change, Small: interval, Worse: v.Outcome == verdict.Different && v.Better == 0}
	}
	return Field{}
}

// note gives a note's number.
func (s *Table) note(text string) string {
	for n, note := range s.Notes {
		if strings.HasSuffix(note, ") "+text) {
			return fmt.Sprintf("(%d)", n+1)
		}
	}
	s.Notes = append(s.Notes, fmt.Sprintf("(%d) %s", len(s.Notes)+1, text))
	return fmt.Sprintf("(%d)", len(s.Notes))
}

// some reports whether a field of a row is of a kind.
func (s *Table) some(is func(Field) bool) bool {
	return slices.ContainsFunc(s.Rows, func(row []Field) bool { return slices.ContainsFunc(row, is) })
}

// Grid is the table for Markdown and, of many cells, for a terminal: with the first so many figures, or all of them,
// and what each cell's output is.
func (s *Table) Grid(figures int) *plain.Grid {
	g := &plain.Grid{Name: s.Name}
	rows, changes := append([][]Field{s.Head}, s.Rows...), false
	for n, row := range rows {
		var fields []string
		for i, f := range row {
			if !s.Two && i > figures {
				break
			}
			changes = changes || n > 0 && f.Small != ""
			fields = append(fields, f.Short())
		}
		if !s.Two && n == 0 {
			fields = append(fields, "output\nidentical")
		} else if !s.Two {
			fields = append(fields, ParityOf(s.res, s.Cells[n-1]))
		}
		if n == 0 {
			g.Head = fields
			continue
		}
		g.Rows = append(g.Rows, fields)
	}
	for _, note := range s.Notes {
		if changes || !strings.HasPrefix(note, secondFigure) {
			g.Legend = append(g.Legend, note)
		}
	}
	return g
}

// Figures is how many columns of figures a table of many cells has.
func (s *Table) Figures() int { return len(s.figures) }

// More says how many cells have no room.
func More(n int) string {
	return "and " + words.Count(n, "more cell") + " in the details and in the report"
}
