package reports

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// How to read the components.
const (
	partsShort = "Median memory increase from baseline to peak in MiB, by component. Everything else is the difference to the whole."
	partsWords = "Weights, KV cache (reserved), activations, multi-GPU overhead, the browser's own memory and everything else add up to the increase. " +
		"Everything else is calculated as the difference, so it carries the errors of the other components and can be negative. " +
		"The filled part of the KV cache is calculated from the number of tokens and is part of what is reserved. The total includes the baseline."
)

// found labels a run's own figures; not all of them are measured.
const found = "in the run"

// componentSection shows memory by component.
func componentSection(res *compare.Result) section {
	return section{ID: "components", Title: "Memory by component", Words: []string{partsShort},
		Method: []string{partsWords}, Parts: []section{
			{Lines: origins(res), Mark: "- "}, {Lines: negative(res)},
			{Grid: componentGrid(res)},
			{Title: "Every component: origin, confidence and dtype", For: onPage, Folded: true, Grid: partGrid(res)},
			explained(res, func(c *compare.Cell) []evidence.Figure {
				var out []evidence.Figure
				for _, p := range allParts(c) {
					out = append(out, p.Figure)
				}
				return out
			})}}
}

// allParts are a cell's components and the parts of a browser's own memory.
func allParts(c *compare.Cell) []memory.Component {
	if c.Parts == nil {
		return nil
	}
	return slices.Concat(c.Parts.Components, c.Parts.Beyond)
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

// errorMark is an error, marked where the measurement is outside the predicted range.
func errorMark(p memory.Predicted) string {
	text := errorText(p)
	if p.Within != nil && !*p.Within {
		text += "*"
	}
	return text
}

// componentGrid has one row per cell.
func componentGrid(res *compare.Result) *grid {
	columns := componentColumns(res)
	head := append([]string{"cell"}, headsOf(columns)...)
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
		for _, p := range allParts(c) {
			add(p.Title, held(p.Figure, c.Launches), intervalWords(p.Figure), orDash(p.From()), orDash(p.Confidence),
				orDash(line(p.DType)))
		}
		if c.Parts != nil && c.Parts.DTypes.Scales != "" {
			s := c.Parts.DTypes.Scales
			add("scales, within the weights", "–", "", "–", "–", line(s))
		}
	})
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
