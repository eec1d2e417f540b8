package section

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/kit/words"
	"llmparity/internal/stats"
	"llmparity/reports/plain"
	"llmparity/reports/sides"
)

// wordsShown is how many differences have a sentence.
const wordsShown = 60

// How to read differences.
const (
	ratiosWords  = "Medians over launches and the change from the left side to the right. ~ means no significant difference, which does not prove that there is none."
	ratiosMethod = "±: the wider side of the median's 95% interval. The interval of the change is a percentile bootstrap over launches. " +
		"Where it contradicts the corrected test, the table shows the interval of that test, with its confidence."
)

// Ratios has one table per question.
func Ratios(res *compare.Result) Section {
	s := Section{ID: "ratios", Title: "Differences"}
	for f := range res.Families {
		if part := familyPart(res, f); part.Grid != nil {
			s.Parts = append(s.Parts, part)
		}
	}
	if len(s.Parts) > 0 {
		s.Words, s.Method = []string{ratiosWords}, []string{ratiosMethod}
		if first := &s.Parts[0]; first.Folded {
			first.Words, s.Words = append(s.Words, first.Words...), nil
		}
	}
	s.Parts = append(s.Parts, Section{Title: "Groups of cells", Grid: groupGrid(res)})
	said := Section{Title: "The differences in words", For: Document | OnPage, Mark: "- ", Folded: true}
	for _, c := range res.Comparisons {
		for _, r := range c.Ratios {
			said.Lines = append(said.Lines, r.Verdict)
		}
	}
	if more := len(said.Lines) - wordsShown; more > 0 {
		said.Lines = append(said.Lines[:wordsShown:wordsShown],
			fmt.Sprintf("%d more are in the tables.", more))
	}
	s.Parts = append(s.Parts, said)
	return s
}

// familyPart answers one question: does one side differ from the other? Its table has the pairs of cells, then means
// over pairs; the notes explain the marks.
func familyPart(res *compare.Result, f int) Section {
	x := res.Families[f]
	title := fmt.Sprintf("%s compared with %s", plain.Line(x.B), plain.Line(x.A))
	if x.First {
		title += ", the baseline run"
	}
	head := []string{"cells", "figure", plain.Line(x.A), plain.Line(x.B), "change", "95% interval"}
	noisy := x.First && res.Noise != nil
	if noisy {
		head = append(head, "machine noise")
	}
	g := &plain.Grid{Name: title, Grouped: true, Head: append(head, "absolute", "p", "result")}
	var notes evidence.Groups[remark, string]
	for _, c := range res.Comparisons {
		if c.Family != f {
			continue
		}
		pair := plain.Line(res.Cells[c.A].Label) + " → " + plain.Line(res.Cells[c.B].Label)
		for _, r := range c.Ratios {
			g.Rows = append(g.Rows, append([]string{pair}, ratioRow(r, res.Statistics, noisy)...))
			if r.Different != "" {
				evidence.AddNew(&notes, remark{"≠", notAlike + r.Different}, "")
			}
			if r.Note != "" {
				evidence.AddNew(&notes, remark{"*", r.Note}, r.Title)
			}
			for _, w := range ownWarnings(r) {
				evidence.AddNew(&notes, remark{"!", fmt.Sprintf("%s: %s (%s)", w.Where, w.Text, w.Code)}, r.Title)
			}
		}
	}
	for _, m := range x.Means {
		g.Rows = append(g.Rows, append([]string{meanTitle(m)}, meanRow(m, res.Statistics, noisy)...))
		if m.Different != "" {
			evidence.AddNew(&notes, remark{"≠", notAlike + m.Different}, "")
		}
	}
	read := []string{fmt.Sprintf(
		"p: Mann-Whitney test, corrected by %s for %s. Different: p at most %g and a change of at least %s%%.",
		x.Correction, words.Count(x.Tests, "test"), res.Statistics.Alpha, percent(res.Statistics.MinEffect))}
	if noisy {
		read = append(read, fmt.Sprintf(noiseWords, plain.Line(x.A)))
	}
	marks := notes.Lines(func(note remark, figures []string) string {
		text := note.text
		if names := strings.Join(figures, ", "); names != "" {
			text = names + ": " + text
		}
		return note.mark + " " + plain.Line(text)
	})
	// of two cells the table of the answer has what matters
	return Section{Title: title, Grid: g.OrNil(), Words: read, Folded: len(res.Cells) == 2,
		Parts: []Section{{Title: "Why figures are marked", Folded: true, Lines: marks, Mark: noMark}}}
}

// remark is a note below the table, and the mark of the rows that it is about.
type remark struct{ mark, text string }

