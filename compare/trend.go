package compare

import (
	"fmt"

	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// watched lists the figures that launches are looked at for: not those that count tokens.
func watched(name string) bool {
	return name != figure.Tokens && name != figure.Prompt && name != figure.Cached
}

// watch puts warnings beside the cell's figures.
func (c *Cell) watch(busy string) {
	for i := range c.Figures {
		f := &c.Figures[i]
		if watched(f.Name) {
			f.Watch(f.Unit)
		}
		if busy != "" && f.TimeOrRate() && f.Known() {
			f.Warnings = append(f.Warnings, record.Warning{Code: explain.BusyMachine, Text: busy})
		}
	}
}

// busy says who else used a run's machine; empty where nobody did much, or nobody knows. Load averages are those before
// the run's first launch: later ones have its own engines in them.
func busy(run *record.Run) string {
	if c := explain.Quiet(run.Environment); c.Answer == explain.No {
		return c.Why
	}
	e := run.Environment
	if e.Background != nil || e.Cores == 0 || len(run.Attempts) == 0 {
		return ""
	}
	if load := run.Attempts[0].Load1; load > 0.5*float64(e.Cores) {
		return fmt.Sprintf("the load average was %.2f on %d cores before the first launch", load, e.Cores)
	}
	return ""
}
