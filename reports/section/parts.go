package section

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/hardware"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// How to read memory by process and part.
const (
	breakdownWords = "Memory in MiB by part, at the end of the load, at the end of the measurement, and after the unload. " +
		oneLaunch + " The parts of the WebGPU ledger add up to it; figures of different methods do not add up."
	breakdownMethod = "The WebGPU ledger lists the buffers that the page requested: weights, reserved KV cache, workspaces and " +
		"unattributed buffers. The filled part of the KV cache is calculated; the reserved size contains the filled part. " +
		"Retained memory is the memory after the unload minus the baseline."
	peaksWords = "Medians over launches. Do not add the peaks of processes: they occur at different moments, and each peak counts " +
		"shared pages in full."
)

// breakdownSection shows memory by process and part.
func breakdownSection(res *compare.Result) Section {
	parts, processes := breakdownGrid(res), processGrid(res)
	if parts == nil && processes == nil {
		return Section{}
	}
	return Section{ID: "breakdown", Title: "Memory by process and part", For: InTerminal | OnPage,
		Words: []string{breakdownWords}, Method: []string{breakdownMethod}, Lines: breakdownNotes(res), Mark: "- ",
		Parts: []Section{
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
	for _, c := range res.Cells {
		if c.Memory == nil {
			continue
		}
		for _, n := range c.Memory.Notes {
			out = append(out, c.Label+": "+n+".")
		}
		if f := evidence.Find(c.Memory.Load, figure.EngineSays); f.Known() {
			out = append(out, fmt.Sprintf("%s: %s %s MiB (its own estimate, from /api/ps).", c.Label, figure.Noun(f.Name),
				c.Shown().Inside(c.Memory.Load)[f.Name]))
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
func breakdownGrid(res *compare.Result) *plain.Grid {
	head := []string{"cell", "launch", "memory", "end of load (MiB)", "end of measure (MiB)", "retained (MiB)", "from"}
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Memory == nil {
			return
		}
		s := c.Shown()
		load, measure, retained := s.Inside(c.Memory.Load), s.Inside(c.Memory.Measure), s.Inside(c.Memory.Retained)
		for n, f := range c.Memory.Load {
			from := cmp.Or(f.From(), c.Memory.Measure[n].From(), c.Memory.Retained[n].From())
			if from != "" {
				add(c.ShownLaunch(), f.Title, load[f.Name], measure[f.Name], retained[f.Name], from)
			}
		}
	})
}

// processGrid has the peak of each process by phase.
func processGrid(res *compare.Result) *plain.Grid {
	head := []string{"cell", "process"}
	t := plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		if c.Memory == nil {
			return
		}
		for _, p := range c.Memory.Peaks {
			row := []string{plain.Line(p.Process)}
			for _, f := range p.Phases {
				if len(head) < 2+len(p.Phases) {
					head = append(head, f.Title+" (MiB)")
				}
				row = append(row, plain.Size(f, c.Launches))
			}
			add(row...)
		}
	})
	if t != nil {
		t.Head = head
	}
	return t
}

// How to read the components.
const (
	partsShort = "Memory increase from baseline to peak in MiB, by component. " + oneLaunch + " Everything else is the total " +
		"increase minus the other components; a value below zero means that components overlap."
	partsWords = "Weights, KV cache (reserved), activations, multi-GPU overhead, growth of the browser itself and everything else add up to the increase. " +
		"Everything else is calculated as the difference, so everything else has the errors of all other components and can be negative. " +
		"The filled part of the KV cache is calculated from the number of tokens; the reserved size contains the filled part. The total includes the baseline."
)

// found labels a run's own figures; not all of them are measured.
const found = "in the run"

// componentSection shows memory by component.
func componentSection(res *compare.Result) Section {
	return Section{ID: "components", Title: "Memory by component", Words: []string{partsShort},
		Method: []string{partsWords}, Parts: []Section{
			{Lines: origins(res), Mark: "- "}, {Lines: negative(res)},
			{Grid: componentGrid(res)},
			{Title: "Every component: origin, confidence and dtype", For: OnPage, Folded: true, Grid: partGrid(res)},
			explained(res, func(c *compare.Cell) []evidence.Figure {
				var out []evidence.Figure
				for _, p := range allParts(c) {
					out = append(out, p.Figure)
				}
				return out
			})}}
}

// allParts are a cell's components and the parts of a browser's own memory.
func allParts(c *compare.Cell) []memory.Component {
	if c.Parts == nil {
		return nil
	}
	return slices.Concat(c.Parts.Components, c.Parts.Beyond)
}

func headsOf(columns []*figure.Row) []string {
	var out []string
	for _, col := range columns {
		out = append(out, col.Part)
	}
	return out
}

// componentColumns leaves out the columns for several GPUs and for a browser if no cell has them.
func componentColumns(res *compare.Result) []*figure.Row {
	return slices.DeleteFunc(chart.Components(), func(col *figure.Row) bool {
		return slices.Contains([]string{figure.MultiGPUOverhead, figure.BrowserShare, figure.HostParts}, col.Name) &&
			!slices.ContainsFunc(res.Cells, func(c *compare.Cell) bool {
				reported, _ := c.Prediction.Part(col.Name)
				size := c.Shown().Size(col.Name)
				return !math.IsNaN(size) && size != 0 || reported.Best != nil && *reported.Best > 0
			})
	})
}

// componentGrid has one row per cell.
func componentGrid(res *compare.Result) *plain.Grid {
	columns := componentColumns(res)
	head := append([]string{"cell", "launch"}, headsOf(columns)...)
	return plain.PerCell(res, append(head, "confi-\ndence"), func(c *compare.Cell, add func(...string)) {
		if c.Parts == nil {
			return
		}
		row := []string{c.ShownLaunch()}
		for _, col := range columns {
			f := c.Parts.Shown(col.Name)
			text := c.Shown().Text(f.Name)
			if f.Origin == record.OriginFileSize {
				text += " (file size)"
			}
			row = append(row, text)
		}
		add(append(row, c.Parts.Confidence)...)
	})
}

// origins say where components come from, once for all cells with the same answer.
func origins(res *compare.Result) []string {
	var out evidence.Groups[string, string]
	for _, c := range res.Cells {
		if c.Parts == nil {
			continue
		}
		var by evidence.Groups[string, string]
		for _, p := range c.Parts.Components {
			if p.Known() && !(p.Name == figure.MultiGPUOverhead && p.Center() == 0) { // one device has none of several
				evidence.AddNew(&by, plain.OriginWords(p.Origin), chart.PartName(p.Name))
			}
		}
		if len(by.Keys) > 0 {
			evidence.AddNew(&out, strings.Join(by.Lines(func(origin string, names []string) string {
				return origin + ": " + strings.Join(names, ", ")
			}), "; "), c.Label)
		}
	}
	return out.Lines(sentence)
}

// partGrid has every component of every cell with origin, confidence and dtype.
func partGrid(res *compare.Result) *plain.Grid {
	head := []string{"cell", "launch", "component", "MiB", "95% interval of the median", "from", "confidence", "dtype"}
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, p := range allParts(c) {
			add(c.ShownLaunch(), p.Title, c.Shown().Text(p.Name), plain.IntervalWords(p.Figure), plain.OrDash(p.From()),
				plain.OrDash(p.Confidence), plain.OrDash(plain.Line(p.DType)))
		}
		if c.Parts != nil && c.Parts.DTypes.Scales != "" {
			s := c.Parts.DTypes.Scales
			add(c.ShownLaunch(), "scales, within the weights", "–", "", "–", "–", plain.Line(s))
		}
	})
}

