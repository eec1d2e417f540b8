// Package hardware tells what was read of GPUs, of processors' energy, and of what processes hold of GPUs' memory, a
// figure a launch.
//
// It can't tell who used a GPU or its energy: whatever else ran meanwhile is in it. What a driver does not list by
// process is not in what processes hold.
package hardware

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// Hardware is what was read of a GPU or a part of one, of several together, of processors, or of what processes hold of
// GPUs' memory. What nobody told in any launch has no figure.
type Hardware struct {
	Kind    HardwareKind      `json:"kind"`
	Role    string            `json:"role"`           // gpu0, gpu0.mig1, gpus, cpu0, cpus, server, processes
	Name    string            `json:"name,omitempty"` // of a device; of several, which they are
	Method  string            `json:"method"`
	Figures []evidence.Figure `json:"figures"`
}

// HardwareKind is what the figures are of.
type HardwareKind string

// The kinds, in the order in which they are shown.
const (
	OfGPU        HardwareKind = "gpu"
	OfGPUs       HardwareKind = "gpus" // several together
	OfProcess    HardwareKind = "process"
	OfProcessor  HardwareKind = "processor"
	OfProcessors HardwareKind = "processors"
)

// Names of the figures of Hardware.
const (
	GPUFree        = "memory_free_at_begin"
	GPUPeak        = "memory_used_peak"
	GPUMean        = "memory_used_mean"
	GPUDeviation   = "memory_used_stddev"
	GPUHighest     = "memory_used_max"
	GPUSum         = "memory_used_sum"
	GPUBusy        = "utilization_mean"
	GPUBusyMax     = "utilization_max"
	GPUBusyDev     = "utilization_stddev"
	GPUPower       = "power_mean"
	GPUPowerMax    = "power_max"
	GPUPowerDev    = "power_stddev"
	GPUHeat        = "temperature_max"
	Energy         = "energy"
	EnergyPerToken = "energy_per_token"
	GPUHeld        = "gpu_memory_peak"        // by processes
	GPUSystemHeld  = "gpu_system_memory_peak" // memory of the machine
)

// The names of values that this reads.
const (
	usedBytes   = "memory_used_bytes"
	freeBytes   = "memory_free_bytes"
	busyPercent = "utilization_gpu_percent"
	watts       = "power_watts"
	celsius     = "temperature_celsius"
	joules      = "energy_joules"
	HeldBytes   = "gpu_memory_bytes"
	systemBytes = "gpu_system_memory_bytes"
	partOf      = "." // in a role: gpu0.mig1

	heldOfDevice = partOf + HeldBytes // behind a role
)

// Figure finds one; an empty one that says so where there is none.
func (h Hardware) Figure(name string) evidence.Figure { return evidence.Held(h.Figures, name) }

// Read is what was read of GPUs and energy over the launches; nil where nothing was.
func Read(attempts []*record.Attempt, gpus []record.GPUInfo) []Hardware {
	var logs []*hardwareLog
	for _, a := range attempts {
		logs = append(logs, newHardwareLog(a))
	}
	var out []Hardware
	devices := hardwareSources(attempts, func(s record.Source) bool { return s.PID == 0 && s.Method != raplMethod })
	devices = slices.DeleteFunc(devices, func(s record.Source) bool { return !isGPU(logs, s) })
	for _, d := range devices {
		out = append(out, deviceHardware(logs, d, gpuName(gpus, d.Role)))
	}
	out = append(out, fleets(logs, devices)...)
	out = append(out, processHardware(logs, attempts)...)
	zones := hardwareSources(attempts, func(s record.Source) bool { return s.Method == raplMethod })
	for _, z := range zones {
		h := Hardware{Kind: OfProcessor, Role: z.Role, Method: z.Method}
		h.spread(logs, z, watts, []string{GPUPower, GPUPowerMax, GPUPowerDev}, "power", "W", 1)
		h.energy(logs, []record.Source{z})
		out = append(out, h)
	}
	if len(zones) > 1 {
		out = append(out, combined(OfProcessors, "cpus", zones, logs))
	}
	out = slices.DeleteFunc(out, func(h Hardware) bool { return len(h.Figures) == 0 })
	for i := range out {
		out[i].Figures = evidence.Summarised(out[i].Figures)
	}
	return out
}

