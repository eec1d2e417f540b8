package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// endingLines is how long the end of a run may be, with placeLines on where report, logs and details are.
const endingLines, placeLines = 30, 4

// Table writes what decides, for a terminal: the answer, one table, and the warnings that may change a conclusion.
// With what stands below it, it is at most 30 lines of 100 columns. Details has the rest.
func Table(w io.Writer, res *compare.Result) error {
	a := answer.Of(res)
	var text string
	// lines for each card, how many warnings and how many checks of a gate: fewer until all fits
	for _, most := range []struct{ card, warnings, checks int }{{4, 3, 4}, {4, 2, 4}, {4, 1, 4}, {2, 1, 4}, {4, 0, 1},
		{2, 0, 1}, {1, 0, 1}} {
		head := cutLines(plain.Wrap(a.Title, "", "", width), 2) +
			cutLines(plain.Wrap(a.Sub(), "", "", width), most.card) + "\n" + answerText(a, most.card) +
			growthText(res, most.card) + gateText(res.Gate, most.checks)
		warnings := warningText(res, a, most.warnings)
		table := newEnding(res, a)
		below := table.text(endingLines - placeLines - lineCount(head+warnings))
		if text = head + below + warnings; lineCount(text) <= endingLines-placeLines &&
			(table.left == 0 || most.warnings == 0) {
			break
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// Answer writes the answer alone, and how many warnings there are.
func Answer(w io.Writer, res *compare.Result) error {
	a := answer.Of(res)
	text := cutLines(plain.Wrap(a.Title, "", "", width), 2) + answerText(a, 4)
	if n := len(a.Warnings) + a.More; n > 0 {
		text += words.Count(n, "warning") + " may change a conclusion; see the report.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Comparison writes the answer as Table does, and every difference between runs or engines.
func Comparison(w io.Writer, res *compare.Result) error {
	if err := Table(w, res); err != nil {
		return err
	}
	if differences := section.Ratios(res); len(section.ShownTo(differences.Parts, section.InTerminal)) > 0 {
		return writeTerminal(w, "\n", []section.Section{differences})
	}
	return nil
}

// answerText has so many lines a card: the answer, or why there is none, and whether it may be quoted.
func answerText(a *answer.Answer, each int) string {
	var b strings.Builder
	for _, c := range []*answer.Card{&a.Ship, &a.Place, &a.Growth, &a.Memory, &a.Speed, &a.Output, &a.Quality, &a.Sure,
		&a.Quote} {
		text := c.Sentence()
		if c == &a.Sure && a.Memory.Headline != "" {
			text = c.Without
		}
		if c.Headline == "" || text == "" {
			continue
		}
		whole := []*answer.Card{&a.Ship, &a.Place, &a.Growth, &a.Sure, &a.Quote}
		if !c.Unknown && !slices.Contains(whole, c) {
			text = c.Name + ": " + c.Headline + "."
		}
		most := each
		switch c {
		case &a.Growth: // all that such a run is for
			most = max(each, 4)
		case &a.Ship:
			most = max(each, 3)
		case &a.Place: // has the command that answers the rest
			most = max(each, 3)
		case &a.Quote: // "In part" alone would not say which
			most = max(each, 2)
		}
		b.WriteString(cutLines(plain.Wrap(text, "", "  ", width), most))
	}
	return b.String()
}

// growthText has what each sweep of prompt lengths found, bytes per token, in so many lines each.
func growthText(res *compare.Result, each int) string {
	text := ""
	for _, s := range res.Sweeps {
		if s.Axis != growth.AxisPrompt || len(s.Verdict) == 0 || lineCount(text) > each {
			continue
		}
		text += cutLines(plain.Wrap("Memory per token, "+s.Label+": "+s.Verdict[0], "", "  ", width), each)
	}
	return text
}

// gateText has the outcome of a gate, and the first checks that do not pass, at most so many.
func gateText(g *gates.Outcome, most int) string {
	if g == nil {
		return ""
	}
	const each = 2 // lines
	text := cutLines(plain.Wrap("Gate: "+g.Verdict, "", "  ", width), each)
	shown := 0
	for i := range g.Checks {
		if g.Checks[i].Status == gates.Passed {
			continue
		}
		if shown++; shown > most {
			return text + "  more checks are in the details\n"
		}
		text += cutLines(plain.Wrap(section.GateLine(&g.Checks[i]), "  ", "    ", width), each)
	}
	return text
}

// warningText has so many warnings, and the codes of the others.
func warningText(res *compare.Result, a *answer.Answer, shown int) string {
	all := len(a.Warnings) + a.More
	if all == 0 {
		return ""
	}
	times := map[string]int{}
	var codes []string
	for _, w := range res.OnceEach(res.Warnings) {
		times[w.Code]++
		codes = explain.AppendNew(codes, w.Code)
	}
	var b strings.Builder
	wide := 0
	for _, w := range a.Warnings[:min(shown, len(a.Warnings))] {
		wide = max(wide, len(w.Code)+2)
	}
	for _, w := range a.Warnings[:min(shown, len(a.Warnings))] {
		times[w.Code]--
		all--
		code := "  " + w.Code + strings.Repeat(" ", wide-len(w.Code))
		b.WriteString(cutLines(plain.Wrap(w.Where+": "+w.Text, code, strings.Repeat(" ", wide+2), width), 3))
	}
	var rest []string
	for _, code := range codes {
		if n := times[code]; n > 1 {
			rest = append(rest, fmt.Sprintf("%s (%d)", code, n))
		} else if n == 1 {
			rest = append(rest, code)
		}
	}
	title := words.Count(len(a.Warnings)+a.More, "warning") + " may change a conclusion:"
	switch others := strings.Join(rest, ", "); {
	case shown == 0:
		return "\n" + plain.Wrap(title+" "+others, "", "  ", width)
	case all > 0:
		b.WriteString(plain.Wrap(fmt.Sprintf("and %d more in the details: %s", all, others), "  ", "  ", width))
	}
	return "\n" + title + "\n" + b.String()
}

// cutLines leaves so many lines of a text. It ends with a whole sentence if one ends in the last line.
func cutLines(text string, most int) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines)-1 <= most {
		return text
	}
	last := strings.TrimSuffix(lines[most-1], "\n")
	if end := strings.LastIndex(last, ". "); end > 0 {
		return strings.Join(lines[:most-1], "") + last[:end+1] + "\n"
	}
	return strings.Join(lines[:most-1], "") + plain.Shorten(last+" …", width) + "\n"
}

func lineCount(text string) int { return strings.Count(text, "\n") }

// ending is the table at the end of a run.
type ending struct {
	res     *compare.Result
	answer  *answer.Answer
	figures []endingFigure
	notes   []string
	left    int  // cells that had no room
	narrow  bool // a difference of amounts has a narrower interval than a side
}

// endingFigure is a row, or of many cells a column.
type endingFigure struct {
	title, unit string
	of          func(*compare.Cell) evidence.Figure
}

// newEnding has the figures that some cell has.
func newEnding(res *compare.Result, a *answer.Answer) *ending {
	named := func(name string) func(*compare.Cell) evidence.Figure {
		return func(c *compare.Cell) evidence.Figure { return c.Figure(name) }
	}
	e := &ending{res: res, answer: a}
	figures := []endingFigure{{"decode", "tok/s", named(figure.DecodeTPS)},
		{"all requests", "tok/s", named(figure.AggregateTPS)}, {"first token", "ms", named(figure.TTFT)},
		{"load", "ms", named(figure.LoadTime)},
		{"peak memory", "MiB", func(c *compare.Cell) evidence.Figure { return c.Points().Peak }},
		{"increase", "MiB", func(c *compare.Cell) evidence.Figure { return c.Points().Increase }},
		{"perplexity", "", named(figure.Perplexity)}}
	if len(res.Cells) != 2 { // else the perplexities' last column has it
		figures = append(figures, endingFigure{"perplexity ratio", "", named(figure.PerplexityRatio)})
	}
	for _, f := range figures {
		if slices.ContainsFunc(res.Cells, func(c *compare.Cell) bool { return f.of(c).Known() }) {
			e.figures = append(e.figures, f)
		}
	}
	if a.Growth.Headline != "" { // memory first: the last columns may have no room
		at := slices.IndexFunc(e.figures, func(f endingFigure) bool { return f.unit == "MiB" })
		e.figures = slices.Concat(e.figures[max(at, 0):], e.figures[:max(at, 0)])
	}
	return e
}

// text has engines side by side, a figure a row; of many cells a cell a row, in at most so many lines.
func (e *ending) text(lines int) string {
	switch {
	case len(e.figures) == 0:
		return ""
	case e.ofForms():
		return e.forms()
	case len(e.res.Cells) > 3:
		return e.rows(lines)
	}
	return e.sideBySide()
}

// ofForms reports whether the table of forms of a model has all cells.
func (e *ending) ofForms() bool {
	if len(e.res.Forms) != 1 {
		return false
	}
	n := 0
	for _, f := range e.res.Forms[0].Forms {
		for _, cell := range f.Cells {
			if cell >= 0 {
				n++
			}
		}
	}
	return n == len(e.res.Cells)
}

// forms has a row a form.
func (e *ending) forms() string {
	g := section.ShipGrid(e.res, e.res.Forms[0], false)
	marked := e.marked()
	if total(widthsOf(append(headLines(g), g.Rows...))) > width {
		g, marked = section.ShipGrid(e.res, e.res.Forms[0], true), ""
	}
	var t terminal
	t.WriteByte('\n')
	t.grid(g)
	t.WriteString(marked)
	return t.String()
}

// value is a figure with its interval; between them stand the unit, or nothing but a space.
func value(f evidence.Figure, between string) string {
	if !f.Known() {
		return "–"
	}
	return plain.Num(f.Center()) + between + plain.Spread(f)
}

// rows has a row a cell.
func (e *ending) rows(lines int) string {
	const fewest, widest, narrowest = 3, 40, 16 // figures, and letters of a label
	widths := func(g *plain.Grid) []int { return widthsOf(append(headLines(g), g.Rows...)) }
	g := e.grid(len(e.figures), widest)
	for n := len(e.figures); n > fewest && total(widths(g)) > width; n-- {
		g = e.grid(n-1, widest)
	}
	if over := total(widths(g)) - width; over > 0 {
		g = e.grid(min(fewest, len(e.figures)), max(widths(g)[0]-over, narrowest))
	}
	if most := max(3, lines-6); len(g.Rows) > most {
		e.left = len(g.Rows) - most
		g.Rows = g.Rows[:most]
	}
	var t terminal
	t.WriteByte('\n')
	t.grid(g)
	if e.left > 0 {
		fmt.Fprintf(&t, "and %s in the details and in the report\n", words.Count(e.left, "more cell"))
	}
	t.WriteString(e.marked())
	return t.String()
}

// fitted are the cells' labels in so many letters.
func fitted(res *compare.Result, width int) []string {
	labels := make([]string, len(res.Cells))
	for i, c := range res.Cells {
		labels[i] = plain.Line(c.Label)
	}
	return plain.Fit(labels, width)
}

// marked explains the mark of figures that warnings are about.
func (e *ending) marked() string {
	for _, c := range e.res.Cells {
		for _, f := range e.figures {
			if len(f.of(c).Warnings) > 0 {
				return "!: outliers, a drift, noise or a busy machine; see the warnings\n"
			}
		}
	}
	return ""
}

// grid has a row a cell, with the first n figures, and labels of so many letters.
func (e *ending) grid(n, letters int) *plain.Grid {
	head := []string{"cell"}
	for _, f := range e.figures[:n] {
		head = append(head, section.Headed(f.title, f.unit))
	}
	g := plain.PerCell(e.res, append(head, "output\nidentical"), func(c *compare.Cell, add func(...string)) {
		var row []string
		for _, f := range e.figures[:n] {
			row = append(row, value(f.of(c), " "))
		}
		switch {
		case c.Refused != "":
			row[0] = "refused"
		case c.Launches.Counted == 0:
			row[0] = c.Launches.Ended()
		}
		add(append(row, section.ParityOf(e.res, c))...)
	})
	for i, label := range fitted(e.res, letters) {
		g.Rows[i][0] = label
	}
	return g
}

// sideBySide has a column a cell, and of two cells their difference.
func (e *ending) sideBySide() string {
	cells := e.res.Cells
	wide := (width - 14 - 2*len(cells)) / (len(cells) + 1)
	blank := make([]string, len(cells)+2)
	rows := [][]string{slices.Clone(blank)}
	labels := fitted(e.res, 2*wide-wide/4) // in two lines, of which the first may end early
	for i, c := range cells {
		names := plain.Fold(labels[i], wide)
		with := plain.Fold(c.With, wide)
		if len(with) > 3 {
			with = append(with[:2], plain.Shorten(with[2]+" …", wide))
		}
		for n, text := range append(names, with...) {
			for len(rows) <= n {
				rows = append(rows, slices.Clone(blank))
			}
			rows[n][i+1] = text
		}
	}
	if len(cells) == 2 && len(e.res.Comparisons) == 1 && len(e.res.Comparisons[0].Ratios) > 0 {
		rows[0][3] = "larger / smaller"
	}
	for _, f := range e.figures {
		row := []string{f.title}
		for _, c := range cells {
			x := f.of(c)
			text := value(x, " "+f.unit+"  ")
			if x.Name == figure.PeakRSS {
				text += " " + e.note("the sum of RSS, in which shared pages count more than once")
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, e.difference(f)))
	}
	if same := section.IdenticalOf(e.res, cells[0]); same != "" {
		output := slices.Clone(blank)
		output[0], output[1] = "output", same
		rows = append(rows, output)
	}
	if s := section.ScoresOf(e.res, cells[0]); s != "–" {
		scores := slices.Clone(blank)
		scores[0], scores[1] = "scores", s
		rows = append(rows, scores)
	}
	var t terminal
	t.WriteByte('\n')
	widths, columns := widthsOf(rows), make([]plain.Column, len(blank))
	for _, row := range rows {
		t.row(row, widths, columns)
	}
	t.WriteString(e.marked())
	if e.narrow {
		t.WriteString("A median's interval is cautious with few launches; that of a difference can be narrower.\n")
	}
	for i, note := range e.notes {
		t.WriteString(cutLines(plain.Wrap(note, fmt.Sprintf("(%d) ", i+1), "    ", width), 2))
	}
	return t.String()
}

// difference is what the larger of two cells has more, or how many times as much; empty of other numbers of cells.
func (e *ending) difference(f endingFigure) string {
	if len(e.res.Cells) == 2 && f.title == "perplexity" {
		return e.perplexities()
	}
	if len(e.res.Cells) != 2 || len(e.res.Comparisons) != 1 || f.unit == "" {
		return ""
	}
	c := &e.res.Comparisons[0]
	a, b := f.of(e.res.Cells[c.A]), f.of(e.res.Cells[c.B])
	if !a.Known() || !b.Known() {
		return ""
	}
	v := e.res.Verdict(c, a, b, "", "")
	switch {
	case v.Outcome == verdict.NotComparable && v.Forbids.Code == "":
		return ""
	case v.Outcome == verdict.NotComparable && v.Forbids == c.Forbids() && !e.answer.Says(v.Forbids):
		return v.Called() + " " + e.note(v.Forbids.Text)
	case v.Outcome == verdict.Different && v.AmountOnly && v.Amount.Interval != nil:
		for _, side := range v.Sides {
			i := side.Interval
			e.narrow = e.narrow || i != nil && i.Hi-i.Lo > v.Amount.Interval.Hi-v.Amount.Interval.Lo
		}
	}
	// The column is narrow: no thousands are set off.
	return v.InColumn(plain.Num, func(mib float64) string { return strings.ReplaceAll(explain.Amount(mib), ",", "") })
}

// perplexities is how many times as high the higher of two perplexities is, by what differs in each window.
func (e *ending) perplexities() string {
	for _, c := range e.res.Cells {
		f := c.Figure(figure.PerplexityRatio)
		if !f.Known() {
			continue
		}
		v := verdict.OfPerplexity(f, "", "")
		if v.Outcome == verdict.TooFew {
			times := fmt.Sprintf(explain.ColumnTimesNoCI, plain.Num(v.Times.Value))
			return times + " " + e.note("perplexities: "+f.Note)
		}
		return v.InColumn(plain.Num, plain.Num)
	}
	return ""
}

// note gives a note's number.
func (e *ending) note(text string) string {
	at := slices.Index(e.notes, text)
	if at < 0 {
		at, e.notes = len(e.notes), append(e.notes, text)
	}
	return fmt.Sprintf("(%d)", at+1)
}
