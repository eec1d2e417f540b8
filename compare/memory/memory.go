// Package memory has a cell's memory: totals at the baseline, after warm-up and at the peak; what was read inside the
// engine; memory by component with the rest; and predictions compared with measurements.
//
// It cannot explain memory that no engine reports: such memory is in "everything else", which also carries the errors
// of all other components. It only reads records.
package memory

import (
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// Cell is a cell with its memory.
type Cell struct {
	evidence.Setup
	Counted   []*record.Attempt
	Figures   []evidence.Figure // those of Figures, and those of requests
	Server    []evidence.Figure // reported by a server
	Breakdown *Breakdown        // nil: nothing was read inside
	Parts     *Parts            // nil: no launch counts

	others float64 // MiB shared with other programs, if PSS leaves out much of it; 0: none
}

// Figures are a cell's totals, one value a launch, in the order of reports.
func Figures(counted []*record.Attempt) []evidence.Figure {
	out, rss := figures(counted), record.MethodStatm
	if len(counted) > 0 {
		rss = RSSMethod(counted[0])
	}
	for i := range out {
		switch f := &out[i]; {
		case f.Method != "":
		case strings.HasSuffix(f.Name, "_rss_sum"):
			f.Method = rss
		default:
			f.Method = record.MethodSmapsRollup
		}
	}
	return out
}

// Of computes a cell's memory. figures and server are summarised.
func Of(s evidence.Setup, counted []*record.Attempt, figures, server []evidence.Figure) *Cell {
	c := &Cell{Setup: s, Counted: counted, Figures: figures, Server: server, Breakdown: breakdown(counted),
		others: others(counted)}
	c.Parts = c.split(counted)
	return c
}

// Figure finds a figure; an absent one if there is none.
func (c *Cell) Figure(name string) evidence.Figure { return evidence.Held(c.Figures, name) }

// Warnings are those of the ledger and of shared memory.
func (c *Cell) Warnings() []record.Warning { return append(c.ledgerWarning(), c.sharingWarning()...) }
