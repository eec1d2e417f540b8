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
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/child"
	"llmparity/internal/record"
)

// tool asks AMD's own programs, where the kernel's files are not to be had. Each question starts a Python program: it
// is asked rarely.
type tool struct {
	smi
	method string
	path   string
	first  []smiDevice
	roles  []string

	ctx  context.Context // of the programs that are asked: none outlives close
	stop context.CancelFunc
}

// smi is how one of the programs is asked and what it answers.
type smi interface {
	devices(ask func(args ...string) ([]byte, error)) ([]smiDevice, error)
	processes(ask func(args ...string) ([]byte, error)) ([]smiUse, error)
	blind() string
}

// smiDevice is a device as a program tells of it.
type smiDevice struct {
	index                  int
	name, id, driver, slot string
	figures
}

// smiUse is what a process holds. device is its index; anywhere: of all devices together.
type smiUse struct {
	pid, device int
	bytes       int64
}

const anywhere = -1

// openTool finds a program that tells of a device; nil where there is none.
func openTool(ctx context.Context, o Options, first int) driver {
	for _, p := range []struct {
		name, method string
		smi          smi
	}{{"amd-smi", AMDSMI, &amdSMI{}}, {"rocm-smi", ROCmSMI, rocmSMI{}}} {
		path := find(o, p.name)
		if path == "" {
			continue
		}
		t := &tool{smi: p.smi, method: p.method, path: path}
		t.ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
		var err error
		if t.first, err = p.smi.devices(t.asker(ctx)); err != nil || len(t.first) == 0 {
			t.stop()
			continue
		}
		for i := range t.first {
			t.roles = append(t.roles, roleOf(first+i))
		}
		return t
	}
	return nil
}

// amdIsHere tells whether it is worth a second to start the programs: images bring them along to machines without a
// GPU.
func amdIsHere(sys string, cards []card) bool {
	if slices.ContainsFunc(cards, func(c card) bool { return vendorOf(c.vendor) == amd }) {
		return true
	}
	for _, dir := range []string{"module/amdgpu", "class/kfd"} {
		if _, err := os.Stat(filepath.Join(sys, dir)); err == nil {
			return true
		}
	}
	return false
}

