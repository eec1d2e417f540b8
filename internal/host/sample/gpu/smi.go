package gpu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/host/child"
	"llmparity/internal/record"
)

// program is an AMD program that reports what sysfs does not. Each call starts a Python program, so it is called
// rarely.
type program struct {
	name, method              string
	names, figures, processes []string // names is empty if the figures include them
	blind                     string
}

var programs = []program{
	{name: "amd-smi", method: AMDSMI, names: []string{"static", "--json"}, figures: []string{"metric", "--json"},
		processes: []string{"process", "--json"},
		blind:     "a process with the same amount on several devices, because it may be their total"},
	{name: "rocm-smi", method: ROCmSMI, // amd-smi's predecessor
		figures: []string{"--showproductname", "--showbus", "--showuse", "--showmemuse", "--showmeminfo", "all",
			"--showpower", "--showtemp", "--showdriverversion", "--json"},
		processes: []string{"--showpids", "--json"},
		blind:     "which device, if there are several"},
}

// tool reads devices with a program.
type tool struct {
	program
	path  string
	first []smiDevice
	ctx   context.Context // of the program
	ask   func(args ...string) ([]byte, error)
}

// openTool finds a program that reports a device, or nil.
func openTool(ctx context.Context, first int) *fleet {
	for _, p := range programs {
		path, err := exec.LookPath(p.name)
		if err != nil {
			continue
		}
		t := &tool{program: p, path: path}
		lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
		t.ctx, t.ask = lasting, t.run
		opened := context.AfterFunc(ctx, stop)
		t.first, err = t.devices()
		if opened(); err == nil && len(t.first) > 0 {
			f := t.fleet(first)
			f.close = func() {
				stop()
				_, _ = within(context.Background(), &f.guard, func() error { return nil }) // wait for a running program
			}
			return f
		}
		stop()
	}
	return nil
}

// amdIsHere reports whether to start the programs, which takes a second: container images have them on machines without
// a GPU.
func amdIsHere(sys string, cards []card) bool {
	if slices.ContainsFunc(cards, func(c card) bool { return vendors[c.vendor] == amd }) {
		return true
	}
	for _, dir := range []string{"module/amdgpu", "class/kfd"} {
		if _, err := os.Stat(filepath.Join(sys, dir)); err == nil {
			return true
		}
	}
	return false
}

// run runs the program, which ends with this process. It ignores its error output.
func (t *tool) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, toolPatience*2/3)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.Command(t.path, args...)
	cmd.Stdout = &out
	p, err := child.Start(ctx, cmd)
	if err == nil {
		<-p.Done()
		err = cmp.Or(ctx.Err(), p.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(t.path), strings.Join(args, " "), err)
	}
	return out.Bytes(), nil
}

// devices reads figures.
func (t *tool) devices() ([]smiDevice, error) {
	text, err := t.ask(t.figures...)
	if err != nil {
		return nil, err
	}
	return parseDevices(text)
}

// fleet describes the first devices, whose roles have numbers from first on. The program may have names apart from
// figures; missing ones are no error.
func (t *tool) fleet(first int) *fleet {
	var named []smiDevice
	if t.names != nil {
		if text, err := t.ask(t.names...); err == nil {
			named, _ = parseDevices(text)
		}
	}
	const blind = "peaks between two reads, which are seconds apart"
	f := &fleet{path: t.path, guard: guard{patience: toolPatience}, states: shared[[]state]{read: t.read},
		uses: shared[listing]{read: t.list},
		device: record.Source{Method: t.method, Every: toolEvery, Blind: blind,
			Sees: "memory, load, power and temperature, as AMD's program reports them"},
		process: record.Source{Method: t.method + "_process", Every: toolEvery, Blind: t.blind + "; " + blind}}
	for i, d := range t.first {
		if at := indexOf(named, d.index); at >= 0 {
			d.GPUInfo = named[at].GPUInfo
		}
		d.Role, d.Vendor, d.Method, d.Name = roleOf(first+i), amd, t.method, cmp.Or(d.Name, "AMD GPU")
		d.MemoryB = int64(d.figures[memoryTotal])
		f.units = append(f.units, unit{GPUInfo: d.GPUInfo})
	}
	return f
}

