package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/growth"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
	"llmparity/reports/matrix"
	"llmparity/reports/plain"
	"llmparity/reports/section"
	"llmparity/reports/sides"
)

// endingLines is how long the end of a run may be, with placeLines on where report, logs and details are.
const endingLines, placeLines = 30, 4

// Table writes what decides, for a terminal: the answer, one table, and the warnings that may change a conclusion.
// With what stands below it, it is at most 30 lines of 100 columns. Details has the rest.
func Table(w io.Writer, res *compare.Result) error {
	a := answer.Of(res)
	for _, c := range []*answer.Card{&a.Speed, &a.Memory, &a.Sure} {
		if res.Surveys() && (c.Unknown || c == &a.Sure) { // one launch a cell is not made for them
			*c = answer.Card{}
		}
	}
	var text string
	// lines for each card, how many warnings and how many checks of a gate: fewer until all fits
	for _, most := range []struct{ card, warnings, checks int }{{4, 3, 4}, {4, 2, 4}, {4, 1, 4}, {2, 1, 4}, {4, 0, 1},
		{2, 0, 1}, {1, 0, 1}} {
		head := cutLines(plain.Wrap(a.Title, "", "", width), 2) + gateText(res.Gate, most.checks) +
			cutLines(plain.Wrap(a.Sub(), "", "", width), most.card) + "\n" + answerText(a, most.card) +
			growthText(res, most.card)
		warnings := warningText(a, most.warnings)
		table := &ending{res: res, sides: sides.New(res, a)}
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
	if len(res.Cells) > 2 {
		table := &ending{res: res, sides: sides.New(res, a)}
		text += table.text(endingLines)
	}
	if n := len(a.Warnings) + a.More; n > 0 {
		text += words.Count(n, "warning") + a.Effect + "; see the report.\n"
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
	for _, c := range []*answer.Card{&a.Ship, &a.Place, &a.Cost, &a.Growth, &a.Speed, &a.Memory, &a.Output, &a.Quality,
		&a.Sure, &a.Quote} {
		text := c.Sentence()
		if c == &a.Sure && a.Memory.Headline != "" {
			text = c.Without
		}
		if c.Headline == "" || text == "" || a.InTable(c) {
			continue
		}
		whole := []*answer.Card{&a.Ship, &a.Place, &a.Cost, &a.Growth, &a.Sure, &a.Quote}
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
		case &a.Cost: // has its shares
			most = max(each, 3)
		case &a.Quote: // has what may not be quoted, all of it
			most = max(each, 2)
			if lineCount(plain.Wrap(text, "", "  ", width)) > most {
				text = c.Name + ": " + c.Headline + ". " + c.Line
			}
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

// gateText has a gate's verdict with the worst figure, what follows from it, and at most so many other checks that do
// not pass.
func gateText(g *gates.Outcome, most int) string {
	strip := section.NewStrip(g)
	if strip == nil {
		return ""
	}
	const each = 2 // lines
	text := cutLines(plain.Wrap(strip.Line(), "", "  ", width), each)
	if next := strip.After(); g.Status != gates.Passed {
		text += cutLines(plain.Wrap(next, "  ", "  ", width), each)
	}
	shown := 0
	for i := range g.Checks {
		if g.Checks[i].Status == gates.Passed || &g.Checks[i] == strip.Check {
			continue
		}
		if shown++; shown >= most {
			return text + "  more checks are in the details\n"
		}
		text += cutLines(plain.Wrap(section.GateLine(&g.Checks[i]), "  ", "    ", width), each)
	}
	return text
}

// warningText has so many warnings, a line a code, and the codes of the others.
func warningText(a *answer.Answer, shown int) string {
	all := len(a.Warnings) + a.More
	if all == 0 {
		return ""
	}
	shown = min(shown, len(a.Warnings))
	var b strings.Builder
	wide := 0
	for _, w := range a.Warnings[:shown] {
		wide = max(wide, len(w.Code)+2)
	}
	for _, w := range a.Warnings[:shown] {
		code, text := "  "+w.Code+strings.Repeat(" ", wide-len(w.Code)), w.Where+": "+w.Text
		b.WriteString(cutLines(plain.Wrap(text, code, strings.Repeat(" ", wide+2), width), min(shown, 2)))
	}
	var rest []string
	for _, w := range a.Warnings[shown:] {
		rest = append(rest, w.Code)
	}
	if a.More > 0 {
		rest = append(rest, fmt.Sprintf("%d more", a.More))
	}
	title := words.Count(all, "warning") + a.Effect + ":"
	switch others := strings.Join(rest, ", "); {
	case shown == 0:
		return "\n" + plain.Wrap(title+" "+others, "", "  ", width)
	case others != "":
		b.WriteString(plain.Wrap("in the details: "+others, "  ", "  ", width))
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
	res   *compare.Result
	sides *sides.Table
	left  int // cells that had no room
}

// text has two cells side by side, a figure a row; else a cell a row, in at most so many lines.
func (e *ending) text(lines int) string {
	switch {
	case e.res.Surveys():
		return e.matrix(lines)
	case e.sides == nil:
		return ""
	case e.ofForms():
		return e.forms()
	case e.sides.Two:
		return e.sideBySide()
	}
	return e.rows(lines)
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

// matrix has a row an engine and device, and in the room below it what is not ok.
func (e *ending) matrix(lines int) string {
	const each, device = 2, 24 // lines, and letters of a device
	var t terminal
	t.WriteByte('\n')
	g := matrix.Grid(e.res)
	for i := range g.Rows { // what is wrong needs the room
		g.Rows[i][1] = plain.Shorten(g.Rows[i][1], device)
	}
	t.grid(g)
	all := matrix.Lines(e.res)
	for i, text := range all {
		text = cutLines(plain.Wrap(text, "- ", "  ", width), each)
		if left := len(all) - i; lineCount(t.String()+text) >= lines && left > 0 {
			t.WriteString("and " + words.Count(left, "more line") + " in the details and in the report\n")
			e.left = left
			break
		}
		t.WriteString(text)
	}
	return t.String()
}

// forms has a row a form.
func (e *ending) forms() string {
	g := section.ShipGrid(e.res, e.res.Forms[0], false)
	marked := section.MarkWords(e.res)
	if total(widthsOf(append(headLines(g), g.Rows...))) > width {
		g, marked = section.ShipGrid(e.res, e.res.Forms[0], true), ""
	}
	var t terminal
	t.WriteByte('\n')
	t.grid(g)
	if marked != "" {
		t.WriteString(marked + "\n")
	}
	return t.String()
}

// rows has a row a cell.
func (e *ending) rows(lines int) string {
	const fewest, notes, narrowest = 3, 2, 16 // figures, lines of a note, and letters of a label
	widths := func(g *plain.Grid) []int { return widthsOf(append(headLines(g), g.Rows...)) }
	n := e.sides.Figures()
	g := e.sides.Grid(n)
	for ; n > fewest && total(widths(g)) > width; n-- {
		g = e.sides.Grid(n - 1)
	}
	if over := total(widths(g)) - width; over > 0 {
		labels := make([]string, len(g.Rows))
		for i, row := range g.Rows {
			labels[i] = row[0]
		}
		for i, label := range plain.Fit(labels, max(widths(g)[0]-over, narrowest)) {
			g.Rows[i][0] = label
		}
	}
	if room := lines - 4 - len(g.Legend); len(g.Rows) > max(3, room) { // below a blank line and the head
		most := max(3, room-1)
		e.left = len(g.Rows) - most
		g.Rows = g.Rows[:most]
	}
	if engines := e.res.Engines(); e.left == 0 && len(engines) <= notes {
		for _, x := range engines {
			if x.With != "" {
				g.Legend = append(g.Legend, plain.Shorten(plain.Line(x.Name+": "+x.With), width))
			}
		}
	}
	var t terminal
	t.WriteByte('\n')
	legend := g.Legend
	g.Legend = nil
	t.grid(g)
	if e.left > 0 {
		t.WriteString(sides.More(e.left) + "\n")
	}
	for _, note := range legend {
		t.WriteString(cutLines(plain.Wrap(note, "", "    ", width), notes))
	}
	return t.String()
}

// sideBySide has a column a cell, and their difference.
func (e *ending) sideBySide() string {
	cells := e.sides.Cells
	wide := (width - 14 - 2*len(cells)) / (len(cells) + 1)
	rows := [][]string{make([]string, len(cells)+2)}
	for i, c := range cells {
		text := plain.Fold(e.sides.Head[i+1].Text, wide)
		if cells[0].With != cells[1].With {
			with := plain.Fold(c.With, wide)
			if len(with) > 2 {
				with = []string{with[0], plain.Shorten(with[1]+" …", wide)}
			}
			text = append(text[:min(len(text), 2)], with...)
		}
		for n, line := range text[:min(len(text), 5)] {
			for len(rows) <= n {
				rows = append(rows, make([]string, len(cells)+2))
			}
			rows[n][i+1] = line
		}
	}
	rows[0][3] = e.sides.Head[3].Short()
	for _, row := range e.sides.Rows {
		fields := []string{row[0].Text}
		for _, f := range row[1 : len(row)-1] {
			fields = append(fields, plain.Joined("  ", f.Text, f.Spread))
		}
		rows = append(rows, append(fields, row[len(row)-1].Short()))
	}
	var t terminal
	t.WriteByte('\n')
	widths, columns := widthsOf(rows), make([]plain.Column, len(rows[0]))
	for _, row := range rows {
		t.row(row, widths, columns)
	}
	output := sides.IdenticalOf(e.res, cells[0])
	if s := sides.ScoresOf(e.res, cells[0]); s != "–" {
		output = plain.Joined("; scores ", output, s)
	}
	if output != "" {
		t.WriteString(cutLines(plain.Wrap(output, "output"+strings.Repeat(" ", max(2, widths[0]-4)), "    ", width), 1))
	}
	if noise := e.noise(); noise != "" {
		t.WriteString(cutLines(plain.Wrap(noise, "", "    ", width), 2))
	}
	for _, note := range e.sides.Notes {
		t.WriteString(cutLines(plain.Wrap(note, "", "    ", width), 2))
	}
	return t.String()
}

// noise has that of all figures: a column of its own would be too wide.
func (e *ending) noise() string {
	var all []string
	for _, row := range e.sides.Rows {
		if noise := row[len(row)-1].Noise; noise != "" && row[0].Text != "increase" { // the peak's says as much
			all = append(all, row[0].Text+" "+noise)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "Machine noise, the baseline run against itself: " + strings.Join(all, ", ")
}