func find(o Options, name string) string {
	if o.Path == nil {
		path, err := exec.LookPath(name)
		if err != nil {
			return ""
		}
		return path
	}
	for _, dir := range o.Path {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// asker runs the program, which goes when we go. What it complains of is on the other output.
func (t *tool) asker(ctx context.Context) func(args ...string) ([]byte, error) {
	return func(args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, toolPatience*2/3)
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
}

func (t *tool) units() []unit {
	out := make([]unit, len(t.first))
	for i, d := range t.first {
		out[i].GPUInfo = record.GPUInfo{Role: t.roles[i], Name: cmp.Or(d.name, "AMD GPU"), Vendor: amd,
			Driver: d.driver,
			ID:     cmp.Or(d.slot, d.id), Method: t.method}
		if !math.IsNaN(d.total) {
			out[i].MemoryB = int64(d.total)
		}
	}
	return out
}

func (t *tool) describe() about {
	return about{method: t.method, process: t.method + "_process", every: toolEvery, patience: toolPatience,
		sees:       "what AMD's program tells: memory, the share of time that the device was busy, power, temperature",
		blind:      "peaks between two reads, which are far apart: each starts a program",
		listsBlind: t.blind() + "; peaks between two reads, which are far apart: each starts a program"}
}

func (t *tool) read() []state {
	out := make([]state, len(t.first))
	now, err := t.devices(t.asker(t.ctx))
	for i, d := range t.first {
		at := slices.IndexFunc(now, func(n smiDevice) bool { return n.index == d.index })
		switch {
		case err != nil:
			out[i].err = err
		case at < 0:
			out[i].err = lost("the program tells of this GPU no more: it has fallen off the bus, or its driver was unloaded")
		default:
			out[i].figures = now[at].figures
		}
	}
	return out
}

func (t *tool) list() listing {
	l := listing{failed: make([]bool, len(t.first))}
	uses, err := t.processes(t.asker(t.ctx))
	if err != nil {
		l.err = err
		return l
	}
	for _, u := range t.settled(uses) {
		at := slices.IndexFunc(t.first, func(d smiDevice) bool { return d.index == u.device })
		if u.device == anywhere && len(t.first) == 1 {
			at = 0
		}
		if at < 0 {
			at = total
		}
		l.uses = append(l.uses, use{unit: at, pid: u.pid, bytes: u.bytes})
	}
	return l
}

// settled decides what it means that a process is told to hold the same of several devices: so much of each, as where a
// model is divided evenly, or, in some versions of the program, so much of all together. The devices know how much of
// each is held: what does not fit is of all. Where they do not tell, it is not known.
func (t *tool) settled(uses []smiUse) []smiUse {
	uses = slices.DeleteFunc(onceEach(uses), func(u smiUse) bool {
		return u.device != anywhere && !slices.ContainsFunc(
			t.first, func(d smiDevice) bool { return d.index == u.device })
	})
	if !alike(uses) {
		return uses
	}
	reported := map[int]float64{}
	for _, u := range uses {
		reported[u.device] += float64(max(u.bytes, 0))
	}
	devices, err := t.devices(t.asker(t.ctx))
	known := err == nil
	for _, d := range devices {
		known = known && !math.IsNaN(d.used)
		if reported[d.index] > sumOfAll*d.used {
			return merged(uses)
		}
	}
	if !known {
		return unsure(uses)
	}
	return uses
}

// sumOfAll is how many times more than is used processes must be told to hold of a device: of the least used of n, sums
// over all are n times more. Something of the device is held by no process, and amounts change from one question to the
// next.
const sumOfAll = 1.5

// interrupt ends the program that is being asked: it must not outlive us.
func (t *tool) interrupt() { t.stop() }

func (t *tool) close() { t.stop() }

// amdSMI is amd-smi. Names are asked for once.
type amdSMI struct{ static []smiDevice }

func (a *amdSMI) blind() string {
	return "which device, where the program tells of each what is held of all: that is seen by what the devices have in use"
}

func (a *amdSMI) devices(ask func(...string) ([]byte, error)) ([]smiDevice, error) {
	if a.static == nil {
		text, err := ask("static", "--json")
		if err == nil {
			a.static, err = parseAMDStatic(text)
		}
		if err != nil {
			a.static = []smiDevice{} // names are not worth the figures
		}
	}
	text, err := ask("metric", "--json")
	if err != nil {
		return nil, err
	}
	out, err := parseAMDMetric(text)
	for i := range out {
		for _, s := range a.static {
			if s.index == out[i].index {
				out[i].name, out[i].id, out[i].driver, out[i].slot = s.name, s.id, s.driver, s.slot
			}
		}
	}
	return out, err
}

func (a *amdSMI) processes(ask func(...string) ([]byte, error)) ([]smiUse, error) {
	text, err := ask("process", "--json")
	if err != nil {
		return nil, err
	}
	return parseAMDProcesses(text)
}

// rocmSMI is rocm-smi, amd-smi's predecessor.
type rocmSMI struct{}

func (rocmSMI) blind() string { return "which device, where there are several" }

func (rocmSMI) devices(ask func(...string) ([]byte, error)) ([]smiDevice, error) {
	text, err := ask("--showproductname", "--showbus", "--showuse", "--showmemuse", "--showmeminfo", "all",
		"--showpower", "--showtemp",
		"--showdriverversion", "--json")
	if err != nil {
		return nil, err
	}
	return parseROCmDevices(text)
}

func (rocmSMI) processes(ask func(...string) ([]byte, error)) ([]smiUse, error) {
	text, err := ask("--showpids", "--json")
	if err != nil {
		return nil, err
	}
	return parseROCmProcesses(text)
}

// answer finds the JSON in what a program printed: warnings may come before it.
func answer(text []byte, to any) error {
	for line, rest := []byte(nil), text; len(rest) > 0; rest = rest[len(line):] {
		line = rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line = rest[:end+1]
		}
		if begin := bytes.TrimSpace(line); len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
			if err := json.NewDecoder(bytes.NewReader(rest)).Decode(to); err != nil {
				return fmt.Errorf("the answer is not understood: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no answer in %.60q", text)
}

// parseROCmDevices reads rocm-smi's answer: a table a card, of texts.
func parseROCmDevices(text []byte) ([]smiDevice, error) {
	var all map[string]map[string]any
	if err := answer(text, &all); err != nil {
		return nil, err
	}
	var out []smiDevice
	for name, c := range all {
		index, err := strconv.Atoi(strings.TrimPrefix(name, "card"))
		if err != nil || index < 0 {
			continue // what is of all
		}
		first := func(names ...string) float64 {
			for _, n := range names {
				if v, _, ok := quantity(c[n]); ok && v >= 0 {
					return v
				}
			}
			return math.NaN()
		}
		words := func(names ...string) string {
			for _, n := range names {
				if s, ok := c[n].(string); ok && s != "" && s != "N/A" {
					return s
				}
			}
			return ""
		}
		d := smiDevice{index: index, figures: unknownFigures(), id: words("Unique ID"), slot: words("PCI Bus"),
			name: words("Card Series", "Card series", "Device Name", "Card Model", "Card model")}
		if v, ok := all["system"]["Driver version"].(string); ok {
			d.driver = "amdgpu " + v
		}
		d.used, d.total = first("VRAM Total Used Memory (B)"), first("VRAM Total Memory (B)")
		d.free = d.total - d.used
		d.systemUsed, d.systemTotal = first("GTT Total Used Memory (B)"), first("GTT Total Memory (B)")
		d.busy, d.memoryBusy = first("GPU use (%)"), first("GPU Memory Read/Write Activity (%)", "GPU memory use (%)")
		d.watts = first("Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)")
		d.celsius = first("Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)")
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b smiDevice) int { return a.index - b.index })
	return out, nil
}

// parseROCmProcesses reads rocm-smi's list: a text a process with its name, which may have commas, how many devices it
// is on, its memory …
func parseROCmProcesses(text []byte) ([]smiUse, error) {
	var all map[string]map[string]any
	if err := answer(text, &all); err != nil {
		return nil, err
	}
	var out []smiUse
	for key, v := range all["system"] {
		pid, err := strconv.Atoi(strings.TrimPrefix(key, "PID"))
		line, ok := v.(string)
		if err != nil || pid <= 0 || !ok || !strings.HasPrefix(key, "PID") {
			continue
		}
		fields := strings.Split(line, ",")
		if len(fields) < 5 {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(fields[len(fields)-3]), 10, 64)
		u := smiUse{pid: pid, device: anywhere, bytes: hidden} // UNKNOWN
		if err == nil && n <= math.MaxInt64 {
			u.bytes = int64(n)
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b smiUse) int { return a.pid - b.pid })
	return out, nil
}

// entries reads amd-smi's answers: a list, within an object in later versions.
func entries(text []byte) ([]map[string]any, error) {
	var whole any
	if err := answer(text, &whole); err != nil {
		return nil, err
	}
	if o, ok := whole.(map[string]any); ok {
		whole = o["gpu_data"]
	}
	list, _ := whole.([]any)
	var out []map[string]any
	for _, e := range list {
		if o, ok := e.(map[string]any); ok {
			if _, _, ok := quantity(o["gpu"]); ok {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

func indexOf(e map[string]any) int { v, _, _ := quantity(e["gpu"]); return int(v) }

func parseAMDStatic(text []byte) ([]smiDevice, error) {
	all, err := entries(text)
	out := []smiDevice{}
	for _, e := range all {
		words := func(path ...string) string {
			s, _ := at(e, path...).(string)
			if s == "N/A" {
				return ""
			}
			return s
		}
		out = append(out, smiDevice{index: indexOf(e), name: words("asic", "market_name"),
			id:   words("asic", "asic_serial"),
			slot: words("bus", "bdf"), driver: strings.TrimSpace(
				words("driver", "name") + " " + words("driver", "version"))})
	}
	return out, err
}

func parseAMDMetric(text []byte) ([]smiDevice, error) {
	all, err := entries(text)
	var out []smiDevice
	for _, e := range all {
		value := func(path ...string) float64 {
			if v, _, ok := quantity(at(e, path...)); ok && v >= 0 {
				return v
			}
			return math.NaN()
		}
		memory := func(name string) float64 {
			if v, ok := bytesOf(at(e, "mem_usage", name)); ok {
				return float64(v)
			}
			return math.NaN()
		}
		first := func(a, b float64) float64 {
			if math.IsNaN(a) {
				return b
			}
			return a
		}
		d := smiDevice{index: indexOf(e), figures: unknownFigures()}
		d.used, d.free, d.total = memory("used_vram"), memory("free_vram"), memory("total_vram")
		d.systemUsed, d.systemTotal = memory("used_gtt"), memory("total_gtt")
		d.busy, d.memoryBusy = value("usage", "gfx_activity"), value("usage", "umc_activity")
		d.watts = value("power", "socket_power")
		d.celsius = first(value("temperature", "edge"), value("temperature", "hotspot"))
		d.joules = value("energy", "total_energy_consumption")
		out = append(out, d)
	}
	return out, err
}

// parseAMDProcesses reads amd-smi's list, by device.
func parseAMDProcesses(text []byte) ([]smiUse, error) {
	all, err := entries(text)
	var out []smiUse
	for _, e := range all {
		list, _ := e["process_list"].([]any)
		for _, p := range list {
			info, ok := at(p, "process_info").(map[string]any)
			if !ok {
				continue // none is running
			}
			pid, _, ok := quantity(info["pid"])
			if !ok || pid < 1 || pid > math.MaxInt32 {
				continue
			}
			u := smiUse{pid: int(pid), device: indexOf(e), bytes: hidden}
			for _, v := range []any{at(info, "memory_usage", "vram_mem"), info["vram_mem"], info["mem_usage"]} {
				if n, ok := bytesOf(v); ok {
					u.bytes = n
					break
				}
			}
			out = append(out, u)
		}
	}
	return out, err
}

// onceEach keeps the highest of what is told twice of a process and a device.
func onceEach(uses []smiUse) []smiUse {
	var out []smiUse
	for _, u := range uses {
		at := slices.IndexFunc(out, func(have smiUse) bool { return have.pid == u.pid && have.device == u.device })
		if at < 0 {
			out = append(out, u)
		} else {
			out[at].bytes = max(out[at].bytes, u.bytes)
		}
	}
	return out
}

// everywhere tells whether a process is told to hold the same, and something, of several devices.
func everywhere(uses []smiUse, pid int) bool {
	several := 0
	bytes := int64(hidden)
	for _, u := range uses {
		if u.pid != pid {
			continue
		}
		if several > 0 && u.bytes != bytes {
			return false
		}
		several, bytes = several+1, u.bytes
	}
	return several > 1 && bytes > 0
}

func alike(uses []smiUse) bool {
	return slices.ContainsFunc(uses, func(u smiUse) bool { return everywhere(uses, u.pid) })
}

// merged takes what is told the same of several devices for the sum over all.
func merged(uses []smiUse) []smiUse {
	var out []smiUse
	for _, u := range uses {
		if everywhere(uses, u.pid) {
			u.device = anywhere
		}
		if !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

// unsure takes it for unknown.
func unsure(uses []smiUse) []smiUse {
	out := slices.Clone(uses)
	for i, u := range uses {
		if everywhere(uses, u.pid) {
			out[i].bytes = hidden
		}
	}
	return out
}

// at goes down into objects; nil where there is no way.
func at(v any, path ...string) any {
	for _, name := range path {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// quantity reads a number, with its unit where it has one: 5, "5", "5 W", {"value": 5, "unit": "W"}; not "N/A".
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
		if n, unit, ok = quantity(notNested(v["value"])); !ok {
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

func notNested(v any) any {
	if _, nested := v.(map[string]any); nested {
		return nil
	}
	return v
}

// bytesOf reads an amount of memory. AMD's MB are MiB.
func bytesOf(v any) (int64, bool) {
	n, unit, ok := quantity(v)
	factor, known := map[string]float64{"": 1, "B": 1, "KB": 1 << 10, "KiB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20,
		"GB": 1 << 30, "GiB": 1 << 30}[unit]
	if !ok || !known || n < 0 || n*factor >= math.MaxInt64 {
		return 0, false
	}
	return int64(n * factor), true
}
