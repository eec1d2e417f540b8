package compare_test

import (
	"fmt"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// A record becomes figures of cells, each over the launches that count.
func ExampleRuns() {
	dir, remove := comparetest.Example()
	defer remove()
	run, err := record.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, cell := range compare.Runs(run).Cells {
		for _, f := range cell.Figures {
			if f.Name == figure.PeakPSS || f.Name == figure.TTFT {
				fmt.Printf("%s: %s %.1f %s (%.1f to %.1f)\n", cell.Label, f.Name, *f.Median, f.Unit,
					f.Interval.Lo, f.Interval.Hi)
			}
		}
	}
	// Output:
	// llamacpp: peak_pss 46.9 MiB (46.2 to 47.3)
	// llamacpp: ttft 8.9 ms (8.7 to 9.3)
}
