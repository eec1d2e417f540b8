package section

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
	"llmparity/reports/sides"
)

// originsWords say what the figures of the first table come from.
const originsWords = "Memory is measured by llmparity's sampler, times and rates by its clock."

// Columns of the table are a figure each.
func Columns(res *compare.Result) []*figure.Row {
	return figure.Columns(func(r *figure.Row) bool { return r.Head != "" && shown(res, r) })
}

// shown reports whether a table has a figure: an optional one, or one of pages, if a cell has it.
func shown(res *compare.Result, r *figure.Row) bool {
	return !r.Optional && !r.OfSome || slices.ContainsFunc(res.Cells, func(c *compare.Cell) bool {
		f := c.Figure(r.Name)
		return f.Title != "" && (r.Optional || f.Known())
	})
}

// Headed is a title with its unit.
func Headed(title, unit string) string { return strings.TrimSuffix(title+" ("+unit+")", " ()") }

// oneLaunch says what tables of parts are about: medians of parts need not add up.
const oneLaunch = "Sizes are of one launch of each cell, the one whose peak is closest to the median."

func pointsSection(res *compare.Result) Section {
	head := []string{"cell", "launch", "MiB of", "baseline", "after\nwarm-up", "peak", "increase"}
	return Section{ID: "points", Title: "Memory at three points", Words: []string{oneLaunch}, Mark: "- ",
		Lines: missingPoints(res),
		Grid: plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
			if p, s := c.Points(), c.Shown(); s.Known(p.Peak.Name) {
				add(c.ShownLaunch(), p.Of, s.Text(p.Baseline.Name), s.Text(p.Warm.Name), s.Text(p.Peak.Name),
					s.Text(p.Increase.Name))
			}
		})}
}

func summaryGrid(res *compare.Result) *plain.Grid {
	head := []string{"cell", "launches\ncounted"}
	columns := Columns(res)
	for _, col := range columns {
		head = append(head, Headed(col.Head, col.Unit))
	}
	t := plain.PerCell(res, append(head, "tokens\nidentical"), func(c *compare.Cell, add func(...string)) {
		row := []string{fmt.Sprintf("%d/%d", c.Launches.Counted, c.Launches.Planned)}
		if c.Launches.Counted > c.Launches.Planned { // until an interval was narrow enough
			row[0] = fmt.Sprint(c.Launches.Counted)
		}
		if c.Refused != "" {
			row[0] = "refused"
		}
		for _, col := range columns {
			value := "–"
			if f := c.Figure(col.Name); f.Known() {
				value = plain.Num(f.Center()) + " " + plain.Spread(f)
			}
			row = append(row, value)
		}
		add(append(row, sides.ParityOf(res, c))...)
	})
	if t != nil {
		for _, g := range res.Engines() {
			if g.With != "" {
				t.Legend = append(t.Legend, g.Name+": "+g.With)
			}
		}
	}
	return t
}

// summaryWords say how to read the table, and whose latencies between tokens are not between tokens.
func summaryWords(res *compare.Result) []string {
	out := []string{originsWords + " Median over counted launches; ±: the wider side of the median's 95% interval, whose ends are shown above ±20%; " +
		"(n=…): too few launches for one."}
	marked, pieces := false, []string(nil)
	for _, c := range res.Cells {
		marked = marked || marks(c)
		if c.BetweenPieces() && c.Figure(figure.ITL50).Known() {
			pieces = append(pieces, c.Label)
		}
	}
	if marked {
		out = append(out, sides.Mark)
	}
	if len(pieces) > 0 {
		out = append(out, "ITL between pieces of text, not tokens: "+strings.Join(pieces, "; ")+".")
	}
	return out
}

// MarkWords explain the mark of figures, if a table has one.
func MarkWords(res *compare.Result) string {
	if slices.ContainsFunc(res.Cells, marks) {
		return sides.Mark
	}
	return ""
}

// marks reports whether tables mark a figure of a cell.
func marks(c *compare.Cell) bool {
	return slices.ContainsFunc(c.Figures, func(f evidence.Figure) bool { return f.Marked() })
}

// summaryTable is the page's.
type summaryTable struct {
	Heads []summaryHead
	Rows  []summaryRow
}

type summaryHead struct{ Title, Unit string }

type summaryRow struct {
	Label, Device, With, Launches string
	Colour                        template.CSS
	Figures                       []summaryFigure
	Parity                        string
}

type summaryFigure struct{ Value, Under string }

// Key is what the page sorts by, where that is not what stands there.
func (f summaryFigure) Key() string { return plain.SortKey(f.Value) }

