// Package memory has a cell's memory: totals at the baseline, after warm-up and at the peak; what was read inside the
// engine; memory by component with the rest; and predictions compared with measurements.
//
// It cannot explain memory that no engine reports: such memory is in "everything else", which also carries the errors
// of all other components. It only reads records.
package memory

import (
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
	Others    float64           // MiB shared with other programs, if PSS leaves out much of it; 0: none
}

// Of computes a cell's memory. figures and server are summarised.
func Of(s evidence.Setup, counted []*record.Attempt, figures, server []evidence.Figure) *Cell {
	c := &Cell{Setup: s, Counted: counted, Figures: figures, Server: server, Breakdown: breakdown(counted),
		Others: others(counted)}
	c.Parts = c.split(counted)
	return c
}

// Figure finds a figure; an absent one if there is none.
func (c *Cell) Figure(name string) evidence.Figure { return evidence.Held(c.Figures, name) }

// Warnings are those of the ledger and of shared memory.
func (c *Cell) Warnings() []record.Warning { return append(c.ledgerWarning(), c.sharingWarning()...) }
