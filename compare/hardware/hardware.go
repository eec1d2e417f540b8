// Package hardware computes figures, one value a launch, from readings of GPUs, of the energy of processors, and of the
// GPU memory of processes.
//
// It cannot tell who used a GPU or its energy: other programs are included. Memory that a driver does not list by
// process is not in the memory of processes.
package hardware

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/vec"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Hardware has the readings of a GPU or a part of one, of several GPUs together, of processors, or of the GPU memory of
// processes. A value that no launch has read has no figure.
type Hardware struct {
	Kind    HardwareKind      `json:"kind"`
	Role    string            `json:"role"`           // gpu0, gpu0.mig1, gpus, cpu0, cpus, server, processes
	Name    string            `json:"name,omitempty"` // of a device; of several, which they are
	Method  string            `json:"method"`
	Figures []evidence.Figure `json:"figures"`
}

// HardwareKind is what Hardware is about.
type HardwareKind string

// The kinds, in the order of reports.
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

// The names of values that are read.
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

// Point is a time at which the memory of devices is known.
type Point struct {
	phase  record.Phase // whose last reading counts; empty: the highest counts
	suffix string       // of names
	title  string       // behind titles
	words  string
}

// The three points of a launch.
var (
	AtBaseline   = Point{record.Baseline, "_at_baseline", ", before the load", "at the last reading before the load"}
	AtPostWarmup = Point{record.Warmup, "_post_warmup", ", after the warm-up",
		"at the last reading before the measured requests"}
	AtPeak = Point{"", "", "", "at the time of the highest sum"}
)

// Name is the name of a figure of used memory at the point.
func (p Point) Name(figure string) string { return figure + p.suffix }

// Figure finds a figure; an absent one if there is none.
func (h Hardware) Figure(name string) evidence.Figure { return evidence.Find(h.Figures, name) }

// raplMethod is the method of the energy that processors report.
const raplMethod = "rapl"

// Read has the readings of GPUs and energy over the launches; nil if there are none.
func Read(attempts []*record.Attempt, gpus []record.GPUInfo) []Hardware {
	var logs []*hardwareLog
	for _, a := range attempts {
		logs = append(logs, newHardwareLog(a))
	}
	var out []Hardware
	add := func(kind HardwareKind, role, name string, fill func(*builder), of ...record.Source) {
		b := builder{Hardware: Hardware{Kind: kind, Role: role, Name: name, Method: of[0].Method}, logs: logs, of: of}
		if fill(&b); len(b.Figures) > 0 {
			evidence.Summarised(b.Figures)
			out = append(out, b.Hardware)
		}
	}
	devices := sources(attempts, func(s record.Source) bool { return s.PID == 0 && s.Method != raplMethod })
	devices = slices.DeleteFunc(devices, func(s record.Source) bool { return !isGPU(logs, s) })
	for _, d := range devices {
		name := ""
		if at := slices.IndexFunc(gpus, func(g record.GPUInfo) bool { return g.Role == d.Role }); at >= 0 {
			name = gpus[at].Name
		}
		add(OfGPU, d.Role, name, (*builder).device, d)
	}
	for _, of := range byMethod(devices) {
		if len(of) > 1 {
			add(OfGPUs, "gpus", roleNames(wholes(of)), (*builder).fleet, of...)
		}
	}
	for _, of := range byMethod(sources(attempts, func(s record.Source) bool { return s.PID != 0 })) {
		before := len(out)
		for _, s := range of {
			add(OfProcess, s.Role, "", (*builder).held, s)
		}
		if len(out) > before+1 {
			add(OfProcess, "processes", "", (*builder).held, of...)
		}
	}
	zones := sources(attempts, func(s record.Source) bool { return s.Method == raplMethod })
	for _, z := range zones {
		add(OfProcessor, z.Role, "", func(b *builder) { b.spread(watts, power); b.energy() }, z)
	}
	if len(zones) > 1 {
		add(OfProcessors, "cpus", roleNames(zones), (*builder).combined, zones...)
	}
	return out
}

// sources are the matching sources, one for each role and method, in the order in which they were attached.
func sources(attempts []*record.Attempt, wanted func(record.Source) bool) []record.Source {
	var out []record.Source
	for _, a := range attempts {
		for _, id := range slices.Sorted(maps.Keys(a.Sources)) {
			s := a.Sources[id]
			same := func(o record.Source) bool { return o.Role == s.Role && o.Method == s.Method }
			if wanted(s) && !slices.ContainsFunc(out, same) {
				out = append(out, s)
			}
		}
	}
	return out
}

// isGPU reports whether a source is a GPU. Pages and servers have other values.
func isGPU(logs []*hardwareLog, s record.Source) bool {
	return slices.ContainsFunc([]string{usedBytes, busyPercent, watts, celsius, joules},
		func(value string) bool { return hasValue(logs, s, value) })
}

// hasValue reports whether a source has a value in any launch.
func hasValue(logs []*hardwareLog, s record.Source, value string) bool {
	return slices.ContainsFunc(logs, func(l *hardwareLog) bool { return len(l.of(s, value)) > 0 })
}

