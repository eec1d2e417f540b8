package section

import (
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// mostPictured is how many cells the picture of the answer has room for.
const mostPictured = 12

// picture draws what the answer is about: growth; of engines, memory by component; else speed, if it differs or memory
// does not.
func picture(a *answer.Answer) func(*chart.View) []chart.Chart {
	return func(v *chart.View) []chart.Chart {
		if a.Growth.Headline != "" {
			if c := growthPicture(v); c != nil {
				return c
			}
		}
		if len(v.Res.Cells) > mostPictured {
			return nil
		}
		if stack := chart.PeakStack(v); stack != nil && pictureIsMemory(v.Res, a) {
			return stack
		}
		return speedPicture(v)
	}
}

// pictureIsMemory reports whether the picture is memory by component.
func pictureIsMemory(res *compare.Result, a *answer.Answer) bool {
	differs := func(v verdict.Verdict) bool { return v.Outcome == verdict.Different }
	switch {
	case len(a.Compared) == 0 || len(a.Speed.Verdicts) == 0:
		return true
	case a.Compared[0].Axes == nil && !res.Families[a.Compared[0].Family].Runs:
		return true
	}
	return !slices.ContainsFunc(a.Speed.Verdicts, differs) && slices.ContainsFunc(a.Memory.Verdicts, differs)
}

// Unpictured has memory by component, if it is not the picture of the answer.
func Unpictured(a *answer.Answer) Section {
	return Section{ID: "stack", For: OnPage, Draw: func(v *chart.View) []chart.Chart {
		is := func(c chart.Chart) bool { return c.ID == "headline-memory" }
		if slices.ContainsFunc(picture(a)(v), is) || len(v.Res.Cells) > mostPictured {
			return nil
		}
		return chart.PeakStack(v)
	}}
}

func speedPicture(v *chart.View) []chart.Chart {
	name := figure.DecodeTPS
	if slices.ContainsFunc(v.Res.Cells, func(c *compare.Cell) bool { return c.Load != nil }) {
		name = figure.AggregateTPS
	}
	out := chart.Bars("headline-speed", name, plain.TitleCase(figure.Title(name)))(v)
	for i := range out {
		out[i].Table, out[i].Note = nil, "Bar: median. Dots: launches. Line: 95% interval."
	}
	return out
}

// growthPicture is the reserved KV cache over contexts, else memory.
func growthPicture(v *chart.View) []chart.Chart {
	for _, c := range v.DrawnOver(figure.Contexts) {
		cache := func(d chart.Drawing) bool { return strings.HasPrefix(d.Name, "KV cache, reserved") }
		chosen := c.Drawings[max(0, slices.IndexFunc(c.Drawings, cache))]
		c.ID, c.Title, c.Drawings, c.Chosen, c.Table = "headline-growth", chosen.Name, []chart.Drawing{chosen}, 0, nil
		c.Note, c.Setup, c.Drawings[0].Name = "", "", ""
		return []chart.Chart{c}
	}
	return nil
}
