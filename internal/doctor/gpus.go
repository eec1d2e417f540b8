package doctor

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// GPU is a GPU as it is now.
type GPU struct {
	record.GPUInfo
	FreeB *int64 `json:"free_bytes,omitempty"`
	UsedB *int64 `json:"used_bytes,omitempty"`
}

// findGPUs lists the GPUs, each with what it says of its memory, and what hinders being told more.
func findGPUs(ctx context.Context, o gpu.Options) (infos []record.GPUInfo, found []GPU, notes []string) {
	m := gpu.Open(ctx, o)
	defer m.Close()
	infos, found, notes = m.GPUs(), []GPU{}, []string{}
	for _, w := range m.Warnings() {
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
			continue // it may answer a run that asks again
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
			free := info.MemoryB - *g.UsedB
			g.FreeB = &free
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
	b := int64(v)
	return &b
}

// wanted are the libraries by which programs reach GPUs.
var wanted = []string{"libcuda.so.1", "libnvidia-ml.so.1", "libamdhip64.so", "librocm_smi64.so", "libvulkan.so.1",
	"libOpenCL.so.1", "libze_loader.so.1"}

// findLibraries asks the linker where they are; on a system without its kind of linker nothing is known.
func findLibraries(ctx context.Context) map[string]string {
	path, err := exec.LookPath("ldconfig")
	if err != nil {
		path = "/sbin/ldconfig" // not everybody's PATH has it
	}
	words, err := child.Says(ctx, path, "-p")
	if err != nil {
		return map[string]string{}
	}
	return parseLinker(words)
}

// parseLinker reads the linker's list: a name, what it is for, an arrow, its path.
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

// cudaLine is how nvidia-smi names the newest CUDA that the driver can do.
var cudaLine = regexp.MustCompile(`CUDA (?:UMD )?(?:Version|version)\s*:\s*(\d+\.\d+)`)

// cudaVersion is that version; empty: it is not known.
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
