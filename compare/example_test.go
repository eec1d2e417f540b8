package compare_test

import (
	"fmt"

	"llmparity/compare"
	"llmparity/internal/record"
)

// A record becomes figures of cells, each over the launches that count.
func ExampleRuns() {
	run, err := record.Open("../internal/record/testdata/first")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, cell := range compare.Runs(run).Cells {
		for _, f := range cell.Figures {
			if f.Known() {
				fmt.Println(cell.Label, f.Name, *f.Median, f.Unit, f.Origin)
			}
		}
	}
	// Output:
	// llamacpp peak_rss_sum 40 MiB measured
	// llamacpp baseline_rss_sum 10 MiB measured
	// llamacpp memory_increase_rss_sum 30 MiB measured
	// llamacpp load_time 200 ms measured
	// llamacpp ttft 10 ms measured
	// llamacpp prefill_tps 200 tokens/s measured
	// llamacpp latency 30 ms measured
	// llamacpp tokens 2 tokens reported
	// llamacpp prompt_tokens 2 tokens reported
	// llamacpp cached_prompt_tokens 0 tokens reported
}
