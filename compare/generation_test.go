package compare_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// An engine that starts a process for each generation loads within its time to the first token, and its load phase has
// waiting of ours in it: the load is what its span says, and neither is set against another engine's.
func TestOneProcessPerGeneration(t *testing.T) {
	once := comparetest.Served(6)
	once.Cell.PerGeneration = true
	once.Info.Policy = map[string]string{"process": "one a generation"}
	run := comparetest.Run(t, "once", comparetest.Native(6), once)
	for _, a := range run.Attempts {
		if p, ok := a.Phase(record.Load); ok && a.Cell == run.Cells[1].ID {
			a.Stages = []record.NamedSpan{{Name: "model", BeginNS: p.BeginNS, EndNS: p.BeginNS + 5e6}}
		}
	}
	r := compare.Runs(run)
	if f := r.Cells[1].Figure(figure.LoadTime); f.Center() != 5 ||
		!strings.Contains(f.How, "every request loads ") {
		t.Errorf("load: %+v", f)
	}
	c := r.Comparisons[0]
	if len(c.Ratios) == 0 || slices.ContainsFunc(
		c.Ratios, func(r ratio.Ratio) bool { return r.Figure == figure.TTFT || r.Figure == figure.LoadTime }) {
		t.Errorf("ratios: %+v", c.Ratios)
	}
	said := strings.Join(c.Caveats, "\n")
	if !strings.Contains(said, "served loads the model for each request") {
		t.Errorf("caveats: %s", said)
	}
}
