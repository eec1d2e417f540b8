package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// How to read the components.
const (
	partsShort = "Median memory increase from baseline to peak, by component. Everything else is the difference to the whole."
	partsWords = "Weights, KV cache (reserved), activations, multi-GPU overhead, the browser's own memory and everything else add up to the increase. " +
		"Everything else is calculated as the difference, so it carries the errors of the other components and can be negative. " +
		"The filled part of the KV cache is calculated from the number of tokens and is part of what is reserved. The total includes the baseline."
)

// found labels a run's own figures; not all of them are measured.
const found = "in the run"

// componentSections show memory by component.
func componentSections(res *compare.Result) []section {
	const id, title = "components", "Memory by component"
	return []section{
		{ID: id, Title: title, For: inTerminal, Parts: []section{
			{Grid: componentGrid(res, true), Words: []string{partsWords}},
			{Grid: browsersOwn(res)},
			{Lines: partNotes(res), Mark: "- "}}},
		{ID: id, Title: title, For: document | onPage, Words: []string{partsShort}, Method: []string{partsWords},
			Parts: []section{
				{Lines: origins(res), Mark: "- "}, {Lines: negative(res)},
				{Draw: []func(*view) []chart{partStacks}},
				{Grid: componentGrid(res, false)},
				{Title: "Every component: origin, confidence and dtype", For: onPage, Folded: true,
					Grid: partGrid(res)},
				{Title: "What each component is, and what its method cannot see", For: onPage, Folded: true,
					Grid: partHow(res)}}}}
}

// components are the columns of tables, the browser's own before everything else.
func components() []*figure.Row {
	all := figure.Rows(func(r *figure.Row) bool { return r.Component })
	left := slices.IndexFunc(all, func(r *figure.Row) bool { return r.Name == figure.FrameworkOverhead })
	return slices.Insert(all, left, figure.New(figure.BrowserShare))
}

func headsOf(columns []*figure.Row) []string {
	var out []string
	for _, col := range columns {
		out = append(out, col.Part)
	}
	return out
}

// componentColumns leaves out the columns for several GPUs and for a browser if no cell has them.
func componentColumns(res *compare.Result) []*figure.Row {
	return slices.DeleteFunc(components(), func(col *figure.Row) bool {
		return (col.Name == figure.MultiGPUOverhead || col.Name == figure.BrowserShare) &&
			!slices.ContainsFunc(res.Cells, func(c compare.Cell) bool {
				reported, _ := c.Prediction.Part(col.Name)
				return c.Parts.Component(col.Name).Center() > 0 || reported.Best != nil && *reported.Best > 0
			})
	})
}

// predictedOf is the prediction for a column. A browser's memory is predicted as a whole and stands in a column of its
// own.
func predictedOf(c *compare.Cell, name string) memory.Predicted {
	own := c.Parts.Component(figure.BrowserShare).Known()
	switch {
	case own && name == figure.FrameworkOverhead:
		return memory.Predicted{}
	case own && name == figure.BrowserShare:
		name = figure.FrameworkOverhead
	}
	p, _ := c.Prediction.Part(name)
	return p
}

// errorMark is an error, marked where the measurement is outside the predicted range.
func errorMark(p memory.Predicted) string {
	text := errorText(p)
	if p.Within != nil && !*p.Within {
		text += "*"
	}
	return text
}

// componentGrid has one row per cell. In full it also has empty columns.
func componentGrid(res *compare.Result, full bool) *grid {
	columns := componentColumns(res)
	head := append([]string{"cell"}, headsOf(columns)...)
	if !full {
		for i := range columns {
			head[i+1] = oneLine(head[i+1]) + " (MiB)"
		}
	}
	return perCell(res, append(head, "confidence"), func(c *compare.Cell, add func(...string)) {
		if c.Parts == nil {
			return
		}
		var row []string
		for _, col := range columns {
			row = append(row, held(c.Parts.Shown(col.Name).Figure, c.Launches))
		}
		add(append(row, c.Parts.Confidence)...)
	})
}

// someBeyond tells whether any cell has a browser's own parts.
func someBeyond(res *compare.Result) bool {
	return slices.ContainsFunc(res.Cells,
		func(c compare.Cell) bool { return c.Parts.Component(figure.BrowserShare).Known() })
}

// browsersOwn lists the parts of the browser's own memory.
func browsersOwn(res *compare.Result) *grid {
	if !someBeyond(res) {
		return nil
	}
	head := []string{"cell", "part of the browser's own", "MiB"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Parts == nil {
			return
		}
		for _, p := range c.Parts.Beyond {
			add(p.Title, held(p.Figure, c.Launches))
		}
	})
}

