package reports

import (
	"fmt"

	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// overlaid draws the totals of all counted launches of a cell over one another. Time starts with the measurement,
// because loads take different times. nil for a single launch.
func (v *view) overlaid(cell, points int) []drawing {
	c := &v.res.Cells[cell]
	method, what := anyMethod, "total PSS"
	pick := func(t record.TotalRow) float64 { return t.PSS }
	if !c.Figure(figure.PeakPSS).Known() {
		method, what, pick = record.MethodStatm, "RSS sum", func(t record.TotalRow) float64 { return t.RSS }
	}
	l := lineChart("seconds")
	l.YAxisList[0].Scale = opts.Bool(false)
	drawn, all := 0, 0
	for _, a := range v.runs[c.Run].Attempts {
		measure, ok := a.Phase(record.Measure)
		if a.Cell != c.Spec.ID || !a.Counted() || !ok {
			continue
		}
		data := totals(a, method, measure.BeginNS, pick)
		if len(data) == 0 {
			continue
		}
		if all++; drawn >= v.launchesDrawn() && a.ID != c.Representative {
			continue
		}
		looks := []style{faint}
		width := float32(1.2)
		if a.ID == c.Representative {
			width, looks = 3, []style{bands(a, measure.BeginNS)}
		}
		l.line(fmt.Sprintf("%s %d", c.Repeated(), a.Repetition), thinned(data, points), v.colour(cell), width,
			dash(drawn),
			looks...)
		drawn++
	}
	if drawn < 2 {
		return nil
	}
	caption := fmt.Sprintf("%s of %d counted %s. The measurement starts at 0. Heavy line and bands: the one closest to the median.",
		titleCase(what), all, repeatedMany(c))
	if all > drawn {
		caption += fmt.Sprintf(" %d are drawn.", drawn)
	}
	return []drawing{{Name: "all, overlaid", Caption: caption, Options: l.options()}}
}
