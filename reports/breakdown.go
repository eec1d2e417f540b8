package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
)

// held writes a size, with the number of launches if fewer than counted have it. Repetitions in one launch have some
// sizes only once.
func held(f evidence.Figure, l compare.Launches) string {
	switch {
	case !f.Known():
		return "–"
	case f.N < l.Counted && f.N != l.Opened:
		return fmt.Sprintf("%s (n=%d)", mib(f.Center()), f.N)
	}
	return mib(f.Center())
}

// mib writes a size with at least a thousandth, because some parts are a few bytes.
func mib(v float64) string {
	switch a := math.Abs(v); {
	case v < 0 && a < 0.0005:
		return ">-0.001"
	case v != 0 && a < 0.0005:
		return "<0.001"
	case v != 0 && a < 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return num(v)
}

// How to read memory by process and part.
const (
	breakdownWords = "Median memory in MiB by part, at the end of the load, at the end of the measurement, and after the unload. " +
		"Methods see different things, so their figures do not add up."
	breakdownMethod = "The WebGPU ledger lists the buffers that the page requested: weights, reserved KV cache, workspaces and " +
		"unattributed buffers. The filled part of the KV cache is calculated and is part of what is reserved. " +
		"Retained memory is what remains after the unload, minus the baseline."
	peaksWords = "Peaks of processes do not add up: they occur at different moments, and each counts shared pages in full."
)

// breakdownSection shows memory by process and part.
func breakdownSection(res *compare.Result) section {
	parts, processes := breakdownGrid(res), processGrid(res)
	if parts == nil && processes == nil {
		return section{}
	}
	return section{ID: "breakdown", Title: "Memory by process and part", For: inTerminal | onPage,
		Words: []string{breakdownWords}, Method: []string{breakdownMethod}, Lines: breakdownNotes(res), Mark: "- ",
		Parts: []section{
			{Title: "Parts", Grid: parts},
			{Title: "Highest RSS of each process within each phase", Words: []string{peaksWords}, Grid: processes},
			explained(res, func(c *compare.Cell) []evidence.Figure { return insideFigures(c.Memory) })}}
}

// insideFigures are all figures of a breakdown that are known.
func insideFigures(b *memory.Breakdown) []evidence.Figure {
	if b == nil {
		return nil
	}
	all := slices.Concat(b.Load, b.Measure)
	for _, f := range b.Retained {
		f.Title += ", retained"
		all = append(all, f)
	}
	for _, p := range b.Peaks {
		for _, f := range p.Phases {
			f.Title = "peak of a process"
			all = append(all, f)
		}
	}
	return slices.DeleteFunc(all, func(f evidence.Figure) bool { return !f.Known() })
}

// breakdownNotes are the notes on each cell's memory.
func breakdownNotes(res *compare.Result) []string {
	var out []string
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Memory == nil {
			continue
		}
		for _, n := range c.Memory.Notes {
			out = append(out, c.Label+": "+n+".")
		}
		if f := evidence.Held(c.Memory.Load, figure.EngineSays); f.Known() {
			says, _, _ := strings.Cut(f.Title, " (")
			out = append(out, fmt.Sprintf("%s: %s %s MiB (its own estimate, from /api/ps).", c.Label, says,
				held(f, c.Launches)))
		}
		if !inside(c.Memory) {
			out = append(out, c.Label+": the engine reports no details; only its processes are measured.")
		}
	}
	return out
}

// inside tells whether anything besides processes was measured.
func inside(b *memory.Breakdown) bool {
	return slices.ContainsFunc(slices.Concat(b.Load, b.Measure, b.Retained),
		func(f evidence.Figure) bool {
			return f.Known() && f.Name != figure.TotalPSS && f.Name != figure.EngineSays
		})
}

// breakdownGrid has every part of every cell at each moment, with its method.
func breakdownGrid(res *compare.Result) *grid {
	head := []string{"cell", "memory", "end of load (MiB)", "end of measure (MiB)", "retained (MiB)", "from"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Memory == nil {
			return
		}
		for n, loaded := range c.Memory.Load {
			measured, retained := c.Memory.Measure[n], c.Memory.Retained[n]
			if from := cmp.Or(loaded.From(), measured.From(), retained.From()); from != "" {
				add(loaded.Title, held(loaded, c.Launches), held(measured, c.Launches), held(retained, c.Launches), from)
			}
		}
	})
}

// processGrid has the peak of each process by phase.
func processGrid(res *compare.Result) *grid {
	head := []string{"cell", "process"}
	t := perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Memory == nil {
			return
		}
		for _, p := range c.Memory.Peaks {
			row := []string{line(p.Process)}
			for _, f := range p.Phases {
				if len(head) < 2+len(p.Phases) {
					head = append(head, f.Title+" (MiB)")
				}
				row = append(row, held(f, c.Launches))
			}
			add(row...)
		}
	})
	if t != nil {
		t.Head = head
	}
	return t
}
