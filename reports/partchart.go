package reports

import (
	"math"

	"llmparity/internal/figure"
)

// partStacks draws each cell's components, measured and predicted, where its weights are known.
func partStacks(v *view) []chart {
	t := &stackTable{}
	var bars []func(name string) float64
	for i := range v.res.Cells {
		c := &v.res.Cells[i]
		if !c.Parts.Component(figure.ModelWeights).Known() {
			continue
		}
		t.bars = append(t.bars, line(c.Label)+"\n"+found)
		bars = append(bars, func(name string) float64 { return c.Parts.Shown(name).Center() })
		if p, ok := c.Prediction.Part(figure.ModelWeights); ok && p.Best != nil {
			t.bars = append(t.bars, line(c.Label)+"\npredicted")
			bars = append(bars, func(name string) float64 {
				if p := predictedOf(c, name); p.Best != nil {
					return *p.Best
				}
				return math.NaN()
			})
		}
	}
	if len(bars) == 0 {
		return nil
	}
	for _, col := range components() {
		if colour, ok := partColour[col.Name]; ok {
			t.add(partName(col.Name), colour, func(bar int) float64 { return bars[bar](col.Name) })
		}
	}
	return []chart{{ID: "components", Title: "By component", Unit: "MiB", Height: rowsHeight(len(bars), 1),
		Drawings: []drawing{{Options: t.options()}},
		Note:     "Median increase over the baseline. Everything else is the difference to the whole; it can be negative.",
		Label:    "Stacked bars of each cell's memory by component, measured and predicted; the tables have the same figures"}}
}
