package reports_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// What has one name, in one run, benchstat takes for launches of the same: no two cells may have one, nor two prompts
// of two runs.
func TestBenchstatDoesNotMixCells(t *testing.T) {
	cell := func(id int, change func(*comparetest.Engine)) comparetest.Engine {
		e := comparetest.Native(2)
		e.Cell.ID, e.Cell.PromptID = id, 1
		change(&e)
		return e
	}
	as := func(*comparetest.Engine) {}
	run := func(engines ...comparetest.Engine) *record.Run { return comparetest.Run(t, "default", engines...) }
	another := run(cell(1, func(e *comparetest.Engine) { e.Cell.Prompt = "another" }))
	for name, runs := range map[string][]*record.Run{
		"clients": {run(comparetest.Loaded(comparetest.Native(2), 1, 1, 4),
			comparetest.Loaded(comparetest.Native(2), 2, 2, 4))},
		"cache": {run(cell(1, func(e *comparetest.Engine) { e.Cell.KVDType = "f16" }),
			cell(2, func(e *comparetest.Engine) { e.Cell.KVDType = "q8_0" }))},
		"start": {run(cell(1, func(e *comparetest.Engine) { e.Cell.Start = "cold" }),
			cell(2, func(e *comparetest.Engine) { e.Cell.Start = "warm" }))},
		"setups":  {run(cell(1, as), cell(2, func(e *comparetest.Engine) { e.Cell.Setup = 1 }))},
		"runs":    {run(cell(1, as)), run(cell(1, as))},
		"prompts": {run(cell(1, as)), another},
		"hostile": {run(hostile(), cell(2, as))},
	} {
		t.Run(name, func(t *testing.T) {
			res := compare.Runs(runs...)
			text := rendered(t, func(w io.Writer) error { return reports.Benchstat(w, res) })
			lines, names := map[string]int{}, []string{}
			for read := benchfmt.NewReader(strings.NewReader(text), name); read.Scan(); {
				if bad, ok := read.Result().(*benchfmt.SyntaxError); ok {
					t.Error(bad)
				}
				if rec, ok := read.Result().(*benchfmt.Result); ok {
					lines[rec.GetConfig("run")+" "+rec.Name.String()]++
					if !slices.Contains(names, rec.Name.String()) {
						names = append(names, rec.Name.String())
					}
				}
			}
			for what, n := range lines {
				if n != 2 {
					t.Errorf("%d launches of %q, a cell has 2", n, what)
				}
			}
			if len(lines) != 2 || (len(names) == 1) != (name == "runs") {
				t.Errorf("names of two cells: %q", names)
			}
		})
	}
}
