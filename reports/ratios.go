package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/stats"
)

// ratiosPart is how figures stand to each other: a table a question.
type ratiosPart struct {
	Words    string
	Families []familyPart
	Groups   *grid
	InWords  []string // a sentence a ratio
	// MoreWords is how many ratios have none here: they are in the tables.
	MoreWords int
}

// familyPart is one question: does the one side differ from the other?
type familyPart struct {
	Title, Words string
	Grid         *grid
	Notes        []string
}

// wordsShown is how many ratios are told of in a sentence, too.
const wordsShown = 60

const ratiosWords = "Medians over launches, with the wider side of their 95 % intervals. Change: from the left side to the right one, with its 95 % " +
	"interval by bootstrap over launches (percentiles). Where the statistics call nothing different there is a ~ in place of a number: that is " +
	"not to say that there is no difference."

func newRatiosPart(res *compare.Result) ratiosPart {
	p := ratiosPart{Words: ratiosWords, Groups: groupGrid(res)}
	for _, c := range res.Comparisons {
		for _, r := range c.Ratios {
			if len(p.InWords) < wordsShown {
				p.InWords = append(p.InWords, r.Verdict)
			} else {
				p.MoreWords++
			}
		}
	}
	for f := range res.Families {
		blocks, notes := familyBlocks(res, f)
		if len(blocks) == 0 {
			continue
		}
		title, words := familyTitle(res, f)
		g := &grid{Name: title, Head: append([]string{"cells", "figure"}, ratioColumns(res.Families[f])...)}
		for _, b := range blocks {
			for _, row := range b.rows {
				g.Rows = append(g.Rows, append([]string{b.title}, row...))
			}
		}
		p.Families = append(p.Families, familyPart{title, words, g, notes})
	}
	return p
}

// ratioColumns are those behind the figure's name.
func ratioColumns(f compare.Family) []string {
	return []string{line(f.A), line(f.B), "change", "95 % interval", "absolute", "p", "called"}
}

func familyTitle(res *compare.Result, f int) (title, words string) {
	x := res.Families[f]
	title = fmt.Sprintf("%s against %s", line(x.B), line(x.A))
	if x.First {
		title += ", the baseline"
	}
	return title, fmt.Sprintf("p by Mann and Whitney, corrected by Holm for %s; different: p at most %g, and at least %s %% apart.",
		plural(x.Tests, "test"), res.Statistics.Alpha, percent(res.Statistics.MinEffect))
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) }

// ratioBlock is a pair of cells, or what several pairs come to in the mean.
type ratioBlock struct {
	title string
	rows  [][]string
}

// familyBlocks are the same for every format, with the notes that marks in them lead to.
func familyBlocks(res *compare.Result, f int) (blocks []ratioBlock, below []string) {
	said := notes{}
	for _, c := range res.Comparisons {
		if c.Family != f || len(c.Ratios) == 0 {
			continue
		}
		b := ratioBlock{title: line(res.Cells[c.A].Label) + " → " + line(res.Cells[c.B].Label)}
		for _, x := range c.Ratios {
			b.rows = append(b.rows, ratioRow(x, res.Statistics))
			if x.Different != "" {
				said.add("≠", "not alike: "+x.Different, "")
			}
			if x.Note != "" {
				said.add("*", x.Note, x.Title)
			}
			for _, w := range x.Warnings {
				said.add("!", fmt.Sprintf("%s: %s (%s)", w.Where, w.Text, w.Code), x.Title)
			}
		}
		blocks = append(blocks, b)
	}
	for _, m := range res.Families[f].Means {
		title := meanTitle(m)
		if n := len(blocks); n == 0 || blocks[n-1].title != title {
			blocks = append(blocks, ratioBlock{title: title})
		}
		b := &blocks[len(blocks)-1]
		b.rows = append(b.rows, meanRow(m, res.Statistics))
		if m.Different != "" {
			said.add("≠", "not alike: "+m.Different, "")
		}
	}
	return blocks, said.lines
}

