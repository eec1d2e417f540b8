// Package memory tells what memory a cell takes: totals at the baseline, at the peak and in between; what of it lies
// inside the engine; where it goes by component, with what is left over; and how near a prediction came.
//
// It can't tell why an engine takes memory that nobody reports: such memory lies in everything else, and so do the
// errors of all other components. It reads what samplers and engines recorded, and measures nothing.
package memory

import (
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// Cell is a cell with what its memory is told by.
type Cell struct {
	evidence.Setup
	Counted   []*record.Attempt
	Figures   []evidence.Figure // of the cell: those of Figures, and those of requests
	Server    []evidence.Figure // what a server says of itself
	Breakdown *Breakdown        // nil where nothing looked inside
	Parts     *Parts            // nil where no launch counts

	others    float64 // MiB that programs outside share, where PSS leaves out much of them; 0: none
	untouched []cause // what of the parts may never have come into memory
}

// Figures are a cell's totals, one value a launch, in the order in which renderers show them.
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

// Of works out a cell's memory. figures and server are summarised.
func Of(s evidence.Setup, counted []*record.Attempt, figures, server []evidence.Figure) *Cell {
	c := &Cell{Setup: s, Counted: counted, Figures: figures, Server: server, Breakdown: breakdown(counted),
		others: others(counted)}
	c.Parts = c.split(counted)
	return c
}

// Figure finds one of the cell's figures; an empty one that says so where there is none.
func (c *Cell) Figure(name string) evidence.Figure { return evidence.Held(c.Figures, name) }

// Warnings are what to know before believing any of it.
func (c *Cell) Warnings() []record.Warning { return append(c.ledgerWarning(), c.sharingWarning()...) }
