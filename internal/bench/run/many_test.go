package run_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/kit/fault"
)

// BenchmarkManyCells measures the runner's own time for about 10,000 cells that can't run: announcing and refusing
// them, and finding nothing to do when the run is resumed.
func BenchmarkManyCells(b *testing.B) {
	p := plan.Plan{Name: "many", Engines: []string{"a"}, Model: "m", Context: 4096, Warmup: plan.Warmup{Tokens: 1},
		Repetitions: 1,
		Timeout:     plan.Duration(time.Minute)}
	p.ThreadCounts = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for i := range 31 {
		p.InputLengths, p.OutputLengths = append(p.InputLengths, i+1), append(p.OutputLengths, i+1)
	}
	for b.Loop() {
		var folder time.Time
		o := trial{Plan: p, Options: run.Options{Out: b.TempDir(),
			Open: func(context.Context, *plan.Setup) (run.Parts, error) {
				return run.Parts{}, errors.New("not here")
			}, Progress: func(e run.Event) {
				if e.Kind == run.Recording {
					folder = time.Now()
				}
			}}}
		dir, err := execute(b.Context(), o)
		if dir == "" {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(folder).Seconds(), "s/recorded")
		begin := time.Now()
		_, err = execute(b.Context(), trial{Plan: p, Options: run.Options{Resume: dir, Open: o.Open}})
		if fault.Of(err) != fault.Run {
			b.Fatalf("%v, want earlier failures", err)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s/resumed")
	}
}