// notes are what marks lead to: each once, with all that it is said of.
type notes struct {
	lines []string
	at    map[string]int
	of    map[string][]string
}

func (n *notes) add(mark, text, figure string) {
	key := mark + " " + text
	if n.at == nil {
		n.at, n.of = map[string]int{}, map[string][]string{}
	}
	if _, there := n.at[key]; !there {
		n.at[key] = len(n.lines)
		n.lines = append(n.lines, "")
	}
	if figure != "" && !slices.Contains(n.of[key], figure) {
		n.of[key] = append(n.of[key], figure)
	}
	if of := strings.Join(n.of[key], ", "); of != "" {
		text = of + ": " + text
	}
	n.lines[n.at[key]] = mark + " " + line(text)
}

func meanTitle(m compare.Mean) string {
	title := fmt.Sprintf("geometric mean of %d pairs: %s", m.Cells, line(m.Group))
	if len(m.Over) > 0 {
		title += "; over " + strings.Join(m.Over, ", ")
	}
	if m.Left > 0 {
		title += fmt.Sprintf("; %d left out", m.Left)
	}
	return title
}

func ratioRow(x compare.Ratio, s compare.Statistics) []string {
	side := func(s compare.Side) string {
		return num(s.Median) + " " + spread(evidence.Figure{Median: &s.Median, Interval: s.Interval, N: s.N})
	}
	change, absolute := "~", "~"
	if x.Significant {
		change, absolute = "–", plusMinus(x.Delta)
		if x.Percent != nil {
			change = plusMinus(*x.Percent) + "%"
		}
	}
	title := x.Title
	if x.Unit != "" {
		title += ", " + x.Unit
	}
	return []string{line(title), side(x.Left), side(x.Right), change, percents(x.PercentInterval, x.IntervalNote),
		absolute, probability(x.P),
		called(x.Judgement, s) + marks(x)}
}

func meanRow(m compare.Mean, s compare.Statistics) []string {
	change := "~"
	if m.Significant {
		change = plusMinus(m.Percent) + "%"
	}
	end := called(m.Judgement, s)
	if m.Different != "" {
		end += " ≠"
	}
	return []string{line(m.Title), "–", "–", change, percents(m.PercentInterval, m.Note), "–", probability(m.P), end}
}

// marks lead to the notes below a table.
func marks(x compare.Ratio) string {
	s := ""
	for _, m := range []struct {
		is   bool
		mark string
	}{{x.Different != "", " ≠"}, {x.Note != "", " *"}, {len(x.Warnings) > 0, " !"}} {
		if m.is {
			s += m.mark
		}
	}
	return s
}

// called is the verdict in two words.
func called(j compare.Judgement, s compare.Statistics) string {
	switch j.Call {
	case stats.Differs:
		return "different"
	case stats.TooSmall:
		return "under " + percent(s.MinEffect) + " %"
	case stats.TooFewToSay:
		return "too few runs"
	}
	return "chance"
}

func plusMinus(v float64) string {
	if v > 0 {
		return "+" + num(v)
	}
	return num(v)
}

func percents(i *stats.Interval, note string) string {
	switch {
	case i != nil:
		return plusMinus(i.Lo) + "% to " + plusMinus(i.Hi) + "%"
	case note != "":
		return note
	}
	return "–"
}

