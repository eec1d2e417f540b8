package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
)

// width is what a terminal surely has.
const width = 120

// Table writes the result for a terminal: plain text, which a file or a pipe can take as well. It has what decides;
// Details has more.
func Table(w io.Writer, res *compare.Result) error { return (&table{res: res}).write(w) }

// Details writes the same with the memory in full: each component's method, each forecast's range, and where the memory
// is.
func Details(w io.Writer, res *compare.Result) error {
	return (&table{res: res, details: true}).write(w)
}

type table struct {
	res      *compare.Result
	b        strings.Builder
	details  bool
	numbered bool // rows carry numbers, because their names had to be shortened
}

// columns of the table are a figure each.
func columns() []*figure.Row { return figure.Columns(func(r *figure.Row) bool { return r.Head != "" }) }

// originsWords say what the figures of the first table come from.
const originsWords = "Memory: measured by the sampler; times and rates: by the clock."

func (t *table) write(w io.Writer) error {
	if len(t.res.Cells) > 0 {
		t.grid()
		t.engines()
		t.b.WriteString(wrap(originsWords+
			" Median over counted launches; ±: the wider side of the median's 95 % interval; (n=…): too "+
			"few runs for one.", "", "", width))
		if t.marked() {
			t.b.WriteString("!: outliers, a trend, noise (a robust standard deviation above a tenth of the median) or a busy machine; the warnings name them.\n")
		}
		t.pieces()
	}
	t.section("", "", t.res.Verdict)
	t.section("Risk of running out of memory", "! ", risks(t.res))
	t.section("What may be compared", "- ", t.res.Comparability)
	t.points()
	if t.details {
		t.parts()
		t.prediction()
		t.breakdown()
	} else {
		t.components()
	}
	t.section(growthTitle, "- ", growthLines(t.res))
	t.hardware()
	t.section("Parity", "- ", t.parity())
	t.compared()
	t.section("Warnings", "! ", t.warnings())
	if t.res.Gate != nil {
		t.section("Gate", "- ", gateLines(t.res.Gate))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// engines says what each ran with: no figure means anything without it.
func (t *table) engines() {
	for _, g := range t.res.Engines() {
		name := g.Name
		if t.numbered {
			numbers := make([]string, len(g.Cells))
			for i, cell := range g.Cells {
				numbers[i] = number(cell)
			}
			name = strings.Join(numbers, "") + g.Name
		}
		if g.With != "" || t.numbered {
			t.b.WriteString(wrap(name+": "+g.With, "", "  ", width))
		}
	}
}

// pieces says whose latencies between tokens are not between tokens.
func (t *table) pieces() {
	var who []string
	for i := range t.res.Cells {
		if c := &t.res.Cells[i]; c.BetweenPieces() && c.Figure(figure.ITL50).Known() {
			who = append(who, c.Label)
		}
	}
	if len(who) > 0 {
		t.b.WriteString(wrap("ITL between pieces of text, not tokens: "+strings.Join(who, "; ")+".", "", "", width))
	}
}

func number(cell int) string { return fmt.Sprintf("[%d] ", cell+1) }

func (t *table) section(title, mark string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.b.WriteByte('\n')
	if title != "" {
		t.b.WriteString(title + "\n")
	}
	for _, l := range lines {
		t.b.WriteString(wrap(l, mark, strings.Repeat(" ", len(mark)), width))
	}
}

func (t *table) parity() []string {
	return append(parityLines(t.res), t.self()...)
}

// self says how cells agree with themselves, what several have in common once.
func (t *table) self() []string {
	var verdicts []string
	cells := map[string][]string{}
	for _, c := range t.res.Cells {
		if cells[c.Self.Verdict] == nil {
			verdicts = append(verdicts, c.Self.Verdict)
		}
		cells[c.Self.Verdict] = append(cells[c.Self.Verdict], c.Label)
	}
	var out []string
	for _, verdict := range verdicts {
		switch labels := cells[verdict]; len(labels) {
		case 1:
			out = append(out, fmt.Sprintf("%s with itself: %s.", labels[0], verdict))
		case len(t.res.Cells):
			out = append(out, fmt.Sprintf("Each cell with itself: %s.", verdict))
		default:
			out = append(out, fmt.Sprintf("Each of these with itself: %s: %s.", verdict, strings.Join(labels, "; ")))
		}
	}
	return out
}

func (t *table) warnings() []string {
	var out []string
	for _, w := range warned(t.res) {
		out = append(out, fmt.Sprintf("%s: %s (%s)", w.Where, w.Text, w.Code))
	}
	return out
}

func (t *table) grid() {
	rows := [][]string{{"", "launches"}, {"cell", "counted"}}
	for _, c := range columns() {
		rows[0], rows[1] = append(rows[0], c.Head), append(rows[1], c.Unit)
	}
	rows[0], rows[1] = append(rows[0], "tokens"), append(rows[1], "identical")
	for i := range t.res.Cells {
		rows = append(rows, t.row(i))
	}
	cells := make([]int, len(t.res.Cells))
	for i := range cells {
		cells[i] = i
	}
	t.print(rows, cells)
}

// points is the memory at three points. Why one has no baseline is said below.
func (t *table) points() {
	rows, cells := [][]string{{"", "", "", "after", "", ""},
		{"cell", "MiB of", "baseline", "warm-up", "peak", "increase"}},
		[]int{}
	var notes []string
	whose := map[string][]string{}
	for i := range t.res.Cells {
		c := &t.res.Cells[i]
		p := c.Points()
		if !p.Peak.Known() {
			continue
		}
		row := []string{line(c.Label), p.Of}
		for _, f := range []evidence.Figure{p.Baseline, p.Warm, p.Peak, p.Increase} {
			row = append(row, strings.ReplaceAll(held(f, c.Launches), "–", "-"))
			if why := f.Title + ": " + f.Absent; !f.Known() {
				if whose[why] == nil {
					notes = append(notes, why)
				}
				whose[why] = append(whose[why], c.Label)
			}
		}
		rows, cells = append(rows, row), append(cells, i)
	}
	if len(cells) == 0 {
		return
	}
	t.b.WriteString("\nMemory at three points\n")
	t.print(rows, cells)
	for _, why := range notes {
		t.b.WriteString(wrap(fmt.Sprintf("%s, %s.", strings.Join(whose[why], "; "), why), "- ", "  ", width))
	}
}

// breakdownColumns of the table are a figure each.
func breakdownColumns() []*figure.Row {
	return figure.Rows(func(r *figure.Row) bool { return r.Inside != nil && r.Inside.Head[1] != "" })
}

// breakdown says where the memory is, where anything is known of that: a row a cell and moment.
func (t *table) breakdown() {
	rows, cells := [][]string{{"", ""}, {"cell", "when"}}, []int{}
	for _, c := range breakdownColumns() {
		rows[0], rows[1] = append(rows[0], c.Inside.Head[0]), append(rows[1], c.Inside.Head[1])
	}
	var notes []string
	for i := range t.res.Cells {
		c := &t.res.Cells[i]
		if c.Memory == nil {
			continue
		}
		for _, m := range moments() {
			row, known := []string{line(c.Label), m.name}, false
			for _, col := range breakdownColumns() {
				f := evidence.Held(m.of(c.Memory), col.Name)
				row, known = append(row, strings.ReplaceAll(held(f, c.Launches), "–", "-")), known || f.Known()
			}
			if known {
				rows, cells = append(rows, row), append(cells, i)
			}
		}
		if words := highest(c.Memory); words != "" {
			notes = append(notes, fmt.Sprintf("%s: highest RSS of each process, and in which phase: %s.", c.Label,
				words))
		}
	}
	if len(cells)+len(notes) == 0 {
		return
	}
	t.b.WriteString("\nWhere the memory is\n")
	if len(cells) > 0 {
		t.print(rows, cells)
	}
	t.b.WriteString(wrap(breakdownWords+" "+peaksWords, "", "", width))
	for _, n := range append(breakdownNotes(t.res), notes...) {
		t.b.WriteString(wrap(n, "- ", "  ", width))
	}
}

// print writes rows below two header lines; cells says whose each row is.
func (t *table) print(rows [][]string, cells []int) {
	widths := t.fit(rows, cells)
	for n, row := range rows {
		for i, field := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(field))
			if i == 0 {
				row[i] = field + pad
			} else {
				row[i] = pad + field
			}
		}
		text := strings.TrimRight(strings.Join(row, "  "), " ")
		t.b.WriteString(text + "\n")
		if n == 1 {
			t.b.WriteString(strings.Repeat("-", total(widths)) + "\n")
		}
	}
}

