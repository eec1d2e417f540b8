package reports

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/growth"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/words"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// endingLines is how long the end of a run may be, with placeLines on where report, logs and details are.
const endingLines, placeLines = 30, 4

// endingWidth is what every terminal has room for.
const endingWidth = 100

// Table writes what decides, for a terminal: the answer, one table, and the warnings that may change a conclusion.
// With what stands below it, it is at most 30 lines of 100 columns. Details has the rest.
func Table(w io.Writer, res *compare.Result) error {
	a := res.Answer()
	var text string
	for _, each := range []int{2, 1} { // lines for each card, warning and check: the second try is for what has many
		head := cutLines(plain.Wrap(a.Title, "", "", endingWidth), 2) +
			cutLines(plain.Wrap(a.Sub(), "", "", endingWidth), each) + "\n" + answerText(a, each) +
			growthText(res, each) + gateText(res.Gate, each)
		warnings := warningText(a, each)
		below := newEnding(res).table(func(notes int) int {
			return endingLines - placeLines - lineCount(head+warnings) - 2 - notes
		})
		if text = head + below + warnings; lineCount(text) <= endingLines-placeLines {
			break
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// Answer writes the answer alone.
func Answer(w io.Writer, res *compare.Result) error {
	a := res.Answer()
	_, err := io.WriteString(w, cutLines(plain.Wrap(a.Title, "", "", endingWidth), 2)+answerText(a, 2))
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
func answerText(a *compare.Answer, each int) string {
	var b strings.Builder
	for _, c := range []compare.Card{a.Memory, a.Speed, a.Output, a.Sure} {
		switch {
		case c.Headline == "" || c.Name == "Sure" && a.Memory.Headline != "":
		case c.Unknown || c.Name == "Sure":
			b.WriteString(cutLines(plain.Wrap(c.Sentence(), "", "  ", endingWidth), each))
		default:
			b.WriteString(cutLines(plain.Wrap(c.Name+": "+c.Headline+".", "", "  ", endingWidth), each))
		}
	}
	if a.Quote.Headline != "" {
		b.WriteString(plain.Shorten(plain.Line(a.Quote.Sentence()), endingWidth) + "\n")
	}
	return b.String()
}

// growthText has what each sweep of contexts found, bytes per token, in so many lines each.
func growthText(res *compare.Result, each int) string {
	text := ""
	for _, s := range res.Sweeps {
		if s.Axis != growth.AxisContext && s.Axis != growth.AxisPrompt || len(s.Verdict) == 0 ||
			lineCount(text) > each {
			continue
		}
		text += cutLines(plain.Wrap("Memory per token, "+s.Label+": "+s.Verdict[0], "", "  ", endingWidth), each)
	}
	return text
}

// gateText has the outcome of a gate, and the first checks that do not pass, in so many lines each.
func gateText(g *gates.Outcome, each int) string {
	if g == nil {
		return ""
	}
	most := 2 * each
	text := cutLines(plain.Wrap("Gate: "+g.Verdict, "", "  ", endingWidth), each)
	shown := 0
	for _, l := range section.GateLines(g) {
		if strings.HasPrefix(l, "PASS") {
			continue
		}
		if shown++; shown > most {
			return text + "  more checks are in the details\n"
		}
		text += cutLines(plain.Wrap(l, "  ", "    ", endingWidth), each)
	}
	return text
}

// warningText has so many lines a warning.
func warningText(a *compare.Answer, each int) string {
	if len(a.Warnings) == 0 {
		return ""
	}
	var b strings.Builder
	n := len(a.Warnings)
	fmt.Fprintf(&b, "\n%s may change a conclusion", words.Count(n, "warning"))
	if a.More > 0 {
		fmt.Fprintf(&b, ", and %d more in the details", a.More)
	}
	b.WriteString(":\n")
	wide := 0
	for _, w := range a.Warnings {
		wide = max(wide, len(w.Code)+2)
	}
	for _, w := range a.Warnings {
		code := "  " + w.Code + strings.Repeat(" ", wide-len(w.Code))
		b.WriteString(cutLines(plain.Wrap(w.Where+": "+w.Text, code, strings.Repeat(" ", wide+2), endingWidth), each))
	}
	return b.String()
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
	return strings.Join(lines[:most-1], "") + plain.Shorten(last+" …", endingWidth) + "\n"
}

func lineCount(text string) int { return strings.Count(text, "\n") }

// ending is the table at the end of a run.
type ending struct {
	res     *compare.Result
	figures []endingFigure
	notes   []string
}

// endingFigure is a row, or of many cells a column.
type endingFigure struct {
	title, unit string
	of          func(*compare.Cell) evidence.Figure
}

// newEnding has the figures that some cell has.
func newEnding(res *compare.Result) *ending {
	named := func(name string) func(*compare.Cell) evidence.Figure {
		return func(c *compare.Cell) evidence.Figure { return c.Figure(name) }
	}
	e := &ending{res: res}
	for _, f := range []endingFigure{{"decode", "tok/s", named(figure.DecodeTPS)},
		{"all requests", "tok/s", named(figure.AggregateTPS)}, {"first token", "ms", named(figure.TTFT)},
		{"load", "ms", named(figure.LoadTime)},
		{"peak memory", "MiB", func(c *compare.Cell) evidence.Figure { return c.Points().Peak }},
		{"increase", "MiB", func(c *compare.Cell) evidence.Figure { return c.Points().Increase }}} {
		if slices.ContainsFunc(res.Cells, func(c compare.Cell) bool { return f.of(&c).Known() }) {
			e.figures = append(e.figures, f)
		}
	}
	return e
}

// table has engines side by side, a figure a row; of many cells a cell a row. room tells how many lines it may have
// beside so many notes.
func (e *ending) table(room func(notes int) int) string {
	switch {
	case len(e.figures) == 0:
		return ""
	case len(e.res.Cells) > 3:
		return e.rows(room)
	}
	return e.sideBySide()
}

// value is a figure with its interval; between them stand the unit, or nothing but a space.
func value(f evidence.Figure, between string) string {
	if !f.Known() {
		return "–"
	}
	return plain.Num(f.Center()) + between + plain.Spread(f)
}

// rows has a row a cell.
func (e *ending) rows(room func(notes int) int) string {
	const fewest = 3
	g := e.grid(len(e.figures))
	for n := len(e.figures); n > fewest && total(widthsOf(append(headLines(g), g.Rows...))) > endingWidth; n-- {
		g = e.grid(n - 1)
	}
	more := 0
	if most := max(3, room(1)-3); len(g.Rows) > most {
		more = len(g.Rows) - most
		g.Rows = g.Rows[:most]
	}
	t := terminal{width: endingWidth}
	t.WriteByte('\n')
	t.grid(g)
	if more > 0 {
		fmt.Fprintf(&t, "and %s in the details and in the report\n", words.Count(more, "more cell"))
	}
	t.WriteString(e.marked())
	return t.String()
}

// marked explains the mark of figures that warnings are about.
func (e *ending) marked() string {
	for i := range e.res.Cells {
		for _, f := range e.figures {
			if len(f.of(&e.res.Cells[i]).Warnings) > 0 {
				return "!: outliers, a drift, noise or a busy machine; see the warnings\n"
			}
		}
	}
	return ""
}

// grid has a row a cell, with the first n figures.
func (e *ending) grid(n int) *plain.Grid {
	head := []string{"cell"}
	for _, f := range e.figures[:n] {
		head = append(head, f.title+" ("+f.unit+")")
	}
	return plain.PerCell(e.res, append(head, "output\nidentical"), func(c *compare.Cell, add func(...string)) {
		var row []string
		for _, f := range e.figures[:n] {
			row = append(row, value(f.of(c), " "))
		}
		switch {
		case c.Refused != "":
			row[0] = "refused"
		case c.Launches.Counted == 0:
			row[0] = "failed"
		}
		add(append(row, section.ParityOf(e.res, c))...)
	})
}

// sideBySide has a column a cell, and of two cells their difference.
func (e *ending) sideBySide() string {
	cells := e.res.Cells
	wide := (endingWidth - 14 - 2*len(cells)) / (len(cells) + 1)
	blank := make([]string, len(cells)+2)
	rows := [][]string{slices.Clone(blank)}
	for i := range cells {
		names := strings.Split(strings.TrimSuffix(plain.Wrap(cells[i].Label, "", "", wide), "\n"), "\n")
		with := strings.Split(strings.TrimSuffix(plain.Wrap(cells[i].With, "", "", wide), "\n"), "\n")
		if len(with) > 3 {
			with = append(with[:2], plain.Shorten(with[2]+" …", wide))
		}
		for n, text := range append(names[:min(len(names), 2)], with...) {
			for len(rows) <= n {
				rows = append(rows, slices.Clone(blank))
			}
			rows[n][i+1] = text
		}
	}
	if len(cells) == 2 && len(e.res.Comparisons) == 1 && len(e.res.Comparisons[0].Ratios) > 0 {
		rows[0][3] = "first / second"
	}
	for _, f := range e.figures {
		row := []string{f.title}
		for i := range cells {
			x := f.of(&cells[i])
			text := value(x, " "+f.unit+"  ")
			if x.Name == figure.PeakRSS {
				text += " " + e.note("the sum of RSS, in which shared pages count more than once")
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, e.difference(f)))
	}
	if same := section.ParityOf(e.res, &cells[0]); same != "–" {
		output := slices.Clone(blank)
		output[0], output[1] = "output", same
		if !strings.HasPrefix(same, "differs") {
			output[1] += " identical"
		}
		rows = append(rows, output)
	}
	t := terminal{width: endingWidth}
	t.WriteByte('\n')
	widths, columns := widthsOf(rows), make([]plain.Column, len(blank))
	for _, row := range rows {
		t.row(row, widths, columns)
	}
	t.WriteString(e.marked())
	for i, note := range e.notes {
		t.WriteString(cutLines(plain.Wrap(note, fmt.Sprintf("(%d) ", i+1), "    ", endingWidth), 2))
	}
	return t.String()
}

// difference is what two cells differ by in a figure; empty of other numbers of cells.
func (e *ending) difference(f endingFigure) string {
	if len(e.res.Cells) != 2 || len(e.res.Comparisons) != 1 {
		return ""
	}
	c := &e.res.Comparisons[0]
	a, b := f.of(&e.res.Cells[c.A]), f.of(&e.res.Cells[c.B])
	for _, r := range c.Ratios {
		if r.Figure != a.Name || a.Name != b.Name {
			continue
		}
		switch {
		case r.Call == stats.Differs && r.Ratio != nil && r.Interval != nil:
			return fmt.Sprintf("%s times (%s to %s)", plain.Num(*r.Ratio), plain.Num(r.Interval.Lo),
				plain.Num(r.Interval.Hi))
		case r.Call == stats.TooFewToSay:
			return "too few launches"
		}
		if r.Call == stats.Chance && r.Interval != nil {
			return fmt.Sprintf("~ %s to %s times", plain.Num(r.Interval.Lo), plain.Num(r.Interval.Hi))
		}
		return "~ " + section.Called(r.Judgement, r.PercentInterval, e.res.Statistics)
	}
	switch {
	case !a.Known() || !b.Known() || c.Refused == "":
		return ""
	case f.unit == "MiB" && e.res.InRAM(c):
		return fmt.Sprintf("%s MiB %s", plain.Num(math.Abs(a.Center()-b.Center())), map[bool]string{true: "more",
			false: "less"}[a.Center() > b.Center()])
	}
	return "not comparable " + e.note(strings.TrimPrefix(c.Refused, "not comparable here: "))
}

// note gives a note's number.
func (e *ending) note(text string) string {
	at := slices.Index(e.notes, text)
	if at < 0 {
		at, e.notes = len(e.notes), append(e.notes, text)
	}
	return fmt.Sprintf("(%d)", at+1)
}
