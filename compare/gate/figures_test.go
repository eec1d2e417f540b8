package gate_test

import (
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
)

// Whatever a cell has a figure of, a gate can judge by its name.
func TestGateKnowsEveryFigure(t *testing.T) {
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
	if len(names) < 30 {
		t.Fatalf("%d names", len(names))
	}
	for _, name := range names {
		if _, err := figure.Find(name); err != nil {
			t.Errorf("%v: add it to internal/figure/table.go", err)
		}
	}
}
