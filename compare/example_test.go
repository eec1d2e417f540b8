package compare_test

import (
	"fmt"
	"os"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// A record becomes figures of cells, each over the launches that count.
func ExampleRuns() {
	dir, remove := exampleRun()
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

// exampleRun writes a run of six launches of llama.cpp with made-up figures.
func exampleRun() (dir string, remove func()) {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	return comparetest.Write(new(testing.B), root, "example", comparetest.Native(6)), func() { _ = os.RemoveAll(root) }
}