func (t *tool) read() []state {
	out := make([]state, len(t.first))
	now, err := t.devices()
	for i, d := range t.first {
		at := indexOf(now, d.index)
		switch {
		case err != nil:
			out[i].err = err
		case at < 0:
			out[i].err = lost("the program no longer reports this GPU: it fell off the bus, or its driver was unloaded")
		default:
			out[i].figures = now[at].figures
		}
	}
	return out
}

func (t *tool) list() listing {
	l := listing{failed: make([]bool, len(t.first))}
	text, err := t.ask(t.processes...)
	if err != nil {
		l.err = err
		return l
	}
	uses, err := parseProcesses(text)
	if err != nil {
		l.err = err
		return l
	}
	for _, u := range uses {
		switch at := indexOf(t.first, u.unit); {
		case at >= 0:
			u.unit = at
		case u.unit != total:
			continue
		case len(t.first) == 1:
			u.unit = 0
		}
		l.add(u)
	}
	// The same amount on several devices is the total of all devices in some versions of the program.
	all := slices.Clone(l.uses)
	for i, u := range l.uses {
		if slices.ContainsFunc(all, func(o use) bool {
			return o.pid == u.pid && o.unit != u.unit && o.bytes == u.bytes && u.bytes > 0
		}) {
			l.uses[i].bytes = hidden
		}
	}
	return l
}

// smiDevice is a device as reported by a program.
type smiDevice struct {
	index int
	record.GPUInfo
	figures
}

// indexOf returns the position of the device with an index of the program; -1: none.
func indexOf(all []smiDevice, index int) int {
	return slices.IndexFunc(all, func(d smiDevice) bool { return d.index == index })
}

// jsonBegin matches where JSON begins, perhaps after warnings.
var jsonBegin = regexp.MustCompile(`(?m)^\s*[\[{]`)

// answer decodes the JSON in a program's output.
func answer(text []byte, to any) error {
	at := jsonBegin.FindIndex(text)
	if at == nil {
		return fmt.Errorf("no JSON in %.60q", text)
	}
	if err := json.NewDecoder(bytes.NewReader(text[at[0]:])).Decode(to); err != nil {
		return fmt.Errorf("can't parse the answer: %w", err)
	}
	return nil
}

// object is the part of an answer about a device.
type object struct {
	index int
	of    any
}

// objects returns the devices in an answer, in order, and its part about the whole system. amd-smi prints a list, later
// versions an object with a list; rocm-smi prints an object with a key for each device.
func objects(text []byte) (out []object, system map[string]any, err error) {
	var whole any
	if err := answer(text, &whole); err != nil {
		return nil, nil, err
	}
	list := whole
	if named, ok := whole.(map[string]any); ok {
		list = named["gpu_data"]
		system, _ = named["system"].(map[string]any)
		for name, of := range named {
			number, card := strings.CutPrefix(name, "card")
			if index, err := strconv.Atoi(number); card && err == nil && index >= 0 {
				out = append(out, object{index, of})
			}
		}
	}
	entries, _ := list.([]any)
	for _, of := range entries {
		if index, _, ok := quantity(at(of, "gpu")); ok {
			out = append(out, object{int(index), of})
		}
	}
	slices.SortStableFunc(out, func(a, b object) int { return a.index - b.index })
	return out, system, nil
}

// smiFigures has the paths of each figure; the first one present counts.
var smiFigures = []struct {
	name  string
	read  func(any) (float64, bool)
	paths []string
}{
	{memoryUsed, memory, []string{"mem_usage.used_vram", "VRAM Total Used Memory (B)"}},
	{memoryFree, memory, []string{"mem_usage.free_vram"}},
	{memoryTotal, memory, []string{"mem_usage.total_vram", "VRAM Total Memory (B)"}},
	{systemUsed, memory, []string{"mem_usage.used_gtt", "GTT Total Used Memory (B)"}},
	{systemTotal, memory, []string{"mem_usage.total_gtt", "GTT Total Memory (B)"}},
	{busy, number, []string{"usage.gfx_activity", "GPU use (%)"}},
	{memoryBusy, number, []string{"usage.umc_activity", "GPU Memory Read/Write Activity (%)", "GPU memory use (%)"}},
	{watts, number, []string{"power.socket_power", "Average Graphics Package Power (W)",
		"Current Socket Graphics Package Power (W)"}},
	{celsius, number, []string{"temperature.edge", "temperature.hotspot", "Temperature (Sensor edge) (C)",
		"Temperature (Sensor junction) (C)"}},
	{joules, number, []string{"energy.total_energy_consumption"}},
}

