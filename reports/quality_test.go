package reports_test

import (
	"io"
	"math"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
)

// forms are cells that scored 18 windows of four tokens: a model, forms of it whose tokens are less likely by so many
// nats on average, and a broken one, most of whose log-probabilities are too small to report.
func forms(t *testing.T, worse ...float64) *record.Run {
	t.Helper()
	const windows, tokens = 18, 4
	var all []comparetest.Engine
	names := []string{"q8_0", "q4_k_m", "q2_k"}
	for n := range len(worse) + 1 {
		e := comparetest.Native(6)
		e.Cell.ID, e.Cell.Setup, e.Cell.Model.Name = n+1, n+1, names[n]
		if n == 1 {
			e.Cell.Model.MadeFrom = "4-bit weights"
		}
		e.Scored = record.Scoring{Reference: 1, PromptIDs: []int{1}, Top: 2,
			Window: &record.Window{Text: "a.txt", SHA256: "5f", Of: windows}}
		for i := range windows * tokens {
			logProb := -2 - float64(i/tokens%5)/2
			if n > 0 {
				logProb -= worse[n-1] * (0.8 + 0.4*float64(i/tokens%2))
			}
			if logProb < -103 && i%tokens > 0 {
				logProb = math.NaN()
			}
			e.Scores = append(e.Scores, record.Score{Forced: 7, LogProb: logProb, Top: []record.Candidate{
				{ID: 8, LogProb: -0.5}, {ID: 9, LogProb: -3}}})
		}
		all = append(all, e)
	}
	return comparetest.Run(t, "forms", all...)
}

// Every format has the paired difference of two forms of a model, with its interval.
func TestEveryFormatHasThePairedDifference(t *testing.T) {
	run := forms(t, 0.02)
	res := compare.Runs(run)
	for name, render := range map[string]func(io.Writer, *compare.Result) error{"terminal": reports.Table,
		"details": reports.Details, "Markdown": reports.Markdown,
		"page": func(w io.Writer, res *compare.Result) error { return colours.HTML(w, res, run) }} {
		text := words(rendered(t, func(w io.Writer) error { return render(w, res) }))
		check.Has(t, text, "2.02% higher", "+2.02%", "+1.81% to +2.23%")
		if name == "details" || name == "page" {
			check.Has(t, text, "1.018")
		}
	}
	check.Has(t, rendered(t, func(w io.Writer) error { return reports.ResultJSON(w, res) }), `"perplexity_ratio"`,
		`"nll_change": 0.02`)
}
