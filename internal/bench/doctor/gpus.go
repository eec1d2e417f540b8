package doctor

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/record"
)

// GPU is a GPU with its current memory.
type GPU struct {
	record.GPUInfo
	FreeB *int64 `json:"free_bytes,omitempty"`
	UsedB *int64 `json:"used_bytes,omitempty"`
}

// findGPUs lists the GPUs with their memory, and notes about what could not be read.
func findGPUs(ctx context.Context, o gpu.Options) (infos []record.GPUInfo, found []GPU, notes []string) {
	m := gpu.Open(ctx, o)
	defer m.Close()
	infos, found, notes = m.GPUs, []GPU{}, []string{}
	for _, w := range m.Warnings {
		notes = append(notes, w.Text)
	}
	memory := map[string]map[string]float64{} // by role and name
	for _, s := range m.Sources() {
		role := s.Describe().Role
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		r := record.NewSample()
		err := s.Read(limited, &r)
		cancel()
		if err != nil {
			continue
		}
		if memory[role] == nil {
			memory[role] = map[string]float64{}
		}
		for _, v := range r.Values {
			memory[role][v.Name] = v.Value
		}
	}
	for _, info := range infos {
		g := GPU{GPUInfo: info}
		g.UsedB = bytesOf(memory[info.Role], "memory_used_bytes")
		if g.FreeB = bytesOf(memory[info.Role], "memory_free_bytes"); g.FreeB == nil && g.UsedB != nil &&
			info.MemoryB > *g.UsedB {
			g.FreeB = new(info.MemoryB - *g.UsedB)
		}
		found = append(found, g)
	}
	return infos, found, notes
}

func bytesOf(values map[string]float64, name string) *int64 {
	v, ok := values[name]
	if !ok || v < 0 {
		return nil
	}
	return new(int64(v))
}

// wanted are libraries that programs need to use GPUs.
var wanted = []string{"libcuda.so.1", "libnvidia-ml.so.1", "libamdhip64.so", "librocm_smi64.so", "libvulkan.so.1",
	"libOpenCL.so.1", "libze_loader.so.1"}

// findLibraries asks ldconfig for their paths; empty on systems without it.
func findLibraries(ctx context.Context) map[string]string {
	path, err := exec.LookPath("ldconfig")
	if err != nil {
		path = "/sbin/ldconfig" // not on every PATH
	}
	words, err := child.Says(ctx, path, "-p")
	if err != nil {
		return map[string]string{}
	}
	return parseLinker(words)
}

// parseLinker reads lines of ldconfig -p: name, kind, arrow, path.
func parseLinker(words string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(words) {
		left, path, ok := strings.Cut(line, " => ")
		fields := strings.Fields(left)
		if !ok || len(fields) == 0 {
			continue
		}
		for _, name := range wanted {
			if versioned := strings.HasPrefix(fields[0], name+"."); (fields[0] == name || versioned) &&
				out[name] == "" {
				out[name] = strings.TrimSpace(path)
			}
		}
	}
	return out
}

// cudaLine matches the newest CUDA version that the driver supports, as printed by nvidia-smi.
var cudaLine = regexp.MustCompile(`CUDA (?:UMD )?(?:Version|version)\s*:\s*(\d+\.\d+)`)

// cudaVersion returns that version; empty: unknown.
func cudaVersion(ctx context.Context) string {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return ""
	}
	words, err := child.Says(ctx, path)
	if m := cudaLine.FindStringSubmatch(words); err == nil && m != nil {
		return m[1]
	}
	return ""
}

// WebGPU is the browser's adapter.
type WebGPU struct {
	Name         string             `json:"name"`
	Class        record.DeviceClass `json:"class"`
	Vendor       string             `json:"vendor"`
	Architecture string             `json:"architecture"`
	Device       string             `json:"device"`
	Description  string             `json:"description"`
	Fallback     bool               `json:"fallback"`
	Backend      string             `json:"backend,omitempty"`
	Type         string             `json:"type,omitempty"`
	Driver       string             `json:"driver,omitempty"`
	F16          bool               `json:"shader_f16"`
	Features     []string           `json:"features"`
	Limits       map[string]int64   `json:"limits"`
}

// newWebGPU reads a device's details; limits begin with max.
func newWebGPU(d record.Device) *WebGPU {
	w := &WebGPU{Name: d.Name, Class: d.Class, Vendor: d.Detail["vendor"], Architecture: d.Detail["architecture"],
		Device:      d.Detail["device"],
		Description: d.Detail["description"], Fallback: d.Detail["fallback"] == "true",
		Backend: d.Detail[record.DetailBackend], Type: d.Detail[record.DetailType],
		Driver:   d.Detail[record.DetailDriver],
		Features: strings.Fields(d.Detail["features"]),
		Limits:   map[string]int64{}}
	w.F16 = slices.Contains(w.Features, "shader-f16")
	for name, value := range d.Detail {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasPrefix(name, "max") {
			w.Limits[name] = n
		}
	}
	return w
}