// parseDevices parses an answer about devices.
func parseDevices(text []byte) ([]smiDevice, error) {
	all, system, err := objects(text)
	out := make([]smiDevice, len(all))
	for i, o := range all {
		d := smiDevice{index: o.index, figures: figures{}}
		for _, f := range smiFigures {
			for _, path := range f.paths {
				if v, ok := f.read(at(o.of, path)); ok && v >= 0 {
					d.figures[f.name] = v
					break
				}
			}
		}
		words := func(paths ...string) string {
			for _, path := range paths {
				if s, ok := at(o.of, path).(string); ok && s != "" && s != "N/A" {
					return s
				}
			}
			return ""
		}
		d.Name = words("asic.market_name", "Card Series", "Card series", "Device Name", "Card Model", "Card model")
		d.ID = words("bus.bdf", "PCI Bus", "asic.asic_serial", "Unique ID")
		d.Driver = strings.TrimSpace(words("driver.name") + " " + words("driver.version"))
		if v, ok := system["Driver version"].(string); ok {
			d.Driver = "amdgpu " + v
		}
		out[i] = d
	}
	return out, err
}

// parseProcesses parses an answer about processes; the unit of a use is the program's index of a device, or total.
// amd-smi prints lists by device. rocm-smi prints a text for each process: its name, which may contain commas, number
// of devices, memory …
func parseProcesses(text []byte) ([]use, error) {
	all, system, err := objects(text)
	var out []use
	for _, o := range all {
		list, _ := at(o.of, "process_list").([]any)
		for _, p := range list {
			info := at(p, "process_info") // a text if none is running
			pid, _, ok := quantity(at(info, "pid"))
			if !ok || pid < 1 || pid > math.MaxInt32 {
				continue
			}
			u := use{unit: o.index, pid: int(pid), bytes: hidden}
			for _, path := range []string{"memory_usage.vram_mem", "vram_mem", "mem_usage"} {
				if n, ok := bytesOf(at(info, path)); ok {
					u.bytes = n
					break
				}
			}
			out = append(out, u)
		}
	}
	for key, v := range system {
		digits, is := strings.CutPrefix(key, "PID")
		pid, err := strconv.Atoi(digits)
		line, ok := v.(string)
		fields := strings.Split(line, ",")
		if !is || err != nil || pid <= 0 || !ok || len(fields) < 5 {
			continue
		}
		u := use{unit: total, pid: pid, bytes: hidden} // UNKNOWN
		if n, err := strconv.ParseUint(strings.TrimSpace(fields[len(fields)-3]), 10, 63); err == nil {
			u.bytes = int64(n)
		}
		out = append(out, u)
	}
	if len(all) == 0 {
		slices.SortFunc(out, func(a, b use) int { return a.pid - b.pid })
	}
	return out, err
}

// at follows a path of names separated by dots; nil if there is nothing.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

func number(v any) (float64, bool) {
	n, _, ok := quantity(v)
	return n, ok
}

func memory(v any) (float64, bool) {
	n, ok := bytesOf(v)
	return float64(n), ok
}

// quantity parses a number with an optional unit: 5, "5", "5 W", {"value": 5, "unit": "W"}; not "N/A".
func quantity(v any) (n float64, unit string, ok bool) {
	switch v := v.(type) {
	case float64:
		n = v
	case string:
		number, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, "", false
		}
		n, unit = f, strings.TrimSpace(rest)
	case map[string]any:
		if n, unit, ok = quantity(v["value"]); !ok {
			return 0, "", false
		}
		if u, is := v["unit"].(string); is {
			unit = u
		}
	default:
		return 0, "", false
	}
	return n, unit, !math.IsNaN(n) && !math.IsInf(n, 0)
}

// bytesOf parses an amount of memory. AMD's MB are MiB.
func bytesOf(v any) (int64, bool) {
	n, unit, ok := quantity(v)
	factor, known := map[string]float64{"": 1, "B": 1, "KB": 1 << 10, "KiB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20,
		"GB": 1 << 30, "GiB": 1 << 30}[unit]
	if !ok || !known || n < 0 || n*factor >= math.MaxInt64 {
		return 0, false
	}
	return int64(n * factor), true
}
