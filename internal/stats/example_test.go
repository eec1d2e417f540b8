package stats_test

import (
	"fmt"

	"llmparity/internal/stats"
)

// One value a launch; with fewer than six there is no interval.
func ExampleMedianInterval() {
	launches := []float64{46.9, 47.3, 46.5, 47.0, 46.8, 48.1}
	fmt.Println(stats.Median(launches), *stats.MedianInterval(launches, stats.Confidence))
	fmt.Println(stats.MedianInterval(launches[:5], stats.Confidence))
	// Output:
	// 46.95 {46.5 48.1 0.96875}
	// <nil>
}

// Memory over the tokens in the context: the slope is what a token takes.
func ExampleTheilSen() {
	line, ok := stats.TheilSen([]stats.Point{{X: 512, Y: 50.1}, {X: 1024, Y: 51.2}, {X: 2048, Y: 53.1},
		{X: 4096, Y: 57.3}, {X: 8192, Y: 65.2}})
	fmt.Printf("%.2f KiB per token (%t)\n", line.Slope*1024, ok)
	// Output:
	// 2.02 KiB per token (true)
}
