package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmparity/compare"
	"llmparity/internal/figure"
)

// predictionWords say once how to read what was foretold.
const predictionWords = "MiB. Foretold before the first launch, by arithmetic alone; in the run: medians over launches. An error is the forecast's, in percent of what " +
	"was found: + where too much was foretold. Expected: how near such calculations come in general."

// manyCells is beyond which the terminal shows only what was foretold wrongly.
const manyCells = 6

// prediction is a table of what was foretold and measured.
func (t *table) prediction() {
	rows, cells := [][]string{{"", "", "", "foretold", "", "", "", "in", "ex-"},
		{"cell", "component", "foretold", "from to", found, "which is", "error", "range", "pected"}}, []int{}
	notes := recommendations(t.res)
	shown, right := 0, 0
	for i := range t.res.Cells {
		c := &t.res.Cells[i]
		if c.Prediction == nil || c.Prediction.Absent != "" {
			continue
		}
		shown++
		for _, p := range distinguished(c.Prediction) {
			if shown > manyCells && (p.Within == nil || *p.Within) {
				right++
				continue
			}
			rows, cells = append(rows, append([]string{line(c.Label)}, predictionRow(p, "-")...)), append(cells, i)
		}
	}
	if len(cells)+len(notes) == 0 {
		return
	}
	t.b.WriteString("\nPredictions and the run\n")
	if len(cells) > 0 {
		t.print(rows, cells)
		t.b.WriteString(wrap(predictionWords, "", "", width))
	}
	if right > 0 {
		notes = append(notes, fmt.Sprintf(
			"%d further figures were within their ranges or not measured; `llmparity validate` lists all.", right))
	}
	for _, n := range notes {
		t.b.WriteString(wrap(n, "- ", "  ", width))
	}
}

// distinguished leaves out a total that is the increase again, because there is no baseline.
func distinguished(f *compare.Prediction) []compare.Predicted {
	same := func(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
	increase, _ := f.Part(figure.MemoryIncrease)
	return slices.DeleteFunc(slices.Clone(f.Parts), func(p compare.Predicted) bool {
		return p.Name == figure.TotalMemory && same(p.Best, increase.Best) && same(p.Measured, increase.Measured)
	})
}

// predictionRow is a component: title, foretold, range, found, its origin, error, verdict, expected.
func predictionRow(p compare.Predicted, none string) []string {
	row := []string{p.Title, compare.NotPredicted, none, none, none, none, none, none}
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
	row[5] = errorText(p, none)
	if p.Within != nil {
		row[6] = map[bool]string{true: "yes", false: "no"}[*p.Within]
	}
	if p.Expected != nil {
		row[7] = fmt.Sprintf("±%g%%", p.Expected.Variance)
	}
	return row
}

func errorText(p compare.Predicted, none string) string {
	switch {
	case p.Percent != nil:
		return signed(*p.Percent)
	case p.Error != nil:
		return plus(*p.Error) + " MiB"
	}
	return none
}

// signed writes an error in percent. What rounds to nothing has no sign.
func signed(percent float64) string {
	return plus(percent) + "%"
}

// plus writes a number with its sign, of which nothing has none, and briefly where it is nobody's error.
func plus(v float64) string {
	switch {
	case math.Abs(v) < 0.05:
		return "0.0"
	case math.Abs(v) >= 1e6:
		return fmt.Sprintf("%+.2g", v)
	}
	return fmt.Sprintf("%+.1f", v)
}

// predictionGrid is the report's table.
func predictionGrid(res *compare.Result) *grid {
	head := []string{"foretold (MiB)", "range (MiB)", found + " (MiB)", "which is", "error", "in range",
		"expected of such"}
	return predictedGrid(res, head, func(p compare.Predicted) []string {
		row := predictionRow(p, "–")[1:]
		if p.Interval != nil {
			row[2] += fmt.Sprintf(" (%s to %s)", mib(p.Interval.Lo), mib(p.Interval.Hi))
		}
		return row
	})
}

// predictionHow says of each by what it was foretold and found, or why it was not.
func predictionHow(res *compare.Result) *grid {
	return predictedGrid(res, []string{"foretold by", found + ", by"}, func(p compare.Predicted) []string {
		by, from := orDash(p.Method), fmt.Sprintf("%s (%s)", p.Origin, p.By)
		if p.Confidence != "" {
			by += " (" + p.Confidence + ")"
		}
		if p.Measured == nil {
			from = p.Why
		}
		return []string{line(by), line(from)}
	})
}

// predictedGrid has a row a cell and component; nil where nothing was foretold.
func predictedGrid(res *compare.Result, head []string, row func(compare.Predicted) []string) *grid {
	t := &grid{Head: append([]string{"cell", "component"}, head...)}
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Prediction == nil {
			continue
		}
		for _, p := range distinguished(c.Prediction) {
			t.Rows = append(t.Rows, append([]string{line(c.Label), p.Title}, row(p)...))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// recommendations are those of every cell, and why nothing was foretold of one.
func recommendations(res *compare.Result) []string {
	var out shared
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Prediction == nil {
			continue
		}
		if c.Prediction.Absent != "" {
			out.say(c, "nothing was foretold: "+c.Prediction.Absent)
		}
		for _, r := range c.Prediction.Recommendations {
			out.say(c, r)
		}
	}
	return out.lines()
}

// predictionNotes are what was said with the forecasts.
func predictionNotes(res *compare.Result) []string {
	var out shared
	for i := range res.Cells {
		if c := &res.Cells[i]; c.Prediction != nil {
			for _, n := range c.Prediction.Notes {
				out.say(c, n)
			}
		}
	}
	return out.lines()
}
