package reports

import (
	"slices"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/hardware"
)

// hardwareWords say what the figures cover.
const hardwareWords = "Medians over counted launches. Peaks and temperature cover the whole launch; load, power and energy cover the measure phase. " +
	"Energy is that of the whole device, including other programs and idle power. Several GPUs are summed."

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
func hardwareSections(res *compare.Result) []section {
	const id, title = "hardware", "GPUs and energy"
	all := hardwareColumns()
	short := slices.DeleteFunc(slices.Clone(all), func(c hardwareColumn) bool { return !c.terminal })
	words := []string{hardwareWords}
	full := hardwareGrid(res, []string{"cell", "device", "name", "read by"}, all, func(h hardware.Hardware) []string {
		return []string{line(h.Role), hardwareIs(h), line(h.Method)}
	})
	return []section{{ID: id, Title: title, For: inTerminal, Words: words,
		Grid: hardwareGrid(res, []string{"cell", "device"}, short, func(h hardware.Hardware) []string {
			if h.Kind == hardware.OfProcess {
				return []string{line(h.Role) + " (" + line(h.Method) + ")"}
			}
			return []string{line(h.Role)}
		})},
		{ID: id, Title: title, For: onPage, Grid: full, Words: words, Parts: []section{
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
	name func(hardware.Hardware) []string) *grid {
	columns = slices.DeleteFunc(slices.Clone(columns), func(col hardwareColumn) bool {
		return !slices.ContainsFunc(res.Cells, func(c compare.Cell) bool {
			return slices.ContainsFunc(c.Hardware, func(h hardware.Hardware) bool { return col.figure(h).Known() })
		})
	})
	if len(columns) == 0 {
		return nil
	}
	for _, col := range columns {
		head = append(head, col.head)
	}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, h := range c.Hardware {
			row := name(h)
			for _, col := range columns {
				row = append(row, held(col.figure(h), c.Launches))
			}
			add(row...)
		}
	})
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
