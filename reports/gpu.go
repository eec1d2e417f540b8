package reports

import (
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/hardware"
)

// hardwareWords say once what the figures are of.
const hardwareWords = "Medians over counted launches. Peaks and temperature of the whole repetition, whoever held or heated it; load, power and energy " +
	"of the measure phase. Energy is the whole device's: what else ran, and what it takes when idle, is in it. Of several GPUs together: the sum."

// hardwarePart is what was read of GPUs and energy; without a grid: nothing.
type hardwarePart struct {
	Words   string
	Figures *grid
	How     *grid
}

// hardwareColumn is a column with the figures that may stand in it: a piece of hardware has one of them at most.
type hardwareColumn struct {
	head  [2]string // two lines in the terminal
	names []string
}

// hardwareColumns of the terminal; the page has more.
func hardwareColumns() []hardwareColumn {
	return []hardwareColumn{
		{[2]string{"memory", "peak MiB"}, []string{hardware.GPUPeak, hardware.GPUSum, hardware.GPUHeld}},
		{[2]string{"free at", "begin MiB"}, []string{hardware.GPUFree}},
		{[2]string{"load", "%"}, []string{hardware.GPUBusy}}, {[2]string{"power", "W"}, []string{hardware.GPUPower}},
		{[2]string{"highest", "°C"}, []string{hardware.GPUHeat}}, {[2]string{"energy", "J"}, []string{hardware.Energy}},
		{[2]string{"energy", "J/token"}, []string{hardware.EnergyPerToken}},
	}
}

func pageColumns() []hardwareColumn {
	of := func(title string, names ...string) hardwareColumn { return hardwareColumn{[2]string{title, ""}, names} }
	return []hardwareColumn{
		of("memory, peak (MiB)", hardware.GPUPeak, hardware.GPUSum, hardware.GPUHeld),
		of("free at begin (MiB)", hardware.GPUFree),
		of("most of one (MiB)", hardware.GPUHighest), of("memory, mean (MiB)", hardware.GPUMean),
		of("memory, deviation (MiB)", hardware.GPUDeviation),
		of("load (%)", hardware.GPUBusy), of("load, highest (%)", hardware.GPUBusyMax),
		of("load, deviation (%)", hardware.GPUBusyDev),
		of("power (W)", hardware.GPUPower), of("power, highest (W)", hardware.GPUPowerMax),
		of("power, deviation (W)", hardware.GPUPowerDev),
		of("temperature, highest (°C)", hardware.GPUHeat), of("energy (J)", hardware.Energy),
		of("energy per token (J)", hardware.EnergyPerToken),
	}
}

// figure is the one that belongs in a column.
func (col hardwareColumn) figure(h hardware.Hardware) evidence.Figure {
	for _, name := range col.names {
		if f := h.Figure(name); f.Known() {
			return f
		}
	}
	return evidence.Figure{}
}

// shown leaves out columns that nobody has anything in.
func shown(columns []hardwareColumn, of []hardware.Hardware) []hardwareColumn {
	return slices.DeleteFunc(columns, func(col hardwareColumn) bool {
		return !slices.ContainsFunc(of, func(h hardware.Hardware) bool { return col.figure(h).Known() })
	})
}

// hardware is a row a piece of hardware and role; where several are told of together, single ones are left to the page.
func (t *table) hardware() {
	short := func(c *compare.Cell) []hardware.Hardware {
		has := func(kind hardware.HardwareKind) bool {
			return slices.ContainsFunc(c.Hardware, func(h hardware.Hardware) bool { return h.Kind == kind })
		}
		return slices.DeleteFunc(slices.Clone(c.Hardware), func(h hardware.Hardware) bool {
			return h.Kind == hardware.OfGPU && has(hardware.OfGPUs) || h.Kind == hardware.OfProcessor &&
				has(hardware.OfProcessors)
		})
	}
	var all []hardware.Hardware
	for i := range t.res.Cells {
		all = append(all, short(&t.res.Cells[i])...)
	}
	columns := shown(hardwareColumns(), all)
	if len(columns) == 0 {
		return
	}
	rows, cells := [][]string{{"", ""}, {"cell", "of"}}, []int{}
	for _, col := range columns {
		rows[0], rows[1] = append(rows[0], col.head[0]), append(rows[1], col.head[1])
	}
	for i := range t.res.Cells {
		c := &t.res.Cells[i]
		for _, h := range short(c) {
			rows, cells = append(rows, append([]string{line(c.Label), hardwareName(h)},
				hardwareRow(columns, h, c.Launches, "-")...)), append(cells, i)
		}
	}
	t.b.WriteString("\nGPUs and energy\n")
	t.print(rows, cells)
	t.b.WriteString(wrap(hardwareWords, "", "", width))
}

func hardwareRow(columns []hardwareColumn, h hardware.Hardware, l compare.Launches, absent string) []string {
	var row []string
	for _, col := range columns {
		value := absent
		if f := col.figure(h); f.Known() {
			value = held(f, l)
		}
		row = append(row, value)
	}
	return row
}

func hardwareName(h hardware.Hardware) string {
	if h.Kind == hardware.OfProcess {
		return line(h.Role) + " (" + line(h.Method) + ")"
	}
	return line(h.Role)
}

// newHardwarePart has every figure, and how each was obtained.
func newHardwarePart(res *compare.Result) hardwarePart {
	var all []hardware.Hardware
	for i := range res.Cells {
		all = append(all, res.Cells[i].Hardware...)
	}
	if len(all) == 0 {
		return hardwarePart{}
	}
	columns := shown(pageColumns(), all)
	part := hardwarePart{Words: hardwareWords, Figures: &grid{Head: []string{"cell", "of", "which is", "read by"}},
		How: &grid{Head: []string{"figure", "from", "what it is", "what it can't see"}}}
	for _, col := range columns {
		part.Figures.Head = append(part.Figures.Head, col.head[0])
	}
	for i := range res.Cells {
		c := &res.Cells[i]
		for _, h := range c.Hardware {
			row := []string{line(c.Label), line(h.Role), hardwareIs(h), line(h.Method)}
			part.Figures.Rows = append(part.Figures.Rows, append(row, hardwareRow(columns, h, c.Launches, "–")...))
			part.explain(h)
		}
	}
	return part
}

func hardwareIs(h hardware.Hardware) string {
	switch {
	case h.Name != "":
		return line(h.Name)
	case h.Kind == hardware.OfProcess && h.Role == "processes":
		return "all processes"
	case h.Kind == hardware.OfProcess:
		return "processes"
	}
	return "–"
}

// explain says once how figures of a title were obtained, and of one that is missing why.
func (p *hardwarePart) explain(h hardware.Hardware) {
	for _, f := range h.Figures {
		title := f.Title
		how := f.How
		if !f.Known() {
			how += "; absent: " + f.Absent
		}
		row := []string{line(title), orDash(f.From()), line(how), line(f.Blind)}
		if !slices.ContainsFunc(p.How.Rows,
			func(have []string) bool { return strings.Join(have, "\n") == strings.Join(row, "\n") }) {
			p.How.Rows = append(p.How.Rows, row)
		}
	}
}
