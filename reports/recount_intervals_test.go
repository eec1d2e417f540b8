//go:build !race

package reports_test

import (
	"io"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// prompts is both engines at several prompts, each with its own speed; the launches of a cell are so many in turn.
func prompts(vary float64, launches ...int) []comparetest.Engine {
	var out []comparetest.Engine
	for i, prompt := range []string{"Once", "upon", "a", "time"}[:pairsAgain] {
		a, b := comparetest.Browser(launches[2*i%len(launches)]), comparetest.Native(launches[(2*i+1)%len(launches)])
		a.Device, a.Vary, b.Vary = b.Device, vary, vary
		b.Token, b.TTFT = a.Token*time.Duration(90+i*7)/100, a.TTFT*time.Duration(103-i)/100
		a.Cell.ID, b.Cell.ID = 2*i+1, 2*i+2
		a.Cell.Prompt, b.Cell.Prompt, a.Cell.PromptID, b.Cell.PromptID = prompt, prompt, i+1, i+1
		out = append(out, a, b)
	}
	return out
}

// Intervals by bootstrap, means over cells and their tests are worked out again.
func TestIntervalsAndMeansAreThoseOfTheRecord(t *testing.T) {
	for name, of := range map[string]struct {
		engines []comparetest.Engine
		by      []string
	}{
		"as many launches each":   {engines: prompts(0.05, 6)},
		"odd and even, by engine": {prompts(0.1, 7, 6, 9, 8), []string{"engine"}},
		"by prompt":               {prompts(0.1, 6, 7), []string{"prompt"}},
		"few launches":            {engines: prompts(0.1, 3, 2)},
		"too few in some cells":   {engines: prompts(0.1, 6, 7, 8, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := comparetest.Write(t, t.TempDir(), "folder", of.engines...)
			run, err := record.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			o := compare.Defaults()
			o.By = of.by
			res := compare.With(o, run)
			if len(res.Families) == 0 || (len(res.Families[0].Means) == 0) == (name != "by prompt") {
				t.Fatalf("families %+v", res.Families)
			}
			page := rendered(t, func(w io.Writer) error { return reports.HTML(w, res, run) })
			recount.Check(t, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page, dir)
		})
	}
}

// What a report concludes wrongly is found out.
func TestWrongIntervalsAndMeansAreFound(t *testing.T) {
	o := compare.Defaults()
	o.By = []string{"engine"}
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", prompts(0.05, 7, 6)[:4]...), o)
	type result = compare.Result
	first := func(r *result) *compare.Ratio { return &r.Comparisons[0].Ratios[0] }
	mean := func(r *result) *compare.Mean { return &r.Families[0].Means[0] }
	for _, c := range []struct {
		says   string
		change func(*result)
	}{
		{", interval ends at", func(r *result) { first(r).Interval.Lo *= 0.9999 }},
		{", interval ends at", func(r *result) { first(r).Interval.Hi *= 1.0001 }},
		{"interval of the change ends at", func(r *result) { first(r).DeltaInterval.Hi += 0.001 }},
		{"interval of the percentage ends at", func(r *result) { first(r).PercentInterval.Lo -= 0.01 }},
		{"interval is <nil>", func(r *result) { first(r).Interval = nil }},
		{", difference is", func(r *result) { first(r).Delta += 0.001 }},
		{", percent is", func(r *result) { *first(r).Percent += 0.001 }},
		{"llamacpp, device cpu is", func(r *result) { mean(r).Ratio *= 1.0001 }},
		{"device cpu, percent is", func(r *result) { mean(r).Percent += 0.001 }},
		{"lower end of the percentage", func(r *result) { mean(r).PercentInterval.Lo -= 0.001 }},
		{"of means drawn again", func(r *result) { mean(r).Interval.Lo *= 0.98 }},
		{"of means drawn again", func(r *result) { mean(r).Interval.Hi = mean(r).Ratio }},
		{"device cpu: p is", func(r *result) { mean(r).Raw += 0.0001 }},
		{"device cpu: p corrected", func(r *result) { mean(r).P += 0.0001 }},
		{"device cpu: significant", func(r *result) { mean(r).Significant = !mean(r).Significant }},
		{"device cpu, pairs", func(r *result) { mean(r).Cells-- }},
		{"the report has no mean", func(r *result) { r.Families[0].Means = r.Families[0].Means[1:] }},
		{"mean of peak_pss of engine llamacpp is", func(r *result) { *r.Groups[1].Figures[0].Mean += 0.001 }},
		{"of means drawn again", func(r *result) { r.Groups[1].Figures[0].Interval.Hi *= 1.02 }},
	} {
		folder.finds(t, c.says, c.change, false)
	}
}
