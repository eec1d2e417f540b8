package program

import (
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Part is a program of the ggml family, with the GPUs that it was built for.
func Part(ctx context.Context, kind fault.Kind, path string) engine.Part {
	p := engine.Version(ctx, kind, path, "--version")
	p.Version, p.Backends = strings.TrimPrefix(p.Version, "version: "), Backends(path)
	return p
}

// Found is what an engine could run whose program is a part.
func Found(name string, p engine.Part, here engine.Here) engine.Finding {
	if p.Path == "" {
		return engine.Finding{Name: name, Can: "nothing: it is not here"}
	}
	yes := true // ggml's types have float16 on every processor
	e := engine.Finding{Name: name, Ready: true, Version: p.Version, Path: p.Path, Device: string(record.CPU),
		F16:      &yes,
		Backends: p.Backends}
	switch reach := here.GPU(p.Backends); {
	case len(p.Backends) == 0:
		e.Can = "GGUF files on the processor: it was not built for a GPU, as far as its libraries show"
	case reach == "":
		e.Can = "GGUF files on the processor: it was built for " + strings.Join(p.Backends, ", ") +
			", and there is no such GPU"
	default:
		e.Can = "GGUF files on the processor, and on " + reach + " where it is asked for"
	}
	return e
}

// backendLibraries tell by their names which GPUs a program was built for.
func backendLibraries() [][2]string {
	return [][2]string{{"ggml-cuda", "cuda"}, {"libcuda.so", "cuda"}, {"libcudart", "cuda"}, {"libcublas", "cuda"},
		{"ggml-hip", "hip"},
		{"ggml-rocm", "hip"}, {"libamdhip64", "hip"}, {"librocblas", "hip"}, {"ggml-vulkan", "vulkan"},
		{"libvulkan", "vulkan"}, {"ggml-sycl", "sycl"},
		{"ggml-opencl", "opencl"}, {"libOpenCL", "opencl"}, {"ggml-metal", "metal"}, {"Metal.framework", "metal"}}
}

// Backends names the kinds of GPU that a program of the ggml family was built for: by the libraries that it is linked
// against, and by those that lie where it loads them from: beside it, in ../lib, and in further places. None: it was
// built for none, or shows it otherwise.
func Backends(path string, places ...string) []string {
	var names []string
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	dir := filepath.Dir(path)
	seen := map[string]bool{}
	var linked func(file string)
	linked = func(file string) {
		f, err := elf.Open(file)
		if err != nil {
			return // of another system
		}
		libraries, _ := f.ImportedLibraries() // one that is linked against none names none
		f.Close()
		for _, name := range libraries {
			names = append(names, name)
			for _, at := range []string{dir, filepath.Join(dir, "..", "lib")} {
				if own := filepath.Join(at, name); !seen[own] && exists(own) {
					seen[own] = true
					linked(own)
				}
			}
		}
	}
	linked(path)
	for _, at := range append([]string{"", "../lib"}, places...) {
		beside, _ := filepath.Glob(filepath.Join(dir, at, "*ggml-*")) // the pattern is well formed
		names = append(names, beside...)
	}
	out := []string{}
	for _, l := range backendLibraries() {
		if !slices.Contains(out, l[1]) &&
			slices.ContainsFunc(names, func(n string) bool { return strings.Contains(filepath.Base(n), l[0]) }) {
			out = append(out, l[1])
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
