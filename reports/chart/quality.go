package chart

import (
	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/internal/figure"
	"llmparity/reports/plain"
)

// Quality draws perplexity over what a cell costs, a point a cell: one drawing for memory, one for speed.
func Quality(v *View) []Chart {
	out := Chart{ID: "quality-cost", Title: "Quality and cost", Choice: "Cost",
		Label: "Points of perplexity over memory or speed for each cell; the table above has the same perplexities",
		Note:  "Lower is better for perplexity and memory, higher for speed. Vertical lines: 95% intervals over windows."}
	for _, name := range []string{figure.PeakPSS, figure.DecodeTPS} {
		row := figure.New(name)
		title := plain.TitleCase(row.Title) + " (" + row.Unit + ")"
		s := charts.NewScatter()
		s.SetGlobalOptions(global("item", legendBelow(), opts.Grid{Left: "4", Right: "30", Top: "26", Bottom: "58"},
			opts.XAxis{Type: "value", Name: title, NameLocation: "middle", NameGap: 26, Scale: opts.Bool(true)},
			opts.YAxis{Type: "value", Name: "perplexity", Scale: opts.Bool(true)})...)
		for i, c := range v.Res.Cells {
			x, y := c.Figure(name), c.Figure(figure.Perplexity)
			if !x.Known() || !y.Known() || y.Meaningless {
				continue
			}
			looks := []style{inked(v.Colour(i), 0), charts.WithLabelOpts(opts.Label{Show: opts.Bool(true),
				Formatter: "{a}", Position: "top", Color: "var(--muted)", FontSize: 11})}
			if iv := y.Interval; iv != nil {
				looks = append(looks, whiskers([]opts.MarkLineNameCoordItem{
					whisker(fine(x.Center()), fine(iv.Lo), fine(x.Center()), fine(iv.Hi))}, 1))
			}
			label := plain.Line(c.Label)
			s.AddSeries(label, []opts.ScatterData{spot(label, fine(x.Center()), fine(y.Center()), 10)}, looks...)
		}
		if len(s.MultiSeries) > 0 {
			out.Drawings = append(out.Drawings, Drawing{Name: title, Options: options(s)})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []Chart{out}
}
