package program

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Found says what an engine with this program could run.
func Found(name string, p engine.Part, here engine.Here) engine.Finding {
	if p.Path == "" {
		return engine.Finding{Name: name, Can: "not installed"}
	}
	yes := true // ggml supports float16 on every processor
	e := engine.Finding{Name: name, Ready: true, Version: p.Version, Path: p.Path, Device: string(record.CPU),
		F16:      &yes,
		Backends: p.Backends}
	switch reach := here.GPU(p.Backends); {
	case len(p.Backends) == 0:
		e.Can = "run GGUF files on the CPU (no GPU backend found in its libraries)"
	case reach == "":
		e.Can = "run GGUF files on the CPU (built for " + strings.Join(p.Backends, ", ") + ", but no such GPU here)"
	default:
		e.Can = "run GGUF files on the CPU, or on " + reach + " on request"
	}
	return e
}

// backendLibraries maps parts of library names to GPU backends.
var backendLibraries = [][2]string{{"ggml-cuda", "cuda"}, {"libcuda.so", "cuda"}, {"libcudart", "cuda"},
	{"libcublas", "cuda"}, {"ggml-hip", "hip"}, {"ggml-rocm", "hip"}, {"libamdhip64", "hip"}, {"librocblas", "hip"},
	{"ggml-vulkan", "vulkan"}, {"libvulkan", "vulkan"}, {"ggml-sycl", "sycl"}, {"ggml-opencl", "opencl"},
	{"libOpenCL", "opencl"}, {"ggml-metal", "metal"}, {"Metal.framework", "metal"}}

// Backends returns the GPU backends that a ggml program was built for, judging by the names of its ggml libraries and
// of what it and they are linked against. They are in the places from which it loads some: its own folder, ../lib, and
// others.
func Backends(path string, places ...string) []string {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	dir := filepath.Dir(path)
	files := []string{path}
	for _, at := range append([]string{"", "../lib"}, places...) {
		beside, _ := filepath.Glob(filepath.Join(dir, at, "*ggml*")) // the pattern is valid
		files = append(files, beside...)
	}
	names := slices.Clone(files)
	for _, file := range files {
		if f, err := elf.Open(file); err == nil { // else not ELF
			libraries, _ := f.ImportedLibraries() // none if statically linked
			names = append(names, libraries...)
			f.Close()
		}
	}
	out := []string{}
	for _, l := range backendLibraries {
		if !slices.Contains(out, l[1]) &&
			slices.ContainsFunc(names, func(n string) bool { return strings.Contains(filepath.Base(n), l[0]) }) {
			out = append(out, l[1])
		}
	}
	return out
}
