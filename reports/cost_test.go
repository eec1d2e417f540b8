package reports_test

import (
	"io"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/reports"
)

// Every format for people has what the browser costs; a page also draws it.
func TestEveryFormatTakesTheBrowsersCostApart(t *testing.T) {
	page, wide, narrow := comparetest.Native(6), comparetest.Native(6), comparetest.Native(6)
	page.Cell.Engine, page.Info.Parts = "inpage", map[string]string{"browser": "Chromium 156.0"}
	page.Info.Vector, wide.Info.Vector, narrow.Info.Vector = 128, 512, 128
	page.Token, narrow.Token = 7*page.Token, 2*narrow.Token
	narrow.Cell.Settings = map[string]string{"path": "narrow"}
	all := []comparetest.Engine{page, wide, narrow}
	for i := range all {
		all[i].Cell.ID, all[i].Cell.Setup, all[i].Info.Computes = i+1, i+1, "ggml"
	}
	run := comparetest.Run(t, "cost", all...)
	res := compare.Runs(run)
	for name, render := range map[string]func(io.Writer, *compare.Result) error{"terminal": reports.Table,
		"details": reports.Details, "Markdown": reports.Markdown,
		"page": func(w io.Writer, res *compare.Result) error { return colours.HTML(w, res, run) }} {
		text := words(rendered(t, func(w io.Writer) error { return render(w, res) }))
		check.Has(t, text, "decodes at 0.14", "speed", "95% CI 0.1", "same file, same CPU")
		if name != "terminal" {
			check.Has(t, text, "What the browser costs", "of it vectors", "times for vectors of 128 bits instead of 512")
		}
		if name == "page" {
			check.Has(t, text, "cost-decode")
		}
	}
	check.Has(t, rendered(t, func(w io.Writer) error { return reports.ResultJSON(w, res) }), `"browser_costs"`,
		`"native_narrow": 2`)
}
