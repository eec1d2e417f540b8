package chart

import (
	"math"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare/ship"
	"llmparity/reports/plain"
)

// Forms draws for each table of forms the change of perplexity over peak memory, in the engine that decides.
func Forms(v *View) []Chart {
	out := Chart{ID: "forms-memory-quality", Title: "Memory against quality", Choice: "Request",
		Label: "Points of perplexity over peak memory for each form; the table has the same figures",
		Note:  "Left is smaller, low is better. Vertical lines: 95% intervals of the paired difference from the reference form."}
	if len(v.Res.Forms) == 1 {
		t := v.Res.Forms[0]
		out.Note = strings.Replace(out.Note, "the reference form", plain.Line(t.Forms[t.Reference].Name), 1)
	}
	for _, t := range v.Res.Forms {
		if s := v.forms(t); len(s.MultiSeries) > 1 {
			name := plain.Line(t.Request)
			if name == "" {
				name = plain.Line(t.Model)
			}
			out.Drawings = append(out.Drawings, Drawing{Name: name, Options: options(s)})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []Chart{out}
}

// forms is the drawing of one table: a point a form.
func (v *View) forms(t *ship.Table) *charts.Scatter {
	s := charts.NewScatter()
	low, high := 0.0, 0.0 // of the intervals, which are no points to the axis
	for i := range t.Forms {
		if c := t.Forms[i].Change; c != nil && c.Interval != nil {
			low, high = min(low, 100*c.Interval.Lo), max(high, 100*c.Interval.Hi)
		}
	}
	y := opts.YAxis{Type: "value", Name: "perplexity (% more)", Scale: opts.Bool(true)}
	if high > low {
		step := math.Pow(10, math.Floor(math.Log10(high-low))) / 2
		y.Min, y.Max = fine(step*math.Floor(low/step)), fine(step*math.Ceil(high/step))
	}
	// The points have their names beside them.
	s.SetGlobalOptions(global("item", opts.Legend{Show: opts.Bool(false)},
		opts.Grid{Left: "4", Right: "30", Top: "26", Bottom: "32"},
		opts.XAxis{Type: "value", Name: "Peak memory in " + plain.Line(t.Engines[t.By].Name) + " (MiB)",
			NameLocation: "middle", NameGap: 26, Scale: opts.Bool(true)}, y)...)
	for form := range t.Forms {
		f := &t.Forms[form]
		if f.Cells[t.By] < 0 || form != t.Reference && f.Change == nil {
			continue
		}
		x := v.Res.Cells[f.Cells[t.By]].Points().Peak
		if !x.Known() {
			continue
		}
		height := 0.0
		looks := []style{inked(v.Colour(f.Cells[t.By]), 0), charts.WithLabelOpts(opts.Label{Show: opts.Bool(true),
			Formatter: "{a}", Position: "top", Color: "var(--muted)", FontSize: 11})}
		if c := f.Change; c != nil {
			height = 100 * c.Share
			if i := c.Interval; i != nil {
				looks = append(looks, whiskers([]opts.MarkLineNameCoordItem{
					whisker(fine(x.Center()), fine(100*i.Lo), fine(x.Center()), fine(100*i.Hi))}, 1))
			}
		}
		label := plain.Line(f.Name)
		s.AddSeries(label, []opts.ScatterData{spot(label, fine(x.Center()), fine(height), 10)}, looks...)
	}
	return s
}