func summaryView(v *chart.View) Section {
	t := summaryTable{Heads: []summaryHead{{"Peak", "MiB"}, {"Increase", "MiB"}}}
	for _, r := range inSummary(v.Res) {
		t.Heads = append(t.Heads, summaryHead{r.Summary, r.Unit})
	}
	said := map[[3]string]bool{}
	for i, c := range v.Res.Cells {
		row := newSummaryRow(v, i)
		key := [3]string{c.Spec.Engine, row.Device, row.With}
		if said[key] { // the first row of an engine says it
			row.Device, row.With = "", ""
		}
		said[key] = true
		t.Rows = append(t.Rows, row)
	}
	words := "Figures are medians over launches, with 95% intervals."
	if slices.ContainsFunc(v.Res.Cells, marks) {
		words += " " + sides.Mark
	}
	s := Section{For: OnPage, View: "summary", Data: t, Words: []string{words},
		Method: []string{originsWords + " Intervals are order-statistic intervals of the median. Memory is total PSS, which " +
			"counts each page once. If PSS cannot be read, memory is the sum of RSS, which counts shared pages more than once."}}
	if len(t.Rows) == 0 {
		return Section{}
	}
	return s
}

// inSummary are the figures that the page's summary has behind the peak and the increase.
func inSummary(res *compare.Result) []*figure.Row {
	return figure.Columns(func(r *figure.Row) bool { return r.Summary != "" && shown(res, r) })
}

func newSummaryRow(v *chart.View, i int) summaryRow {
	c := v.Res.Cells[i]
	row := summaryRow{Label: plain.Line(c.Label), Colour: template.CSS(v.Colour(i)), Device: "unknown device",
		With:     plain.Line(c.With),
		Launches: Launches(c.Launches), Parity: sides.ParityOf(v.Res, c)}
	if c.Refused != "" {
		row.Device, row.Launches = "not launched", "refused: "+plain.Line(c.Refused)
	}
	if c.Foreign() {
		row.Device = ""
	} else if c.Device != nil {
		row.Device = plain.Line(c.Device.Title())
	}
	p := c.Points()
	figures := []evidence.Figure{p.Peak, p.Increase}
	for _, r := range inSummary(v.Res) {
		figures = append(figures, c.Figure(r.Name))
	}
	for _, f := range figures {
		value, under := figureCell(f)
		switch cached := c.Figure(figure.Cached); {
		case c.Foreign() && !f.Known():
			under = "" // a log has memory alone
		case f.Name == figure.PrefillTPS && cached.Known() && cached.Center() > 0:
			under += fmt.Sprintf("; %s of %s prompt tokens from a cache", plain.Num(cached.Center()),
				plain.Num(c.Figure(figure.Prompt).Center()))
		case (f.Name == figure.ITL50 || f.Name == figure.ITL99) && f.Known() && c.BetweenPieces():
			under += "; between pieces"
		case f.Name == figure.PeakRSS:
			under += "; RSS sum"
		}
		row.Figures = append(row.Figures, summaryFigure{value, under})
	}
	return row
}

// missingPoints say why one has no baseline.
func missingPoints(res *compare.Result) []string {
	var out evidence.Groups[string, string]
	for _, c := range res.Cells {
		p := c.Points()
		if !p.Peak.Known() {
			continue
		}
		for _, f := range []evidence.Figure{p.Baseline, p.Warm, p.Peak, p.Increase} {
			if !f.Known() {
				evidence.AddNew(&out, f.Title+": "+f.Absent, c.Label)
			}
		}
	}
	return out.Lines(func(why string, cells []string) string {
		return fmt.Sprintf("%s, %s.", strings.Join(cells, "; "), why)
	})
}

// Launches counts a cell's launches by how they ended.
func Launches(l evidence.Counts) string {
	s := fmt.Sprintf("%d of %d", l.Counted, l.Planned)
	if l.Counted > l.Planned { // until an interval was narrow enough
		s = fmt.Sprintf("%d, at least %d planned", l.Counted, l.Planned)
	}
	switch {
	case l.Opened == 1:
		s += " in one launch"
	case l.Opened > 1:
		s += fmt.Sprintf(" in %d launches", l.Opened)
	}
	for _, more := range []struct {
		n    int
		what string
	}{{l.Failed, "failed"}, {l.Interrupted, "interrupted"}, {l.Warmup, "warm-up"}} {
		if more.n > 0 {
			s += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	return s
}

// median of a figure in words, for tables.
func figureCell(f evidence.Figure) (value, under string) {
	if !f.Known() {
		return "–", f.Absent
	}
	if f.Interval == nil {
		return plain.Num(f.Center()), fmt.Sprintf("%s: %d", f.Note, f.N) + beside(f)
	}
	return plain.Num(f.Center()), plain.Num(f.Interval.Lo) + " – " + plain.Num(f.Interval.Hi) + beside(f)
}

// beside marks a figure with warnings of its launches.
func beside(f evidence.Figure) string {
	if f.Marked() {
		return " !"
	}
	return ""
}
