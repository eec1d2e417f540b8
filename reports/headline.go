package reports

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/words"
)

// headlineSection is the answer with its two charts.
func headlineSection(res *compare.Result, a *compare.Answer) section {
	return section{ID: "headline", For: onPage, View: "answer", Data: newAnswerPart(a, len(warned(res))), Across: "duo",
		Draw: headlines}
}

// answerCard is a card under the question that it answers, with the section that says more.
type answerCard struct {
	compare.Card
	Title, To string
}

// answerPart is what the page shows of an answer.
type answerPart struct {
	Cards      []answerCard
	Warnings   []evidence.Warning
	Count, All string
}

func newAnswerPart(a *compare.Answer, all int) answerPart {
	p := answerPart{Warnings: a.Warnings, All: "All warnings",
		Count: words.Count(len(a.Warnings), "warning") + " may change a conclusion."}
	for _, c := range []answerCard{{a.Memory, "Memory", "memory"}, {a.Speed, "Speed", "speed"},
		{a.Output, "Output", "tokens"}, {a.Sure, "How sure?", "measured"}, {a.Quote, "May I quote it?", "measured"}} {
		if c.Headline != "" {
			p.Cards = append(p.Cards, c)
		}
	}
	if all > len(a.Warnings) {
		p.All = fmt.Sprintf("All %d warnings", all)
	}
	return p
}

// mostHeadlines is how many cells the charts beside the answer have room for.
const mostHeadlines = 12

// headlines are the peak by component, and beside it the speed; where speeds are not comparable, what the engine added.
func headlines(v *view) []chart {
	if len(v.res.Cells) > mostHeadlines {
		return nil
	}
	out := peakStack(v)
	refused := slices.ContainsFunc(v.res.Comparisons, func(c compare.Comparison) bool { return c.Refused != "" })
	if beside := added(v); refused && beside != nil {
		return append(out, beside...)
	}
	name := figure.DecodeTPS
	if slices.ContainsFunc(v.res.Cells, func(c compare.Cell) bool { return c.Load != nil }) {
		name = figure.AggregateTPS
	}
	speed := bars("headline-speed", name, titleCase(figure.Title(name)))(v)
	for i := range speed {
		speed[i].Table = nil
		speed[i].Note = "Median, launches and 95% interval. Longer is faster."
	}
	return append(out, speed...)
}

// peakStack draws each cell's peak by component with its interval; where PSS could not be read, the sum of RSS.
func peakStack(v *view) []chart {
	var cells []*compare.Cell
	t := &barTable{}
	for i := range v.res.Cells {
		c := &v.res.Cells[i]
		p := c.Points()
		if !p.Peak.Known() {
			continue
		}
		name := line(c.Label) + "\n" + num(p.Peak.Center()) + " MiB"
		if p.Peak.Name == figure.PeakRSS {
			name += " (RSS)"
		}
		cells, t.bars, t.intervals = append(cells, c), append(t.bars, name), append(t.intervals, p.Peak.Interval)
	}
	if len(cells) == 0 {
		return nil
	}
	split := func(c *compare.Cell) bool { return c.Parts.Component(figure.ModelWeights).Known() }
	before := func(n int) float64 { return cells[n].Points().Baseline.Center() }
	t.add("before the model", before, inked("var(--off)", 0))
	for _, col := range components() {
		if colour, ok := partColour[col.Name]; ok {
			t.add(partName(col.Name), func(n int) float64 {
				if !split(cells[n]) {
					return math.NaN()
				}
				return cells[n].Parts.Shown(col.Name).Center()
			}, inked(colour, 0))
		}
	}
	t.add("not broken down", func(n int) float64 {
		p := cells[n].Points()
		switch {
		case split(cells[n]):
			return math.NaN()
		case p.Baseline.Known():
			return p.Peak.Center() - p.Baseline.Center()
		}
		return p.Peak.Center()
	}, inked("var(--p3)", 0))
	return []chart{{ID: "headline-memory", Title: "Peak memory", Unit: "MiB", Height: rowsHeight(len(cells), 1),
		Note:     "Total PSS of all processes, median, by component. Line: 95% interval.",
		Label:    "Stacked bars of each cell's peak memory by component; section Memory has the figures in a table",
		Drawings: []drawing{{Options: t.options()}}}}
}

// added draws the components that the engine added to the baseline, cells side by side.
func added(v *view) []chart {
	if len(v.res.Cells) > mostNarrow {
		return nil
	}
	size := func(cell int, name string) float64 {
		if f := v.res.Cells[cell].Parts.Shown(name); f.Known() && digits(f.Center()) != 0 {
			return f.Center()
		}
		return math.NaN()
	}
	t := &barTable{apart: true}
	var names []string
	for _, col := range components() {
		some := false
		for i := range v.res.Cells {
			some = some || !math.IsNaN(size(i, col.Name))
		}
		if _, ok := partColour[col.Name]; ok && some {
			t.bars, names = append(t.bars, partName(col.Name)), append(names, col.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	for i := range v.res.Cells {
		t.add(line(v.res.Cells[i].Label), func(bar int) float64 { return size(i, names[bar]) }, inked(v.colour(i), 0),
			options{"barGap": "10%", "barCategoryGap": "30%",
				"label": options{"show": true, "position": "right", "fontSize": 11, "color": "var(--muted)"}})
	}
	return []chart{{ID: "headline-added", Title: "What the engine added", Unit: "MiB",
		Height:   34 + len(names)*(10+12*len(v.res.Cells)),
		Note:     "Median increase over the baseline, by component.",
		Label:    "Bars of each component of the memory increase; section Where memory goes has the figures in a table",
		Drawings: []drawing{{Options: t.options()}}}}
}

// promptShown is how much of a prompt stands below the title; the engines' facts have all of it.
const promptShown = 240

// onlyPrompt is the prompt that all cells share.
func onlyPrompt(res *compare.Result) string {
	prompt := ""
	for i := range res.Cells {
		if i > 0 && res.Cells[i].Spec.Prompt != prompt {
			return ""
		}
		prompt = res.Cells[i].Spec.Prompt
	}
	return shorten(prompt, promptShown)
}
