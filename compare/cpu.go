package compare

import (
	"math"
	"strconv"

	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// UnjudgedCPU says why no gate judges the CPU time of a cell; empty: one may.
func (c *Cell) UnjudgedCPU() string {
	switch {
	case c.Device == nil || c.Device.Class != record.CPU && c.Device.Class != record.SoftwareAdapter:
		return "CPU time is judged only where the engine computes on the CPU"
	case c.spins != "":
		return c.spins
	}
	return ""
}

// spinning says if an engine has more threads than cores are free. Those that wait for the others then spin, which is
// CPU time, but no work. WebAssembly and software GPUs put such threads to sleep.
func (c *Cell) spinning(e record.Environment) string {
	threads, err := strconv.Atoi(c.Policy("threads"))
	if err != nil || threads < 2 || e.Cores == 0 || c.Browser() != "" || !c.Figure(figure.TokenCPU).Known() {
		return ""
	}
	free := float64(e.Cores)
	if b := e.Background; b != nil {
		free = math.Round(max(0, free-b.Cores-b.Stolen))
	}
	if float64(threads) <= free {
		return ""
	}
	return explain.Spinning.With(threads, free, e.Cores).Text
}