func probability(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

// beside names what is to know of a figure's launches; the warnings say it in full.
func beside(f evidence.Figure) string {
	s := ""
	for _, w := range f.Warnings {
		s += "; ! " + strings.ReplaceAll(w.Code, "-", " ")
	}
	return s
}

// marked tells that some figure of the table has a mark.
func (t *table) marked() bool {
	return slices.ContainsFunc(t.res.Cells, func(c compare.Cell) bool {
		return slices.ContainsFunc(c.Figures, func(f evidence.Figure) bool { return len(f.Warnings) > 0 })
	})
}

// groupGrid is what cells come to that were asked to be taken together; nil where nobody asked.
func groupGrid(res *compare.Result) *grid {
	g := &grid{Name: "Groups of cells", Head: []string{"group", "run", "cells", "averaged over", "figure",
		"geometric mean", "95 % interval"}}
	for _, x := range res.Groups {
		over := strings.Join(x.Over, ", ")
		if over == "" {
			over = "nothing"
		}
		if x.Refused != "" {
			g.Rows = append(g.Rows, []string{line(x.Name), line(res.Runs[x.Run].Name), strconv.Itoa(len(x.Cells)), over,
				"–", "not averaged: " + x.Refused, "–"})
			continue
		}
		for _, v := range x.Figures {
			if v.Mean == nil && v.Note == "" {
				continue
			}
			mean, interval := "–", v.Note
			if v.Mean != nil {
				mean = strings.TrimSpace(num(*v.Mean) + " " + v.Unit)
			}
			if v.Interval != nil {
				interval = num(v.Interval.Lo) + " to " + num(v.Interval.Hi)
			}
			cells := strconv.Itoa(v.Cells)
			if v.Left > 0 {
				cells = fmt.Sprintf("%d of %d", v.Cells, v.Cells+v.Left)
			}
			g.Rows = append(g.Rows, []string{line(x.Name), line(res.Runs[x.Run].Name), cells, over, v.Title, mean,
				interval})
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// compared writes the same for a terminal.
func (t *table) compared() {
	p := newRatiosPart(t.res)
	for f := range t.res.Families {
		blocks, notes := familyBlocks(t.res, f)
		if len(blocks) == 0 {
			continue
		}
		title, words := familyTitle(t.res, f)
		t.b.WriteString("\n" + wrap(title, "", "  ", width))
		rows := [][]string{append([]string{""}, ratioColumns(t.res.Families[f])...)}
		for i := range rows[0] {
			rows[0][i] = lastOf(rows[0][i], 18)
		}
		for _, b := range blocks {
			rows = append(rows, append([]string{b.title}, make([]string, len(rows[0])-1)...))
			for _, row := range b.rows {
				rows = append(rows, append([]string{"  " + row[0]}, row[1:]...))
			}
		}
		t.aligned(rows)
		t.b.WriteString(wrap(words, "", "", width))
		for _, n := range notes {
			mark, text, _ := strings.Cut(n, " ")
			t.b.WriteString(wrap(text, mark+" ", "  ", width))
		}
	}
	if p.Groups != nil {
		t.b.WriteString("\nGroups of cells\n")
		t.aligned(append([][]string{p.Groups.Head}, p.Groups.Rows...))
	}
	if len(p.Families) > 0 {
		t.b.WriteString(wrap(p.Words, "", "", width))
	}
}

// lastOf cuts a name where it begins: paths tell runs apart by their ends.
func lastOf(s string, width int) string {
	if letters := []rune(s); len(letters) > width {
		return "…" + string(letters[len(letters)-width+1:])
	}
	return s
}

// aligned writes rows below one header line. A row of a title alone may be as long as it likes.
func (t *table) aligned(rows [][]string) {
	widths := make([]int, len(rows[0]))
	alone := func(row []string) bool { return !slices.ContainsFunc(row[1:], func(s string) bool { return s != "" }) }
	for i, row := range rows {
		for k, field := range row {
			if i == 0 || !alone(row) {
				widths[k] = max(widths[k], len([]rune(field)))
			}
		}
	}
	for i, row := range rows {
		if i > 0 && alone(row) {
			t.b.WriteString(wrap(row[0], "", "  ", width))
			continue
		}
		var text strings.Builder
		for k, field := range row {
			field = strings.ReplaceAll(field, "–", "-")
			pad := strings.Repeat(" ", widths[k]-len([]rune(field)))
			switch {
			case k == 0 || k == len(row)-1:
				text.WriteString(field + pad + "  ")
			default:
				text.WriteString(pad + field + "  ")
			}
		}
		t.b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
		if i == 0 {
			t.b.WriteString(strings.Repeat("-", total(widths)) + "\n")
		}
	}
}
