package section

import (
	"slices"

	"llmparity/compare/answer"
	"llmparity/reports/chart"
)

// picture draws what the answer is about.
func picture(a *answer.Answer) func(*chart.View) []chart.Chart {
	return func(v *chart.View) []chart.Chart { return chart.Headlines(v, a.Compared) }
}

// Unpictured has memory by component, if it is not the picture of the answer.
func Unpictured(a *answer.Answer) Section {
	return Section{ID: "stack", For: OnPage, Draw: func(v *chart.View) []chart.Chart {
		is := func(c chart.Chart) bool { return c.ID == "headline-memory" }
		if slices.ContainsFunc(picture(a)(v), is) || len(v.Res.Cells) > chart.MostHeadlines {
			return nil
		}
		return chart.PeakStack(v)
	}}
}
