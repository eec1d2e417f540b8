package section

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/kit/words"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// predictionWords say how to read predictions.
const predictionWords = "Memory in MiB that was predicted before the first launch, beside that of one launch, the same as in memory by component. " +
	"Error is the error of the prediction relative to the run; + means that the prediction was too high. Typical error is the usual error of such predictions."

// predictionSection has predictions beside measurements.
func predictionSection(res *compare.Result) Section {
	return Section{ID: "forecast", Title: "Predicted and measured", For: InTerminal | OnPage,
		Words: []string{predictionWords}, Lines: recommendations(res), Mark: "- ",
		Grid: predictedGrid(res, []string{"predicted", "predicted\nrange", found, "origin", "error", "in\nrange",
			"typical\nerror"}, func(c *compare.Cell, p memory.Predicted) []string {
			row := PredictionRow(p)[1:]
			if p.Best != nil {
				row[0] = predictedSizes(c.Prediction)[p.Name]
			}
			if p.Origin != "" { // also a calculated one, which confirms nothing, so that parts and whole stand together
				row[2] = c.Shown().Text(p.Name)
			}
			return row
		}),
		Parts: []Section{
			{Title: "How each figure was predicted and measured", For: OnPage, Folded: true, Grid: predictionHow(res)},
			{Title: "Notes on the predictions", For: OnPage, Folded: true, Mark: "- ",
				Lines: ofPredictions(res, func(p *memory.Prediction) []string { return p.Notes })}}}
}

// distinguished leaves out a total that equals the increase, because there is no baseline.
func distinguished(f *memory.Prediction) []memory.Predicted {
	same := func(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
	increase, _ := f.Part(figure.MemoryIncrease)
	return slices.DeleteFunc(slices.Clone(f.Parts), func(p memory.Predicted) bool {
		return p.Name == figure.TotalMemory && same(p.Best, increase.Best) && same(p.Measured, increase.Measured)
	})
}

// predictedSizes are what was predicted, rounded so that parts add up to the increase if they are predicted so.
func predictedSizes(f *memory.Prediction) map[string]string {
	best := func(name string) float64 {
		if p, ok := f.Part(name); ok && p.Best != nil {
			return *p.Best
		}
		return math.NaN()
	}
	out, parts := map[string]string{}, []float64{}
	for _, p := range f.Parts {
		if p.Best != nil {
			out[p.Name], _ = memory.Sum(*p.Best, nil)
		}
	}
	for _, name := range memory.Within() {
		parts = append(parts, best(name))
	}
	whole, texts := memory.Sum(best(figure.MemoryIncrease), parts)
	for i, text := range append(texts, whole) {
		out[append(memory.Within(), figure.MemoryIncrease)[i]] = text
	}
	return out
}

// PredictionRow is a component: title, predicted, range, measured, its origin, error, whether in range, typical error.
func PredictionRow(p memory.Predicted) []string {
	const none = "–"
	row := []string{p.Title, memory.NotPredicted, none, none, none, none, none, none}
	if p.Best != nil {
		row[1] = plain.Mib(*p.Best)
		if row[2] = plain.Mib(*p.Low) + " to " + plain.Mib(*p.High); *p.Low == *p.High {
			row[2] = "exactly"
		}
	}
	row[4] = cmp.Or(string(p.Origin), none)
	if p.Measured != nil {
		row[3] = plain.Mib(*p.Measured)
	}
	row[5] = errorText(p)
	if p.Within != nil {
		row[6] = map[bool]string{true: "yes", false: "no"}[*p.Within]
		if *p.Within && p.Percent != nil && p.Expected != nil && math.Abs(*p.Percent) > p.Expected.Variance {
			row[6] = "yes, but error above typical"
		}
	}
	if p.Expected != nil {
		row[7] = fmt.Sprintf("±%g%%", p.Expected.Variance)
	}
	return row
}

func errorText(p memory.Predicted) string {
	switch {
	case p.Percent != nil:
		return signed(*p.Percent)
	case p.Error != nil:
		return plus(*p.Error) + " MiB"
	}
	return "–"
}

// signed writes an error in percent.
func signed(percent float64) string {
	return plus(percent) + "%"
}

// plus writes a number with its sign, unless it rounds to 0.
func plus(v float64) string {
	switch {
	case math.Abs(v) < 0.05:
		return "0.0"
	case math.Abs(v) >= 1e6:
		return fmt.Sprintf("%+.2g", v)
	}
	return fmt.Sprintf("%+.1f", v)
}

// predictionHow says how each figure was predicted and obtained, or why not.
func predictionHow(res *compare.Result) *plain.Grid {
	head := []string{"method of prediction", "source in the run"}
	return predictedGrid(res, head, func(_ *compare.Cell, p memory.Predicted) []string {
		by, from := plain.OrDash(p.Method), fmt.Sprintf("%s (%s)", p.Origin, p.By)
		if p.Confidence != "" {
			by += "; confidence " + p.Confidence
		}
		if p.Measured == nil {
			from = p.Why
		}
		return []string{plain.Line(by), plain.Line(from)}
	})
}

// predictedGrid has one row per cell and component.
func predictedGrid(
	res *compare.Result, head []string, row func(*compare.Cell, memory.Predicted) []string,
) *plain.Grid {
	head = append([]string{"cell", "component"}, head...)
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Prediction == nil {
			return
		}
		for _, p := range distinguished(c.Prediction) {
			add(append([]string{p.Title}, row(c, p)...)...)
		}
	})
}