// negative lists the cells whose remainder is negative.
func negative(res *compare.Result) []string {
	var out []string
	for _, c := range res.Cells {
		if f := c.Parts.Component(figure.FrameworkOverhead); f.Words != "" {
			out = append(out, c.Label+": "+f.Words+".")
		}
	}
	return out
}

// hardwareWords say what the figures cover.
const hardwareWords = "Medians over counted launches. Peaks and temperature cover the whole launch; load, power and energy cover the measure phase. " +
	"Energy is that of the whole device, including other programs and idle power. Figures of several GPUs are sums."

// hardwareColumn is a column with the figures that can stand in it; a device has at most one of them.
type hardwareColumn struct {
	head     string
	terminal bool // the terminal has it
	names    []string
}

func hardwareColumns() []hardwareColumn {
	type names = []string
	return []hardwareColumn{
		{"memory, peak (MiB)", true, names{hardware.GPUPeak, hardware.GPUSum, hardware.GPUHeld}},
		{"free at start (MiB)", true, names{hardware.GPUFree}},
		{"before the load (MiB)", false, names{hardware.AtBaseline.Name(hardware.GPUSum)}},
		{"after the warm-up (MiB)", false, names{hardware.AtPostWarmup.Name(hardware.GPUSum)}},
		{"most on one GPU (MiB)", false, names{hardware.GPUHighest}},
		{"memory, mean (MiB)", false, names{hardware.GPUMean}},
		{"memory, deviation (MiB)", false, names{hardware.GPUDeviation}},
		{"load (%)", true, names{hardware.GPUBusy}},
		{"load, highest (%)", false, names{hardware.GPUBusyMax}},
		{"load, deviation (%)", false, names{hardware.GPUBusyDev}},
		{"power (W)", true, names{hardware.GPUPower}},
		{"power, highest (W)", false, names{hardware.GPUPowerMax}},
		{"power, deviation (W)", false, names{hardware.GPUPowerDev}},
		{"highest (°C)", true, names{hardware.GPUHeat}},
		{"energy (J)", true, names{hardware.Energy}},
		{"energy per token (J)", true, names{hardware.EnergyPerToken}},
	}
}