const notAlike = "not alike: "

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) }

func meanTitle(m ratio.Mean) string {
	title := fmt.Sprintf("geometric mean of %d pairs: %s", m.Cells, plain.Line(m.Group))
	if len(m.Over) > 0 {
		title += "; over " + strings.Join(m.Over, ", ")
	}
	if m.Left > 0 {
		title += fmt.Sprintf("; %d left out", m.Left)
	}
	return title
}

// noiseWords say what the column of the noise has.
const noiseWords = "Machine noise: the change from %[1]s to %[1]s measured once more, with its 95%% interval. " +
	"Its launches alternated with both sides."

func ratioRow(x ratio.Ratio, s compare.Statistics, noisy bool) []string {
	side := func(s ratio.Side) string {
		f := evidence.Figure{Median: &s.Median, Interval: s.Interval, N: s.N}
		return plain.Num(s.Median) + " " + plain.Spread(f)
	}
	change, absolute := "~", "~"
	if x.Significant {
		change, absolute = "–", plusMinus(x.Delta)
		if x.Percent != nil {
			change = plusMinus(*x.Percent) + "%"
		}
	}
	v := verdict.Of(&x, "", "", s.MinEffect)
	end := v.Called() // with marks, which the notes below the table explain
	if x.Different != "" {
		end += " ≠"
	}
	if x.Note != "" {
		end += " *"
	}
	if len(ownWarnings(x)) > 0 {
		end += " !"
	}
	row := []string{plain.Line(plain.Joined(", ", x.Title, x.Unit)), side(x.Left), side(x.Right), change,
		percents(x.PercentInterval, x.IntervalNote)}
	if noisy {
		row = append(row, sides.NoiseOf(&x))
	}
	return append(row, absolute, probability(x.P), end)
}

// ownWarnings are a ratio's warnings. That the machine was busy is a warning of the run.
func ownWarnings(x ratio.Ratio) []evidence.Warning {
	busy := func(w evidence.Warning) bool { return w.Code == explain.BusyMachine.Code }
	return slices.DeleteFunc(slices.Clone(x.Warnings), busy)
}

func meanRow(m ratio.Mean, s compare.Statistics, noisy bool) []string {
	change := "~"
	if m.Significant {
		change = plusMinus(m.Percent) + "%"
	}
	v := verdict.OfMean(&m, "", "", s.MinEffect)
	end := v.Called()
	if m.Different != "" {
		end += " ≠"
	}
	row := []string{plain.Line(m.Title), "–", "–", change, percents(m.PercentInterval, m.Note)}
	if noisy {
		row = append(row, "–")
	}
	return append(row, "–", probability(m.P), end)
}

func plusMinus(v float64) string {
	if v > 0 {
		return "+" + plain.Num(v)
	}
	return plain.Num(v)
}

func percents(i *stats.Interval, note string) string {
	switch {
	case i != nil:
		text := plusMinus(i.Lo) + "% to " + plusMinus(i.Hi) + "%"
		if i.Confidence > stats.Confidence {
			text += fmt.Sprintf(" (%.3g%% CI)", 100*i.Confidence)
		}
		return text
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

// groupGrid has the means over groups of cells; nil where none were asked for.
func groupGrid(res *compare.Result) *plain.Grid {
	g := &plain.Grid{Name: "Groups of cells", Head: []string{"group", "run", "cells", "averaged over", "figure",
		"geometric mean", "95% interval"}}
	for _, x := range res.Groups {
		over := cmp.Or(strings.Join(x.Over, ", "), "nothing")
		if x.Refused != "" {
			g.Rows = append(g.Rows, []string{plain.Line(x.Name), plain.Line(res.Runs[x.Run].Title()),
				strconv.Itoa(len(x.Cells)), over, "–", "not averaged: " + x.Refused, "–"})
			continue
		}
		for _, v := range x.Figures {
			if v.Mean == nil && v.Note == "" {
				continue
			}
			mean, interval := "–", v.Note
			if v.Mean != nil {
				mean = strings.TrimSpace(plain.Num(*v.Mean) + " " + v.Unit)
			}
			if v.Interval != nil {
				interval = plain.Num(v.Interval.Lo) + " to " + plain.Num(v.Interval.Hi)
			}
			cells := strconv.Itoa(v.Cells)
			if v.Left > 0 {
				cells = fmt.Sprintf("%d of %d", v.Cells, v.Cells+v.Left)
			}
			g.Rows = append(g.Rows, []string{plain.Line(x.Name), plain.Line(res.Runs[x.Run].Title()), cells, over,
				v.Title, mean, interval})
		}
	}
	return g.OrNil()
}
