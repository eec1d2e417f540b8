package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

const amd = "AMD"

// vendors are the names of PCI vendor ids.
var vendors = map[string]string{"1002": amd, "10DE": "NVIDIA", "8086": "Intel"}

// virtual reports whether the card is the display of a virtual machine, which computes nothing.
func (c card) virtual() bool {
	return c.vendor == "1AF4" || slices.Contains(
		[]string{"virtio_gpu", "virtio-gpu", "vgem", "vkms", "vmwgfx", "qxl", "bochs-drm", "cirrus", "hyperv_drm",
			"vboxvideo",
			"simple-framebuffer"}, c.driver)
}

// card is a GPU in the kernel's DRM. Cards without a render node, which only display, are left out.
type card struct {
	dir    string // folder of the device
	vendor string // PCI id; empty: not on a PCI bus
	model  string // PCI id
	driver string
	pci    string // PCI address
}

// findCards lists the GPUs by number; none without DRM.
func findCards(sys string) []card {
	dirs, _ := filepath.Glob(filepath.Join(sys, "class/drm/card*")) // the pattern is valid
	number := func(dir string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "card"))
		if err != nil {
			return -1 // a connector
		}
		return n
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return number(dir) < 0 })
	slices.SortFunc(dirs, func(a, b string) int { return number(a) - number(b) })
	var out []card
	for _, dir := range dirs {
		c := card{dir: filepath.Join(dir, "device")}
		nodes, _ := filepath.Glob(filepath.Join(c.dir, "drm/renderD*"))
		text, err := os.ReadFile(filepath.Join(c.dir, "uevent"))
		if err != nil || len(nodes) == 0 {
			continue
		}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "DRIVER":
				c.driver = value
			case "PCI_ID":
				c.vendor, c.model, _ = strings.Cut(strings.ToUpper(value), ":")
			case "PCI_SLOT_NAME":
				c.pci = value
			}
		}
		if !c.virtual() {
			out = append(out, c)
		}
	}
	return out
}

func (c card) gpu(sys, role string) record.GPUInfo {
	g := record.GPUInfo{Role: role, Vendor: vendors[c.vendor], Driver: c.driver, ID: c.pci, Method: Sysfs}
	g.Name = firstText(filepath.Join(c.dir, "product_name"))
	if g.Name == "" {
		g.Name = strings.TrimSpace(g.Vendor + " GPU")
		if c.model != "" {
			g.Name += " " + strings.ToLower(c.vendor+":"+c.model)
		}
	}
	if v := firstText(filepath.Join(sys, "module", c.driver, "version")); v != "" {
		g.Driver += " " + v
	}
	return g
}

func firstText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// drm reads GPUs other than NVIDIA's: devices from sysfs, and the memory of their clients.
type drm struct {
	proc   string
	units  []unit
	files  [][]sensor        // by unit
	memory bool              // that of a card can be read
	roles  map[string]string // by PCI slot; other devices are named by their slot
	alone  string            // role of the only device, if it has no slot
}

// sensor is a file that contains a number.
type sensor struct {
	path, figure string
	unit         float64 // factor
}

// newDRM returns nil if there is no such GPU. first is the number of the first role.
func newDRM(o Options, cards []card, first int) *drm {
	d := &drm{proc: o.Proc, roles: map[string]string{}}
	others := 0
	for _, c := range cards {
		if c.driver == "nvidia" {
			continue // read with NVML
		}
		others++
		files := c.sensors()
		memory := len(files) > 0 && files[0].figure == memoryUsed
		if vendors[c.vendor] == amd && !memory {
			continue // AMD's programs may read it
		}
		role := roleOf(first + len(d.units))
		u := unit{GPUInfo: c.gpu(o.Sys, role), mute: len(files) == 0}
		if memory {
			d.memory = true
			if total, err := readNumber(filepath.Join(c.dir, "mem_info_vram_total")); err == nil {
				u.MemoryB = int64(total)
			}
		}
		if d.alone = role; c.pci != "" {
			d.roles[c.pci] = role
		}
		d.units, d.files = append(d.units, u), append(d.files, files)
	}
	if others == 0 {
		return nil
	}
	if others > 1 {
		d.alone = ""
	}
	return d
}

// sensors finds the sensors of the device.
func (c card) sensors() []sensor {
	hwmon := filepath.Join(c.dir, "no hwmon")
	if dirs, _ := filepath.Glob(filepath.Join(c.dir, "hwmon/hwmon*")); len(dirs) > 0 {
		hwmon = dirs[0]
	}
	var out []sensor
	for _, s := range []sensor{
		{filepath.Join(c.dir, "mem_info_vram_used"), memoryUsed, 1}, // a card that has it must report it
		{filepath.Join(c.dir, "mem_info_vram_total"), memoryTotal, 1},
		{filepath.Join(c.dir, "mem_info_gtt_used"), systemUsed, 1},
		{filepath.Join(c.dir, "mem_info_gtt_total"), systemTotal, 1},
		{filepath.Join(c.dir, "gpu_busy_percent"), busy, 1},
		{filepath.Join(c.dir, "mem_busy_percent"), memoryBusy, 1},
		{filepath.Join(hwmon, "power1_input"), watts, 1e-6},
		{filepath.Join(hwmon, "power1_average"), watts, 1e-6}, // replaces the momentary one
		{filepath.Join(hwmon, "temp1_input"), celsius, 1e-3},
		{filepath.Join(hwmon, "energy1_input"), joules, 1e-6},
	} {
		if _, err := os.Stat(s.path); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// fleet has no lists of processes: the kernel has accounts for each.
func (d *drm) fleet() *fleet {
	return &fleet{units: d.units, guard: guard{patience: patience}, states: shared[[]state]{read: d.read},
		device: record.Source{Method: Sysfs, Every: cheapEvery,
			Sees: "memory of the device, system memory that it uses, load, power and temperature, from sysfs",
			Blind: "which process (see " + Fdinfo +
				"); peaks between two reads; power and temperature of a sleeping device"}}
}

func (d *drm) read() []state {
	out := make([]state, len(d.units))
	for i, files := range d.files {
		out[i].figures = figures{}
		for _, s := range files {
			v, err := readNumber(s.path)
			if err == nil {
				out[i].figures[s.figure] = v * s.unit
			} else if s.figure == memoryUsed {
				out[i].err = vanished(err)
				break
			}
		}
	}
	return out
}

// vanished recognises a device whose files are gone.
func vanished(err error) error {
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no such device") {
		return lost("the GPU fell off the bus, or its driver was unloaded (" + err.Error() + ")")
	}
	return err
}

// readNumber reads a file that holds one number.
func readNumber(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	word := strings.TrimSpace(string(text))
	n, unit, ok := quantity(word)
	if !ok || unit != "" {
		return 0, fmt.Errorf("%s: %.40q is not a number", path, word)
	}
	if n < 0 || n >= math.MaxInt64 {
		return 0, fmt.Errorf("%s: counter overflow (%.40s)", path, word)
	}
	return n, nil
}