// figure is the device's figure for the column.
func (col hardwareColumn) figure(h hardware.Hardware) evidence.Figure {
	for _, name := range col.names {
		if f := h.Figure(name); f.Known() {
			return f
		}
	}
	return evidence.Figure{}
}

// hardwareSections have one row per device and role. The terminal has fewer columns.
func hardwareSections(res *compare.Result) []Section {
	const id, title = "hardware", "GPUs and energy"
	all := hardwareColumns()
	short := slices.DeleteFunc(slices.Clone(all), func(c hardwareColumn) bool { return !c.terminal })
	words := []string{hardwareWords}
	full := hardwareGrid(res, []string{"cell", "device", "name", "read by"}, all, func(h hardware.Hardware) []string {
		return []string{plain.Line(h.Role), hardwareIs(h), plain.Line(h.Method)}
	})
	return []Section{{ID: id, Title: title, For: InTerminal, Words: words,
		Grid: hardwareGrid(res, []string{"cell", "device"}, short, func(h hardware.Hardware) []string {
			if h.Kind == hardware.OfProcess {
				return []string{plain.Line(h.Role) + " (" + plain.Line(h.Method) + ")"}
			}
			return []string{plain.Line(h.Role)}
		})},
		{ID: id, Title: title, For: OnPage, Grid: full, Words: words, Parts: []Section{
			explained(res, func(c *compare.Cell) []evidence.Figure {
				var out []evidence.Figure
				for _, h := range c.Hardware {
					out = append(out, h.Figures...)
				}
				return out
			})}}}
}

// hardwareGrid leaves out columns that no device has. name gives the first fields of a row.
func hardwareGrid(res *compare.Result, head []string, columns []hardwareColumn,
	name func(hardware.Hardware) []string) *plain.Grid {
	columns = slices.DeleteFunc(slices.Clone(columns), func(col hardwareColumn) bool {
		return !slices.ContainsFunc(res.Cells, func(c *compare.Cell) bool {
			return slices.ContainsFunc(c.Hardware, func(h hardware.Hardware) bool { return col.figure(h).Known() })
		})
	})
	if len(columns) == 0 {
		return nil
	}
	for _, col := range columns {
		head = append(head, col.head)
	}
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, h := range c.Hardware {
			row := name(h)
			for _, col := range columns {
				row = append(row, plain.Size(col.figure(h), c.Launches))
			}
			add(row...)
		}
	})
}

func hardwareIs(h hardware.Hardware) string {
	switch {
	case h.Name != "":
		return plain.Line(h.Name)
	case h.Kind == hardware.OfProcess && h.Role == "processes":
		return "all processes"
	case h.Kind == hardware.OfProcess:
		return "processes"
	}
	return "–"
}
