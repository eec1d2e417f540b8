package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmparity/compare"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
)

// predictionWords say how to read predictions.
const predictionWords = "MiB, predicted by calculation before the first launch, beside the median over launches. " +
	"Error: of the prediction, relative to the run; + means predicted too high. Typical error: how close such calculations usually come."

// predictionSection has predictions beside measurements.
func predictionSection(res *compare.Result) section {
	return section{ID: "forecast", Title: "Predicted and measured", For: inTerminal | onPage,
		Words: []string{predictionWords}, Lines: recommendations(res), Mark: "- ",
		Grid: predictedGrid(res, []string{"predicted", "predicted\nrange", found, "origin", "error", "in\nrange",
			"typical\nerror"}, func(p memory.Predicted) []string { return predictionRow(p)[1:] }),
		Parts: []section{
			{Title: "How each figure was predicted and measured", For: onPage, Folded: true, Grid: predictionHow(res)},
			{Title: "Notes on the predictions", For: onPage, Folded: true, Lines: predictionNotes(res), Mark: "- "}}}
}

// distinguished leaves out a total that equals the increase, because there is no baseline.
func distinguished(f *memory.Prediction) []memory.Predicted {
	same := func(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
	increase, _ := f.Part(figure.MemoryIncrease)
	return slices.DeleteFunc(slices.Clone(f.Parts), func(p memory.Predicted) bool {
		return p.Name == figure.TotalMemory && same(p.Best, increase.Best) && same(p.Measured, increase.Measured)
	})
}

// predictionRow is a component: title, predicted, range, measured, its origin, error, whether in range, typical error.
func predictionRow(p memory.Predicted) []string {
	const none = "–"
	row := []string{p.Title, memory.NotPredicted, none, none, none, none, none, none}
	if p.Best != nil {
		row[1] = mib(*p.Best)
		if row[2] = mib(*p.Low) + " to " + mib(*p.High); *p.Low == *p.High {
			row[2] = "exactly"
		}
	}
	row[4] = cmp.Or(string(p.Origin), none)
	if p.Measured != nil {
		row[3] = mib(*p.Measured)
	}
	row[5] = errorText(p)
	if p.Within != nil {
		row[6] = map[bool]string{true: "yes", false: "no"}[*p.Within]
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
func predictionHow(res *compare.Result) *grid {
	return predictedGrid(res, []string{"predicted by", "obtained by"}, func(p memory.Predicted) []string {
		by, from := orDash(p.Method), fmt.Sprintf("%s (%s)", p.Origin, p.By)
		if p.Confidence != "" {
			by += "; confidence " + p.Confidence
		}
		if p.Measured == nil {
			from = p.Why
		}
		return []string{line(by), line(from)}
	})
}

// predictedGrid has one row per cell and component.
func predictedGrid(res *compare.Result, head []string, row func(memory.Predicted) []string) *grid {
	head = append([]string{"cell", "component"}, head...)
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Prediction == nil {
			return
		}
		for _, p := range distinguished(c.Prediction) {
			add(append([]string{p.Title}, row(p)...)...)
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

// predictionNotes are the notes on predictions.
func predictionNotes(res *compare.Result) []string {
	return ofPredictions(res, func(p *memory.Prediction) []string { return p.Notes })
}

func ofPredictions(res *compare.Result, said func(*memory.Prediction) []string) []string {
	var out grouped
	for i := range res.Cells {
		if c := &res.Cells[i]; c.Prediction != nil {
			for _, words := range said(c.Prediction) {
				out.add(words, c.Label)
			}
		}
	}
	return out.lines(sentence)
}