func (t *table) row(i int) []string {
	c := &t.res.Cells[i]
	row := []string{line(c.Label), fmt.Sprintf("%d/%d", c.Launches.Counted, c.Launches.Planned)}
	if c.Refused != "" {
		row[1] = "refused"
	}
	for _, col := range columns() {
		f := c.Figure(col.Name)
		if !f.Known() {
			row = append(row, "-")
			continue
		}
		row = append(row, num(f.Center())+" "+spread(f))
	}
	return append(row, t.parityOf(i))
}

// parityOf is a cell's parity in a word or two; the sentences below say more.
func (t *table) parityOf(i int) string {
	best := ""
	for _, p := range t.res.Parity {
		if p.A != i && p.B != i || !p.Compared {
			continue
		}
		switch {
		case p.First != nil:
			return fmt.Sprintf("to token %d", p.Agreed)
		case p.ByText && !p.Identical && p.Shared == 0:
			return "no"
		case p.ByText && !p.Identical:
			best = fmt.Sprintf("to byte %d", p.Shared)
		case !p.Identical:
			best = "in part"
		case best == "" && p.Tokens > 0:
			best = fmt.Sprintf("%d of %d", p.Agreed, p.Tokens)
		case best == "":
			best = "as text"
		}
	}
	if best == "" {
		return "-"
	}
	return best
}

// fit gives the columns' widths, shortening labels where the table would be too wide.
func (t *table) fit(rows [][]string, cells []int) []int {
	widths := make([]int, len(rows[0]))
	measure := func() {
		clear(widths)
		for _, row := range rows {
			for i, field := range row {
				widths[i] = max(widths[i], utf8.RuneCountInString(field))
			}
		}
	}
	measure()
	const least = 8
	// numbers before short names would take what cutting them gives
	if over := total(widths) - width; over > 0 && widths[0] > least {
		// Shortened names may be equal: the numbers before them are not, and the names stand below in full.
		t.numbered = true
		for i, row := range rows[2:] {
			row[0] = shorten(number(cells[i])+row[0], max(least, widths[0]-over))
		}
		measure()
	}
	return widths
}

func total(widths []int) int {
	n := 2 * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}
