package reports_test

import (
	"io"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
)

// toShip is a run of two forms in WebLLM and llama.cpp, which scored enough windows.
func toShip(t *testing.T) *record.Run {
	t.Helper()
	var all []comparetest.Engine
	for n, form := range []string{"Q8_0", "Q4_0"} {
		for _, e := range []comparetest.Engine{comparetest.Browser(6), comparetest.Native(6)} {
			e.Cell.ID, e.Cell.Setup = len(all)+1, len(all)+1
			m := &e.Cell.Model
			m.Name, m.SHA256, m.FileB = "Small-"+form, form, int64(145-50*n)<<20
			e.Processes[len(e.Processes)-1].Loaded += float64(80 - 60*n)
			e.Scored = record.Scoring{Reference: 2, PromptIDs: []int{1}, Top: 2,
				Window: &record.Window{Text: "a.txt", SHA256: "5f", Of: 16}}
			for i := range 16 {
				e.Scores = append(e.Scores, record.Score{Forced: 7, LogProb: -2 - float64(n)*(0.004+0.001*float64(i%2)),
					Top: []record.Candidate{{ID: 8, LogProb: -0.5}, {ID: 9, LogProb: -3}}})
			}
			all = append(all, e)
		}
	}
	return comparetest.Run(t, "forms", all...)
}

// Every format for people has the recommendation and the table; the end of a run keeps to its lines.
func TestEveryFormatSaysWhichFormToShip(t *testing.T) {
	run := toShip(t)
	res := compare.Runs(run)
	for name, render := range map[string]func(io.Writer, *compare.Result) error{"terminal": reports.Table,
		"details": reports.Details, "Markdown": reports.Markdown,
		"page": func(w io.Writer, res *compare.Result) error { return colours.HTML(w, res, run) }} {
		text := words(rendered(t, func(w io.Writer) error { return render(w, res) }))
		check.Has(t, text, "Q4_0 is 1.5 times smaller than Q8_0, for 0.5% more perplexity", "Q4_0, by memory and quality",
			"MiB more in the browser", "llmparity reproduce results/forms --out on-a-gpu.yaml", "+0.42% to +0.48%", "kept")
		if name != "terminal" {
			check.Has(t, text, "Which form to ship")
		}
	}
	text := rendered(t, func(w io.Writer) error { return reports.Table(w, res) })
	if n := strings.Count(text, "\n"); n > 26 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	check.Has(t, rendered(t, func(w io.Writer) error { return reports.ResultJSON(w, res) }),
		`"by": "memory-and-quality"`, `"perplexity_tolerance": 0.01`)
}