// byMethod groups sources by method, in the order in which methods first appear.
func byMethod(sources []record.Source) iter.Seq2[string, []record.Source] {
	var by evidence.Groups[string, record.Source]
	for _, s := range sources {
		by.Add(s.Method, s)
	}
	return by.All()
}

func roleNames(of []record.Source) string {
	var names []string
	for _, s := range of {
		names = append(names, s.Role)
	}
	return strings.Join(names, ", ")
}

// wholes leaves out the parts of divided GPUs.
func wholes(of []record.Source) []record.Source {
	return slices.DeleteFunc(slices.Clone(of), func(s record.Source) bool { return strings.Contains(s.Role, partOf) })
}

// leaves leaves out GPUs that are divided.
func leaves(of []record.Source) []record.Source {
	return slices.DeleteFunc(slices.Clone(of), func(d record.Source) bool {
		part := func(s record.Source) bool { return strings.HasPrefix(s.Role, d.Role+partOf) }
		return slices.ContainsFunc(of, part)
	})
}

// builder computes the figures of one source, or of several together.
type builder struct {
	Hardware
	logs []*hardwareLog
	of   []record.Source
}

// all reports whether each source has a value: a sum over some of them would be something else.
func (b *builder) all(value string) bool {
	return !slices.ContainsFunc(b.of, func(s record.Source) bool { return !hasValue(b.logs, s, value) })
}

// add adds a figure with one value a launch.
func (b *builder) add(f evidence.Figure, of func(*hardwareLog) float64) {
	f.Method, f.Blind = b.Method, cmp.Or(f.Blind, b.of[0].Blind)
	for _, l := range b.logs {
		f.Add(l.attempt.ID, of(l))
	}
	b.Figures = append(b.Figures, f)
}

// reading adds a figure of a source's readings, if it has any.
func (b *builder) reading(value, name, title, unit, how string, of func(*hardwareLog) float64) {
	if b.all(value) {
		b.add(evidence.Figure{Name: name, Title: title, Unit: unit, How: how, Absent: "not read"}, of)
	}
}

// device has the figures of one GPU.
func (b *builder) device() {
	d := b.of[0]
	b.reading(freeBytes, GPUFree, "free memory at the start", "MiB",
		"the first reading of the launch, before the load", func(l *hardwareLog) float64 {
			return evidence.Mebi(first(newHardwareLog(l.attempt.Launch()).of(d, freeBytes)))
		})
	b.reading(usedBytes, GPUPeak, "memory used, peak", "MiB",
		"the highest reading of the repetition, of all programs", func(l *hardwareLog) float64 {
			return evidence.Mebi(highest(l.of(d, usedBytes)))
		})
	for _, p := range []Point{AtBaseline, AtPostWarmup} {
		b.reading(usedBytes, p.Name(GPUSum), "memory used"+p.title, "MiB", "the memory "+p.words+", of all programs",
			func(l *hardwareLog) float64 { return evidence.Mebi(sum(l.memoryAt(p, b.of))) })
	}
	b.spread(usedBytes, spread{GPUMean, "", GPUDeviation, "memory used", "MiB", 1 / float64(record.MiB)})
	b.spread(busyPercent, spread{GPUBusy, GPUBusyMax, GPUBusyDev, "utilization", "%", 1})
	b.spread(watts, power)
	b.reading(celsius, GPUHeat, "temperature, highest", "°C", "the highest reading of the repetition",
		func(l *hardwareLog) float64 { return highest(l.of(d, celsius)) })
	b.energy()
}

// spread names the mean, maximum and standard deviation of readings; an empty name is left out.
type spread struct {
	mean, highest, deviation, title, unit string
	scale                                 float64
}

var power = spread{GPUPower, GPUPowerMax, GPUPowerDev, "power", "W", 1}

const unread = "not read during the measure phase"

// spread adds the mean, maximum and standard deviation of the readings of the measure phase.
func (b *builder) spread(value string, of spread) {
	if !b.all(value) {
		return
	}
	const within = " over the readings of the measure phase"
	for i, f := range []evidence.Figure{
		{Name: of.mean, Title: of.title + ", mean", How: "the mean" + within},
		{Name: of.highest, Title: of.title + ", highest", How: "the highest reading of the measure phase"},
		{Name: of.deviation, Title: of.title + ", deviation",
			How: "the standard deviation" + within + " (divided by n)"},
	} {
		if f.Unit, f.Absent = of.unit, unread; f.Name != "" {
			b.add(f, func(l *hardwareLog) float64 {
				mean, most, deviation := stats.Moments(l.within(b.of[0], value))
				return []float64{mean, most, deviation}[i] * of.scale
			})
		}
	}
}

