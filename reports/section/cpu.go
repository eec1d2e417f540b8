package section

import (
	"slices"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/reports/plain"
)

// How to read CPU time.
const (
	cpuWords = "CPU time of the engine's processes: medians over launches. Other programs hardly change it, though they make an engine slower."
	cpuHow   = "Processes are read before and after the load and each request, and once after the first token. A wait costs no CPU time, nor does " +
		"work on a GPU."
)

// cpuSection shows the CPU time of the cells, and below each that of its kinds of processes.
func cpuSection(res *compare.Result) Section {
	names := []string{figure.LoadCPU, figure.PrefillCPU, figure.TokenCPU}
	grid := plain.PerCell(res, []string{"cell", "processes", "load (ms)", "prefill (ms)", "per token (ms)",
		"95% interval per token"}, func(c *compare.Cell, add func(...string)) {
		if !slices.ContainsFunc(names, func(n string) bool { return c.Figure(n).Known() }) {
			return
		}
		row := []string{"all"}
		for _, n := range names {
			row = append(row, plain.Known(c.Figure(n)))
		}
		add(append(row, plain.IntervalWords(c.Figure(figure.TokenCPU)))...)
		for _, p := range c.CPU {
			if len(c.CPU) > 1 {
				add(plain.Line(p.Role), milliseconds(p.Load), milliseconds(p.Prefill), milliseconds(p.PerToken), "")
			}
		}
	})
	if grid == nil {
		return Section{}
	}
	return Section{ID: "cpu", Title: "CPU time", Words: []string{cpuWords}, Method: []string{cpuHow}, Grid: grid}
}

func milliseconds(v *float64) string { return plain.Known(evidence.Figure{Median: v}) }
