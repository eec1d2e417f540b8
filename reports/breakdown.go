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

// moment is a time at which memory is broken down.
type moment struct {
	name string // as the table calls it
	long string
	of   func(*memory.Breakdown) []evidence.Figure
}

func moments() []moment {
	return []moment{
		{"load", "at the end of the load", func(b *memory.Breakdown) []evidence.Figure { return b.Load }},
		{"measure", "at the end of the measurement", func(b *memory.Breakdown) []evidence.Figure { return b.Measure }},
		{"retained", "after the unload, less the baseline",
			func(b *memory.Breakdown) []evidence.Figure { return b.Retained }},
	}
}

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

// breakdownColumns are the figures in the terminal's table.
func breakdownColumns() []*figure.Row {
	return figure.Rows(func(r *figure.Row) bool { return r.Inside != nil && r.Inside.Head != "" })
}

// breakdownSections show memory by process and part.
func breakdownSections(res *compare.Result) []section {
	const id, title = "breakdown", "Memory by process and part"
	head := []string{"cell", "when"}
	for _, col := range breakdownColumns() {
		head = append(head, col.Inside.Head)
	}
	var highestOf []string
	moment := perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Memory == nil {
			return
		}
		for _, m := range moments() {
			row, known := []string{m.name}, false
			for _, col := range breakdownColumns() {
				f := evidence.Held(m.of(c.Memory), col.Name)
				row, known = append(row, held(f, c.Launches)), known || f.Known()
			}
			if known {
				add(row...)
			}
		}
		if words := highest(c.Memory); words != "" {
			highestOf = append(highestOf, fmt.Sprintf("%s: highest RSS of each process, and in which phase: %s.", c.Label,
				words))
		}
	})
	short := section{ID: id, Title: title, For: inTerminal, Grid: moment, Mark: "- "}
	if moment != nil || len(highestOf) > 0 {
		short.Words, short.Lines = []string{breakdownWords + " " + breakdownMethod + " " + peaksWords},
			append(breakdownNotes(res),
				highestOf...)
	}
	parts, processes := breakdownGrid(res), processGrid(res)
	if parts == nil && processes == nil {
		return []section{short}
	}
	return []section{short, {ID: id, Title: title, For: onPage, Words: []string{breakdownWords},
		Method: []string{breakdownMethod},
		Lines:  breakdownNotes(res), Draw: []func(*view) []chart{stacks}, Parts: []section{
			{Title: "Parts", Grid: parts},
			{Title: "Highest RSS of each process within each phase", Words: []string{peaksWords}, Grid: processes},
			{Title: "What each figure is, and what its method cannot see", Folded: true, Grid: methodGrid(res)}}}}
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

// highest lists each process's highest RSS with its phase.
func highest(b *memory.Breakdown) string {
	var words []string
	for _, p := range b.Peaks {
		if f, ok := p.Highest(); ok {
			words = append(words, fmt.Sprintf("%s %s (%s)", p.Process, mib(f.Center()), f.Name))
		}
	}
	return strings.Join(words, ", ")
}

// stacks draws each cell's parts: buffers of the engine, and beside them what a browser's page holds.
func stacks(v *view) []chart {
	type bar struct {
		*compare.Cell
		page bool
	}
	var bars []bar
	for i := range v.res.Cells {
		if c := &v.res.Cells[i]; c.Memory != nil && inside(c.Memory) {
			if bars = append(bars, bar{c, false}); ledgered(c.Memory) {
				bars = append(bars, bar{c, true})
			}
		}
	}
	if len(bars) == 0 {
		return nil
	}
	out := chart{ID: "breakdown", Title: "By part", Unit: "MiB", Choice: "When", Height: rowsHeight(len(bars), 1),
		Note: "Medians. A browser has two bars: WebGPU buffers, by the ledger, and the page's own memory. They come from " +
			"different methods and different processes. A native engine has one bar, from its log.",
		Label: "Stacked bars of what each cell's memory is used for; the table below has the same figures"}
	for _, m := range slices.Backward(moments()[:2]) { // the end of the measurement first
		t := &stackTable{}
		for _, b := range bars {
			what := "from its log"
			if b.page {
				what = "page"
			} else if ledgered(b.Memory) {
				what = "WebGPU\n" + held(evidence.Held(m.of(b.Memory), figure.Ledger), b.Launches) + " MiB"
			}
			t.bars = append(t.bars, line(b.Label)+"\n"+what)
		}
		part := func(name string, page bool) {
			t.add(figure.Title(name), partColour[name], func(n int) float64 {
				if bars[n].page != page {
					return math.NaN()
				}
				return evidence.Held(m.of(bars[n].Memory), name).Center()
			})
		}
		part(figure.Weights, false)
		part(figure.KVUsed, false)
		t.add(figure.Title(figure.KVReserved)+", not filled", "var(--off)", func(n int) float64 {
			list := m.of(bars[n].Memory)
			reserved, used := evidence.Held(list, figure.KVReserved).Center(), evidence.Held(list, figure.KVUsed)
			switch {
			case bars[n].page:
				return math.NaN()
			case used.Known():
				reserved -= used.Center()
			}
			return reserved
		})
		part(figure.Workspaces, false)
		part(figure.Unattributed, false)
		for _, name := range []string{figure.JSHeap, figure.ArrayBuffers, figure.Wasm} {
			part(name, true)
		}
		out.Drawings = append(out.Drawings, drawing{Name: m.long, Options: t.options()})
		out.Table = cmp.Or(out.Table, t.grid())
	}
	return []chart{out}
}

// ledgered tells whether there is a page with a WebGPU ledger.
func ledgered(b *memory.Breakdown) bool {
	return slices.ContainsFunc(slices.Concat(b.Load, b.Measure), func(f evidence.Figure) bool {
		return f.Known() && f.Method != evidence.EngineLog && f.Name != figure.TotalPSS && f.Name != figure.EngineSays
	})
}

// breakdownGrid has every part of every cell at each moment, with its method.
func breakdownGrid(res *compare.Result) *grid {
	head := []string{"cell", "memory", "end of load (MiB)", "end of measure (MiB)", "retained (MiB)", "from"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Memory == nil {
			return
		}
		for n, f := range c.Memory.Load {
			row, from := []string{f.Title}, ""
			for _, m := range moments() {
				x := m.of(c.Memory)[n]
				row, from = append(row, held(x, c.Launches)), cmp.Or(from, x.From())
			}
			if from != "" {
				add(append(row, from)...)
			}
		}
	})
}

// methodGrid explains each figure once, with what its method cannot see.
func methodGrid(res *compare.Result) *grid {
	t := &grid{Head: []string{"memory", "from", "what it is", "what the method cannot see"}}
	for i := range res.Cells {
		b := res.Cells[i].Memory
		if b == nil {
			continue
		}
		for n, f := range b.Load {
			if f.Known() || b.Measure[n].Known() {
				t.once(f.Title, cmp.Or(f.From(), b.Measure[n].From()), line(f.How), line(f.Blind))
			}
			if r := b.Retained[n]; r.Known() {
				t.once(f.Title+", retained", r.From(), line(r.How), line(r.Blind))
			}
		}
		for _, p := range b.Peaks {
			for _, f := range p.Phases {
				if f.Known() {
					t.once("peak of a process", f.From(), line(f.How), line(f.Blind))
				}
			}
		}
	}
	return t.orNil()
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