// energy adds the energy of all sources over the measure phase, and the energy per token.
func (b *builder) energy() {
	if !slices.ContainsFunc(b.of,
		func(s record.Source) bool { return hasValue(b.logs, s, joules) || hasValue(b.logs, s, watts) }) {
		return
	}
	var ways []string
	taken := func(l *hardwareLog) float64 {
		sum := 0.0
		for _, s := range b.of {
			v, way := l.energy(s)
			if way != "" {
				ways = explain.AppendNew(ways, way)
			}
			sum += v
		}
		return sum
	}
	const blind = "which program used it: other programs and idle hardware are included"
	b.add(evidence.Figure{Name: Energy, Title: "energy", Unit: "J", Blind: blind,
		Absent: "not read during the whole measure phase"}, taken)
	b.add(evidence.Figure{Name: EnergyPerToken, Title: "energy per token", Unit: "J/token", Blind: blind,
		Absent: "no energy or no tokens"}, func(l *hardwareLog) float64 {
		if n := l.tokens(); n > 0 {
			return taken(l) / float64(n)
		}
		return math.NaN()
	})
	slices.Sort(ways)
	how := "of the measure phase: " + cmp.Or(strings.Join(ways, "; for other devices or launches: "), "not known")
	n := len(b.Figures)
	b.Figures[n-2].How = how
	b.Figures[n-1].How = "the energy of the measure phase, including prefill and pauses, / the tokens generated in it; " +
		how
}

// fleet has the GPUs of a method together. The parts of a divided GPU take its place, except for energy and power,
// which only the whole GPU has.
func (b *builder) fleet() {
	b.memory(slices.DeleteFunc(leaves(b.of), func(s record.Source) bool { return !hasValue(b.logs, s, usedBytes) }))
	b.of = wholes(b.of)
	b.combined()
}

// combined has the power and energy of several sources.
func (b *builder) combined() {
	if len(b.of) < 2 {
		return
	}
	if b.all(watts) {
		b.add(evidence.Figure{Name: GPUPower, Title: "power, mean", Unit: "W", Absent: unread,
			How: "the sum of the means of all GPUs over the measure phase"}, func(l *hardwareLog) float64 {
			sum := 0.0
			for _, s := range b.of {
				mean, _, _ := stats.Moments(l.within(s, watts))
				sum += mean
			}
			return sum
		})
	}
	if b.all(watts) || b.all(joules) {
		b.energy()
	}
}

// memory adds the sum, maximum, mean and deviation over the devices, at the time of the highest sum.
func (b *builder) memory(of []record.Source) {
	if len(of) < 2 {
		return
	}
	b.Name = roleNames(of)
	for _, p := range []Point{AtPeak, AtBaseline, AtPostWarmup} {
		at, held := p.words+", over "+b.Name, map[*hardwareLog][]float64{}
		for _, l := range b.logs {
			held[l] = l.memoryAt(p, of)
		}
		for i, f := range []evidence.Figure{
			{Name: GPUSum, Title: "memory used, sum", How: "the sum " + at},
			{Name: GPUHighest, Title: "memory used, highest of one", How: "that of the GPU with the most, " + at},
			{Name: GPUMean, Title: "memory used, mean of all", How: "the mean " + at},
			{Name: GPUDeviation, Title: "memory used, deviation",
				How: "the standard deviation " + at + " (divided by n)"},
		} {
			f.Name, f.Title, f.Unit = p.Name(f.Name), f.Title+p.title, "MiB"
			f.Blind, f.Absent = of[0].Blind, "never read of all GPUs in one pass"
			b.add(f, func(l *hardwareLog) float64 {
				mean, highest, deviation := stats.Moments(held[l])
				return evidence.Mebi([]float64{mean * float64(len(held[l])), highest, mean, deviation}[i])
			})
		}
	}
}

// held adds the highest sum of GPU memory over processes, and by device if there are several.
func (b *builder) held() {
	told := func(value string) bool {
		return slices.ContainsFunc(b.of, func(s record.Source) bool { return hasValue(b.logs, s, value) })
	}
	names := []string{HeldBytes, systemBytes}
	var devices []string
	for _, l := range b.logs {
		for k := range l.rows {
			own := func(s record.Source) bool { return s.Role == k.role && s.Method == k.method }
			if strings.HasSuffix(k.name, heldOfDevice) && slices.ContainsFunc(b.of, own) {
				devices = explain.AppendNew(devices, k.name)
			}
		}
	}
	if slices.Sort(devices); len(devices) > 1 || !told(HeldBytes) {
		names = append(names, devices...)
	}
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return !told(name) }) {
		f := evidence.Figure{Name: GPUHeld, Title: "GPU memory, peak", Unit: "MiB", Absent: "not reported by a driver",
			How: "the highest sum over processes in one pass"}
		if role, ok := strings.CutSuffix(name, heldOfDevice); ok {
			f.Name, f.Title = role+partOf+GPUHeld, f.Title+", of "+role
		} else if name == systemBytes {
			f.Name, f.Title = GPUSystemHeld, "host memory held by the GPU driver, peak"
		}
		b.add(f, func(l *hardwareLog) float64 {
			peak := math.NaN()
			for _, pass := range l.passes(b.of, name) {
				peak = evidence.MaxKnown(peak, vec.Sum(pass.values))
			}
			return evidence.Mebi(peak)
		})
	}
}
