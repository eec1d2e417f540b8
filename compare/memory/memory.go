// Package memory tells what memory a cell takes: totals at the baseline, at the peak and in between; what of it lies
// inside the engine; where it goes by component, with what is left over; and how near a prediction came.
//
// It can't tell why an engine takes memory that nobody reports: such memory lies in everything else, and so do the
// errors of all other components. It reads what samplers and engines recorded, and measures nothing.
package memory

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
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
func Figures(counted []*record.Attempt) []evidence.Figure { return sampled(figures(counted), counted) }

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

// sampled names what read the figures of memory that do not say so.
func sampled(figures []evidence.Figure, attempts []*record.Attempt) []evidence.Figure {
	rss := record.MethodStatm
	if len(attempts) > 0 {
		rss = RSSMethod(attempts[0])
	}
	for i := range figures {
		switch f := &figures[i]; {
		case f.Method != "":
		case slices.Contains([]string{figure.PeakRSS, figure.BaselineRSS, figure.PostWarmupRSS,
			figure.IncreaseRSS}, f.Name):
			f.Method = rss
		default:
			f.Method = record.MethodSmapsRollup
		}
	}
	return figures
}
