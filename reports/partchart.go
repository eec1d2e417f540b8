package reports

import (
	"math"
	"strings"

	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/internal/figure"
)

// partStacks draws, for each cell whose weights are known, its components, and beside them what was foretold.
func partStacks(v *view) []chart {
	var labels []string
	var bars []func(name string) float64
	for i := range v.res.Cells {
		c := &v.res.Cells[i]
		if !c.Parts.Component(figure.ModelWeights).Known() {
			continue
		}
		labels = append(labels, line(c.Label)+"\n"+found)
		bars = append(bars, func(name string) float64 { return c.Parts.Shown(name).Center() })
		if p, ok := c.Prediction.Part(figure.ModelWeights); ok && p.Best != nil {
			labels = append(labels, line(c.Label)+"\nforetold")
			bars = append(bars, func(name string) float64 {
				if p := predictedOf(c, name); p.Best != nil {
					return *p.Best
				}
				return math.NaN()
			})
		}
	}
	if len(labels) == 0 {
		return nil
	}
	bar := newBar(labels, true)
	t := &grid{Head: []string{"bar"}}
	for _, label := range labels {
		t.Rows = append(t.Rows, []string{strings.ReplaceAll(label, "\n", ", ")})
	}
	for _, col := range components() {
		colour, inStack := partColour[col.Name]
		if !inStack || col.Name == figure.BrowserShare && !someBeyond(v.res) {
			continue
		}
		t.Head = append(t.Head, partName(col.Name)+" (MiB)")
		var data []opts.BarData
		some := false
		for n, of := range bars {
			datum, text := opts.BarData{Value: "-"}, "–"
			if value := of(col.Name); !math.IsNaN(value) {
				datum.Value, text, some = digits(value), mib(value), some || value != 0
			}
			t.Rows[n] = append(t.Rows[n], text)
			data = append(data, datum)
		}
		if some {
			bar.AddSeries(partName(col.Name), data, stacked, inked(colour, 0))
		}
	}
	return []chart{{ID: "components", Title: "By component", Unit: "MiB", Table: t, Wide: len(labels) > mostNarrow,
		Drawings: []drawing{{Options: options(bar)}},
		Note:     "Medians. What came on top of the baseline, by component; everything else is what is left by difference, below the line where it is negative.",
		Label:    "Stacked bars of each cell's memory by component, found and foretold; the same figures are in the tables below it"}}
}
