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
	head  string
	names []string
}

// hardwareColumns are those of the terminal.
func hardwareColumns() []hardwareColumn {
	return []hardwareColumn{
		{"memory\npeak MiB", []string{hardware.GPUPeak, hardware.GPUSum, hardware.GPUHeld}},
		{"free at\nstart MiB", []string{hardware.GPUFree}},
		{"load\n%", []string{hardware.GPUBusy}}, {"power\nW", []string{hardware.GPUPower}},
		{"highest\n°C", []string{hardware.GPUHeat}}, {"energy\nJ", []string{hardware.Energy}},
		{"energy\nJ/token", []string{hardware.EnergyPerToken}},
	}
}

func pageColumns() []hardwareColumn {
	return []hardwareColumn{
		{"memory, peak (MiB)", []string{hardware.GPUPeak, hardware.GPUSum, hardware.GPUHeld}},
		{"free at start (MiB)", []string{hardware.GPUFree}}, {"most on one GPU (MiB)", []string{hardware.GPUHighest}},
		{"memory, mean (MiB)", []string{hardware.GPUMean}}, {"memory, deviation (MiB)",
			[]string{hardware.GPUDeviation}},
		{"load (%)", []string{hardware.GPUBusy}}, {"load, highest (%)", []string{hardware.GPUBusyMax}},
		{"load, deviation (%)", []string{hardware.GPUBusyDev}}, {"power (W)", []string{hardware.GPUPower}},
		{"power, highest (W)", []string{hardware.GPUPowerMax}}, {"power, deviation (W)",
			[]string{hardware.GPUPowerDev}},
		{"temperature, highest (°C)", []string{hardware.GPUHeat}}, {"energy (J)", []string{hardware.Energy}},
		{"energy per token (J)", []string{hardware.EnergyPerToken}},
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

// hardwareSections have one row per device and role. Where several devices have a sum the terminal leaves single ones
// to the page.
func hardwareSections(res *compare.Result) []section {
	const id, title = "hardware", "GPUs and energy"
	words, how := []string{hardwareWords}, &grid{Head: []string{"figure", "from", "what it is",
		"what the method cannot see"}}
	short := hardwareGrid(res, []string{"cell", "device"}, hardwareColumns(), func(c *compare.Cell,
		h hardware.Hardware) []string {
		has := func(kind hardware.HardwareKind) bool {
			return slices.ContainsFunc(c.Hardware, func(h hardware.Hardware) bool { return h.Kind == kind })
		}
		switch {
		case h.Kind == hardware.OfGPU && has(hardware.OfGPUs), h.Kind == hardware.OfProcessor &&
			has(hardware.OfProcessors):
			return nil
		case h.Kind == hardware.OfProcess:
			return []string{line(h.Role) + " (" + line(h.Method) + ")"}
		}
		return []string{line(h.Role)}
	})
	full := hardwareGrid(res, []string{"cell", "device", "name", "read by"}, pageColumns(),
		func(_ *compare.Cell, h hardware.Hardware) []string {
			for _, f := range h.Figures {
				words := f.How
				if !f.Known() {
					words += "; missing: " + f.Absent
				}
				how.once(line(f.Title), orDash(f.From()), line(words), line(f.Blind))
			}
			return []string{line(h.Role), hardwareIs(h), line(h.Method)}
		})
	if full == nil {
		return nil
	}
	return []section{{ID: id, Title: title, For: inTerminal, Grid: short, Words: words},
		{ID: id, Title: title, For: onPage, Grid: full, Words: words, Parts: []section{
			{Title: "What each figure is, and what its method cannot see", Folded: true, Grid: how}}}}
}

// hardwareGrid leaves out empty columns. name gives the first fields of a row, nil for no row.
func hardwareGrid(res *compare.Result, head []string, columns []hardwareColumn,
	name func(*compare.Cell, hardware.Hardware) []string) *grid {
	named := len(head)
	for _, col := range columns {
		head = append(head, col.head)
	}
	known := map[int]bool{}
	t := perCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, h := range c.Hardware {
			row := name(c, h)
			if row == nil {
				continue
			}
			for i, col := range columns {
				f := col.figure(h)
				known[named+i] = known[named+i] || f.Known()
				row = append(row, held(f, c.Launches))
			}
			add(row...)
		}
	})
	if t == nil || len(known) == 0 {
		return nil
	}
	return t.without(func(column int) bool { return column >= named && !known[column] })
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