// recommendations are those of every cell, and why one has no prediction.
func recommendations(res *compare.Result) []string {
	return ofPredictions(res, func(p *memory.Prediction) []string {
		if p.Absent != "" {
			return append([]string{"no prediction: " + p.Absent}, p.Recommendations...)
		}
		return p.Recommendations
	})
}

func ofPredictions(res *compare.Result, said func(*memory.Prediction) []string) []string {
	var out evidence.Groups[string, string]
	for _, c := range res.Cells {
		if c.Prediction != nil {
			for _, words := range said(c.Prediction) {
				evidence.AddNew(&out, words, c.Label)
			}
		}
	}
	return out.Lines(sentence)
}

func validationWords(v *memory.Validation) string {
	below := "" // explains a number in brackets, if there is one
	if slices.ContainsFunc(v.Components, func(e memory.ComponentError) bool { return e.N < e.Cells }) {
		below = " Measurements below zero have no error in percent; the number of cells that have one is in brackets."
	}
	return fmt.Sprintf("%s with a prediction and a measurement, in %s. Errors are those of the prediction, relative to the measurement; bias is their mean: + means "+
		"predicted too high. A cell's worst error is the largest as a multiple of the typical error of such calculations; * marks measurements outside the predicted range.%s",
		words.Count(len(v.Cells), "cell"), words.Count(v.Runs-v.Without, "run"), below)
}

func remarks(v *memory.Validation) []string {
	var out []string
	if v.Without > 0 {
		is := "have"
		if v.Without == 1 {
			is = "has"
		}
		out = append(out, fmt.Sprintf("%s %s no cell with both a prediction and a measurement.",
			words.Count(v.Without, "run"), is))
	}
	for _, why := range v.Absent {
		out = append(out, plain.Line(why)+".")
	}
	for _, b := range v.Broken {
		out = append(out, "left out, because it cannot be read: "+plain.Line(b.Error))
	}
	return out
}

// Validation has the errors of memory predictions: by component, engine and context, and of each cell.
func Validation(v *memory.Validation) []Section {
	out := []Section{{Title: "Errors by component", Grid: errorGrid(v.Components)}}
	for _, by := range []struct {
		title, name string
		groups      []memory.ErrorGroup
	}{{"By engine", "engine", v.Engines}, {"By context", "context", v.Contexts}} {
		if len(by.groups) < 2 {
			continue // the same as all together
		}
		g := &plain.Grid{Head: append([]string{by.name}, errorHead()...)}
		for _, group := range by.groups {
			for _, row := range errorGrid(group.Components).Rows {
				g.Rows = append(g.Rows, append([]string{plain.Line(group.Name)}, row...))
			}
		}
		out = append(out, Section{Title: by.title, Grid: g})
	}
	return append(out, Section{Title: "Cells, worst first", Grid: cellErrors(v),
		Words: []string{validationWords(v)},
		Lines: remarks(v), Mark: "! "})
}

func errorHead() []string {
	return []string{"component", "cells", "median error", "bias", "largest", "in range", "typical"}
}

func errorGrid(list []memory.ComponentError) *plain.Grid {
	g := &plain.Grid{Head: errorHead()}
	for _, e := range list {
		row := []string{e.Title, fmt.Sprint(e.Cells), "–", "–", "–", fmt.Sprintf("%.0f%%", 100*e.Within), "–"}
		if e.N < e.Cells {
			row[1] += fmt.Sprintf(" (%d)", e.N)
		}
		if s := e.ErrorSizes; s != nil {
			row[2], row[3], row[4] = fmt.Sprintf("%.1f%%", s.Median), signed(s.Bias), fmt.Sprintf("%.1f%%", s.Max)
		}
		if e.Expected != nil {
			row[6] = fmt.Sprintf("±%g%%", e.Expected.Variance)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// cellErrors has one row per cell with the error of each component, worst first.
func cellErrors(v *memory.Validation) *plain.Grid {
	columns := slices.DeleteFunc(chart.Components(), func(col *figure.Row) bool {
		return slices.Contains([]string{figure.KVCacheUsed, figure.BrowserShare, figure.MultiGPUOverhead,
			figure.HostParts}, col.Name)
	})
	g := &plain.Grid{Head: append(append([]string{"run", "cell", "model", "context"}, headsOf(columns)...), "worst")}
	for _, c := range v.Cells {
		row := []string{plain.Line(filepath.Base(c.Dir)), plain.Line(c.Label), plain.Line(c.Model),
			fmt.Sprint(c.Context)}
		for _, col := range columns {
			text := "–"
			if p, ok := c.Prediction.Part(col.Name); ok {
				if text = errorText(p); p.Within != nil && !*p.Within {
					text += "*" // the measurement is outside the predicted range
				}
			}
			row = append(row, text)
		}
		worst := "–"
		if c.WorstName != "" {
			worst = fmt.Sprintf("%.1f× (%s)", c.Worst, figure.Title(c.WorstName))
		}
		g.Rows = append(g.Rows, append(row, worst))
	}
	return g
}