// raplMethod is that of the energy that processors tell.
const raplMethod = "rapl"

func gpuName(gpus []record.GPUInfo, role string) string {
	for _, g := range gpus {
		if g.Role == role {
			return g.Name
		}
	}
	return ""
}

// hardwareSources are the sources that are wanted, one a role and method, in the order in which they were attached.
func hardwareSources(attempts []*record.Attempt, wanted func(record.Source) bool) []record.Source {
	var out []record.Source
	for _, a := range attempts {
		ids := make([]int, 0, len(a.Sources))
		for id, s := range a.Sources {
			if wanted(s) && s.Role != "gpus" { // sums over GPUs, as older records have them
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for _, id := range ids {
			s := a.Sources[id]
			if !slices.ContainsFunc(out,
				func(have record.Source) bool { return have.Role == s.Role && have.Method == s.Method }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// isGPU tells whether a source is a GPU: pages and servers tell other things.
func isGPU(logs []*hardwareLog, s record.Source) bool {
	for _, l := range logs {
		for _, name := range []string{usedBytes, busyPercent, watts, celsius, joules} {
			if len(l.of(s, name)) > 0 {
				return true
			}
		}
	}
	return false
}

// deviceHardware are the figures of one GPU.
func deviceHardware(logs []*hardwareLog, d record.Source, name string) Hardware {
	h := Hardware{Kind: OfGPU, Role: d.Role, Name: name, Method: d.Method}
	h.each(logs, d, freeBytes, evidence.Figure{Name: GPUFree, Title: "free memory at the start", Unit: "MiB",
		How: "the first reading of the launch, before the load"}, func(l *hardwareLog) float64 {
		return evidence.Mebi(first(l.launch().of(d, freeBytes)))
	})
	h.each(logs, d, usedBytes, evidence.Figure{Name: GPUPeak, Title: "memory used, peak", Unit: "MiB",
		How: "the highest reading of the repetition, of all programs"}, func(l *hardwareLog) float64 {
		return evidence.Mebi(highest(l.of(d, usedBytes)))
	})
	h.spread(logs, d, usedBytes, []string{GPUMean, "", GPUDeviation}, "memory used", "MiB", 1/float64(record.MiB))
	h.spread(logs, d, busyPercent, []string{GPUBusy, GPUBusyMax, GPUBusyDev}, "utilization", "%", 1)
	h.spread(logs, d, watts, []string{GPUPower, GPUPowerMax, GPUPowerDev}, "power", "W", 1)
	h.each(logs, d, celsius, evidence.Figure{Name: GPUHeat, Title: "temperature, highest", Unit: "°C",
		How: "the highest reading of the repetition"},
		func(l *hardwareLog) float64 { return highest(l.of(d, celsius)) })
	h.energy(logs, []record.Source{d})
	return h
}

// each adds a figure with a value a launch, where the source has ever told what it is made of.
func (h *Hardware) each(
	logs []*hardwareLog,
	s record.Source,
	value string,
	f evidence.Figure,
	of func(*hardwareLog) float64,
) {
	if !slices.ContainsFunc(logs, func(l *hardwareLog) bool { return len(l.of(s, value)) > 0 }) {
		return
	}
	f.Method, f.Blind, f.Absent = s.Method, s.Blind, cmp.Or(f.Absent, "not read")
	for _, l := range logs {
		f.Add(l.attempt.ID, of(l))
	}
	h.Figures = append(h.Figures, f)
}

// spread adds mean, highest and standard deviation of the readings of the measure phase, each under its name; an empty
// one is left out.
func (h *Hardware) spread(logs []*hardwareLog, s record.Source, value string, names []string, title, unit string,
	scale float64) {
	const within = " over the readings of the measure phase"
	for i, f := range []evidence.Figure{
		{Title: title + ", mean", How: "the mean" + within},
		{Title: title + ", highest", How: "the highest reading of the measure phase"},
		{Title: title + ", deviation", How: "the standard deviation" + within + " (divided by n)"},
	} {
		if names[i] == "" {
			continue
		}
		f.Name, f.Unit, f.Absent = names[i], unit, "not read during the measure phase"
		h.each(logs, s, value, f, func(l *hardwareLog) float64 {
			mean, most, deviation := stats.Moments(l.within(s, value))
			return []float64{mean, most, deviation}[i] * scale
		})
	}
}

// energy adds what the sources together took over the measure phase, and that by token.
func (h *Hardware) energy(logs []*hardwareLog, sources []record.Source) {
	if !slices.ContainsFunc(logs, func(l *hardwareLog) bool {
		return slices.ContainsFunc(sources,
			func(s record.Source) bool { return len(l.of(s, joules))+len(l.of(s, watts)) > 0 })
	}) {
		return
	}
	f := evidence.Figure{Name: Energy, Title: "energy", Unit: "J", Method: sources[0].Method,
		Blind:  "which program used it: other programs and idle hardware are included",
		Absent: "not read during the whole measure phase"}
	by := evidence.Figure{
		Name:   EnergyPerToken,
		Title:  "energy per token",
		Unit:   "J/token",
		Method: f.Method,
		Blind:  f.Blind,
		Absent: "no energy or no tokens",
	}
	var ways []string
	for _, l := range logs {
		sum := 0.0
		for _, s := range sources {
			v, way := l.energy(s)
			ways = explain.AppendNew(ways, way)
			sum += v
		}
		f.Add(l.attempt.ID, sum)
		if n := l.tokens(); n > 0 {
			by.Add(l.attempt.ID, sum/float64(n))
		}
	}
	ways = slices.DeleteFunc(ways, func(w string) bool { return w == "" })
	slices.Sort(ways)
	f.How = "of the measure phase: " + cmp.Or(strings.Join(ways, "; for other devices or launches: "), "not known")
	by.How = "the energy of the measure phase, including prefill and pauses, / the tokens generated in it; " + f.How
	h.Figures = append(h.Figures, f, by)
}

// byMethod groups sources by what reads them, in the order in which methods come first.
func byMethod(sources []record.Source) [][]record.Source {
	var out [][]record.Source
	for _, s := range sources {
		i := slices.IndexFunc(out, func(of []record.Source) bool { return of[0].Method == s.Method })
		if i < 0 {
			i = len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// fleets are the GPUs of a method together, where there are several. The parts of a divided one count in its place, but
// for energy and power, which are the whole one's.
func fleets(logs []*hardwareLog, devices []record.Source) []Hardware {
	var out []Hardware
	for _, of := range byMethod(devices) {
		if len(of) < 2 {
			continue
		}
		h := combined(OfGPUs, "gpus", wholes(of), logs)
		h.memory(logs, leaves(of))
		out = append(out, h)
	}
	return out
}

// combined has what several take of power and energy.
func combined(kind HardwareKind, role string, of []record.Source, logs []*hardwareLog) Hardware {
	h := Hardware{Kind: kind, Role: role, Name: roleNames(of), Method: of[0].Method}
	if len(of) > 1 && (allTell(logs, of, watts) || allTell(logs, of, joules)) {
		f := evidence.Figure{Name: GPUPower, Title: "power, mean", Unit: "W", Method: h.Method, Blind: of[0].Blind,
			How:    "the sum of the means of all GPUs over the measure phase",
			Absent: "not read during the measure phase"}
		for _, l := range logs {
			sum := 0.0
			for _, s := range of {
				mean, _, _ := stats.Moments(l.within(s, watts))
				sum += mean
			}
			f.Add(l.attempt.ID, sum)
		}
		if allTell(logs, of, watts) {
			h.Figures = append(h.Figures, f)
		}
		h.energy(logs, of)
	}
	return h
}

// allTell: a sum over some is of something else.
func allTell(logs []*hardwareLog, of []record.Source, value string) bool {
	for _, s := range of {
		if !slices.ContainsFunc(logs, func(l *hardwareLog) bool { return len(l.of(s, value)) > 0 }) {
			return false
		}
	}
	return true
}

func roleNames(of []record.Source) string {
	var names []string
	for _, s := range of {
		names = append(names, s.Role)
	}
	return strings.Join(names, ", ")
}

func isPart(s record.Source) bool { return strings.Contains(s.Role, partOf) }

func wholes(of []record.Source) []record.Source { return slices.DeleteFunc(slices.Clone(of), isPart) }

// leaves leave out what is divided.
func leaves(of []record.Source) []record.Source {
	return slices.DeleteFunc(slices.Clone(of), func(d record.Source) bool {
		return slices.ContainsFunc(of, func(
			part record.Source) bool {
			return strings.HasPrefix(part.Role, d.Role+partOf)
		})
	})
}

// memory adds sum, highest, mean and deviation over the devices, at the moment at which all together held most.
func (h *Hardware) memory(logs []*hardwareLog, of []record.Source) {
	of = slices.DeleteFunc(of, func(s record.Source) bool { return !allTell(logs, []record.Source{s}, usedBytes) })
	if len(of) < 2 {
		return
	}
	h.Name = roleNames(of)
	at := "at the time of the highest sum, over " + h.Name
	figures := []evidence.Figure{
		{Name: GPUSum, Title: "memory used, sum", How: "the sum " + at},
		{Name: GPUHighest, Title: "memory used, highest of one", How: "that of the GPU with the most, " + at},
		{Name: GPUMean, Title: "memory used, mean of all", How: "the mean " + at},
		{Name: GPUDeviation, Title: "memory used, deviation", How: "the standard deviation " + at +
			" (divided by n)"},
	}
	for i := range figures {
		figures[i].Unit, figures[i].Method, figures[i].Blind = "MiB", h.Method, of[0].Blind
		figures[i].Absent = "never read of all GPUs in one pass"
	}
	for _, l := range logs {
		var most []float64
		for _, pass := range l.passes(of, usedBytes) {
			if len(pass) == len(of) && (most == nil || stats.Sum(pass) > stats.Sum(most)) {
				most = pass
			}
		}
		mean, highest, deviation := stats.Moments(most)
		for i, v := range []float64{mean * float64(len(most)), highest, mean, deviation} {
			figures[i].Add(l.attempt.ID, evidence.Mebi(v))
		}
	}
	h.Figures = append(figures, h.Figures...)
}

// processHardware is what an engine's processes hold of GPUs, by role, and all of them together where there are several
// roles.
func processHardware(logs []*hardwareLog, attempts []*record.Attempt) []Hardware {
	all := hardwareSources(attempts, func(s record.Source) bool { return s.PID != 0 })
	var out []Hardware
	for _, of := range byMethod(all) {
		m := of[0].Method
		var found []Hardware
		for _, s := range of {
			h := Hardware{Kind: OfProcess, Role: s.Role, Method: m}
			h.held(logs, []record.Source{s})
			if len(h.Figures) > 0 {
				found = append(found, h)
			}
		}
		if len(found) > 1 {
			h := Hardware{Kind: OfProcess, Role: "processes", Method: m}
			h.held(logs, of)
			found = append(found, h)
		}
		out = append(out, found...)
	}
	return out
}

// held adds the highest sum over the processes of some roles, by device too where there are several.
func (h *Hardware) held(logs []*hardwareLog, of []record.Source) {
	names := []string{HeldBytes, systemBytes}
	var devices []string
	for _, l := range logs {
		for _, s := range of {
			for _, name := range l.names(s) {
				if strings.HasSuffix(name, heldOfDevice) {
					devices = explain.AppendNew(devices, name)
				}
			}
		}
	}
	if slices.Sort(devices); len(devices) > 1 || !anyTells(logs, of, HeldBytes) {
		names = append(names, devices...)
	}
	for _, name := range names {
		if !anyTells(logs, of, name) {
			continue
		}
		f := evidence.Figure{
			Name:   GPUHeld,
			Title:  "GPU memory, peak",
			Unit:   "MiB",
			Method: h.Method,
			Blind:  of[0].Blind,
			Absent: "not reported by a driver",
			How:    "the highest sum over processes in one pass",
		}
		if role, ok := strings.CutSuffix(name, heldOfDevice); ok {
			f.Name, f.Title = role+partOf+GPUHeld, f.Title+", of "+role
		} else if name == systemBytes {
			f.Name, f.Title = GPUSystemHeld, "host memory held by the GPU driver, peak"
		}
		for _, l := range logs {
			peak := math.NaN()
			for _, pass := range l.passes(of, name) {
				peak = evidence.MaxKnown(peak, stats.Sum(pass))
			}
			f.Add(l.attempt.ID, evidence.Mebi(peak))
		}
		h.Figures = append(h.Figures, f)
	}
}

func anyTells(logs []*hardwareLog, of []record.Source, value string) bool {
	return slices.ContainsFunc(of, func(s record.Source) bool { return allTell(logs, []record.Source{s}, value) })
}