// partNotes say how components were obtained, once for all cells with the same answer.
func partNotes(res *compare.Result) []string {
	var out grouped
	for i := range res.Cells {
		if c := &res.Cells[i]; c.Parts != nil {
			out.add(methodsOf(c.Parts), c.Label)
			for _, n := range c.Parts.Notes {
				out.add(n, c.Label)
			}
		}
	}
	return out.lines(sentence)
}

// origins say where components come from, once for all cells with the same answer.
func origins(res *compare.Result) []string {
	var out grouped
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Parts == nil {
			continue
		}
		var by grouped
		for _, p := range c.Parts.Components {
			if p.Known() && !none(p) {
				by.add(originWords(p.Origin), partName(p.Name))
			}
		}
		if len(by.keys) > 0 {
			out.add(strings.Join(by.lines(func(origin string, names []string) string {
				return origin + ": " + strings.Join(names, ", ")
			}), "; "), c.Label)
		}
	}
	return out.lines(sentence)
}

// originWords spells out an origin.
func originWords(o record.Origin) string {
	if o == record.OriginReported {
		return "reported by the engine"
	}
	return string(o)
}

// none tells that a component needs no mention: one device has no overhead of several.
func none(c memory.Component) bool { return c.Name == figure.MultiGPUOverhead && c.Center() == 0 }

// methodsOf lists the components by origin, method and confidence, with dtypes, and why some are missing.
func methodsOf(p *memory.Parts) string {
	var absent []string
	var by grouped
	for _, c := range p.Components {
		name := partName(c.Name)
		switch {
		case !c.Known() && c.Name != figure.TotalMemory:
			absent = append(absent, "no "+name+": "+c.Absent)
			continue
		case !c.Known(), none(c):
			continue
		}
		if c.DType != "" {
			name += " (" + line(c.DType) + ")"
		}
		by.add(fmt.Sprintf("%s, confidence %s", c.From(), c.Confidence), name)
	}
	out := append(by.lines(func(from string, names []string) string {
		return strings.Join(names, ", ") + ": " + from
	}), absent...)
	if s := p.DTypes.Scales; s != "" {
		out = append(out, "scales of weights are "+line(s))
	}
	return strings.Join(out, "; ")
}

// partName is a component in a word or two.
func partName(name string) string {
	if r := figure.Of(name); r != nil && r.Part != "" {
		return oneLine(r.Part)
	}
	return name
}

// partGrid has every component of every cell with origin, confidence and dtype.
func partGrid(res *compare.Result) *grid {
	head := []string{"cell", "component", "median (MiB)", "95% interval", "from", "confidence", "dtype"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Parts == nil {
			return
		}
		for _, p := range slices.Concat(c.Parts.Components, c.Parts.Beyond) {
			add(p.Title, held(p.Figure, c.Launches), intervalWords(p.Figure), orDash(p.From()), orDash(p.Confidence),
				orDash(line(p.DType)))
		}
		if s := c.Parts.DTypes.Scales; s != "" {
			add("scales, within the weights", "–", "", "–", "–", line(s))
		}
	})
}

// partHow explains each component once, or why it is missing.
func partHow(res *compare.Result) *grid {
	var rows grouped
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Parts == nil {
			continue
		}
		for _, p := range slices.Concat(c.Parts.Components, c.Parts.Beyond) {
			words := p.How
			if !p.Known() {
				words = p.Absent
			}
			rows.add(strings.Join([]string{p.Title, orDash(p.From()), line(words), line(p.Blind)}, "\x00"),
				line(c.Label))
		}
	}
	t := &grid{Head: []string{"component", "from", "what it is, or why it is missing", "what the method cannot see",
		"cells"}}
	blind := false
	for _, key := range rows.keys {
		row := strings.Split(key, "\x00")
		blind = blind || row[3] != ""
		t.Rows = append(t.Rows, append(row, strings.Join(rows.of[key], "; ")))
	}
	return t.without(func(column int) bool { return column == 3 && !blind }).orNil()
}

func orDash(s string) string { return cmp.Or(s, "–") }

// negative lists the cells whose remainder is negative.
func negative(res *compare.Result) []string {
	var out []string
	for i := range res.Cells {
		c := &res.Cells[i]
		if f := c.Parts.Component(figure.FrameworkOverhead); f.Words != "" {
			out = append(out, c.Label+": "+f.Words+".")
		}
	}
	return out
}
