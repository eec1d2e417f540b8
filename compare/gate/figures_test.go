package gate_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/reports/tables"
)

// Whatever a cell has a figure of, a gate can judge by its name, and by its name in summary.csv.
func TestAGateKnowsEveryFigure(t *testing.T) {
	run := comparetest.Run(t, "run", comparetest.Measured(comparetest.Browser(6), comparetest.Page()),
		comparetest.Native(6))
	res := compare.Runs(run)
	var names []string
	for _, c := range res.Cells {
		for _, f := range slices.Concat(c.Figures, c.Sampler) {
			names = append(names, f.Name)
		}
	}
	for _, of := range []string{figure.OfTTFT, figure.Queueing, figure.OfITL, figure.TPOT, figure.E2E} {
		names = append(names, figure.Percentile(of, 0.5), figure.Percentile(of, 0.99))
	}
	names = append(names, figure.AggregateTPS, figure.RequestRate, figure.Goodput, figure.GoodShare,
		figure.ModelWeights, figure.KVCache)
	for _, table := range tables.Of(res, run) {
		if table.Name != "summary" {
			continue
		}
		for _, c := range table.Columns {
			if base, ok := strings.CutSuffix(c.Name, "_lo"); ok {
				names = append(names, base)
			}
		}
	}
	if len(names) < 60 {
		t.Fatalf("%d names", len(names))
	}
	for _, name := range names {
		if _, err := figure.Find(name); err != nil {
			t.Errorf("%v: add it to internal/figure/table.go", err)
		}
	}
	seen := map[string]string{}
	for _, f := range figure.Columns(figure.Any) {
		for _, name := range []string{f.Name, f.Column.Name} {
			if other, twice := seen[name]; twice && other != f.Name {
				t.Errorf("%s is the name of %s and of %s", name, other, f.Name)
			}
			seen[name] = f.Name
		}
	}
}
