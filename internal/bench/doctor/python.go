package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/record"
)

// pythonFound is the Python on PATH, with its packages that run language models.
type pythonFound struct {
	Version  string            `json:"version"`
	Path     string            `json:"path"`
	LibC     string            `json:"libc"`
	Packages map[string]string `json:"packages"`
}

// pythonPackages run language models.
var pythonPackages = []string{"torch", "transformers", "accelerate", "vllm", "llama-cpp-python", "onnxruntime"}

// pythonQuestion reads versions from metadata: importing torch takes seconds.
const pythonQuestion = `import json, platform, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try: found[name] = metadata.version(name)
    except Exception: pass
print(json.dumps({"version": platform.python_version(), "path": sys.executable, "libc": "".join(platform.libc_ver()), "packages": found}))`

// findPython asks the Python on PATH; empty if there is none.
func findPython(ctx context.Context) pythonFound {
	for _, name := range []string{"python3", "python"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		words, err := child.Says(ctx, path, append([]string{"-c", pythonQuestion}, pythonPackages...)...)
		var p pythonFound
		if err == nil && json.Unmarshal([]byte(child.LastLine(words)), &p) == nil {
			return p
		}
	}
	return pythonFound{}
}

func (p pythonFound) part() engine.Part {
	out := engine.Part{Name: "Python on PATH", Version: p.Version, Path: p.Path, Absent: p.Version == ""}
	var names []string
	for _, name := range pythonPackages {
		if v := p.Packages[name]; v != "" {
			names = append(names, name+" "+v)
		}
	}
	out.Detail = "without torch, transformers and vllm"
	if len(names) > 0 {
		out.Detail = "with " + strings.Join(names, ", ")
	}
	return out
}

// Banner has the same lines as common Python tools for language models.
type Banner struct {
	Platform     string   `json:"platform"`
	Python       string   `json:"python"`
	CUDA         string   `json:"cuda"`
	Devices      []string `json:"devices"`
	PyTorch      string   `json:"pytorch"`
	Transformers string   `json:"transformers"`
}

const (
	notInstalled = "not installed"
	notAvailable = "not available"
)

func newBanner(e record.Environment, p pythonFound, cuda string, gpus []GPU) Banner {
	b := Banner{Platform: platformOf(e, p.LibC), Python: cmp.Or(p.Version, notInstalled), CUDA: notAvailable,
		Devices:      []string{},
		PyTorch:      cmp.Or(p.Packages["torch"], notInstalled),
		Transformers: cmp.Or(p.Packages["transformers"], notInstalled)}
	nvidia := 0
	for _, g := range gpus {
		if strings.EqualFold(g.Vendor, "nvidia") && g.Part == "" {
			nvidia++
		}
		size := "memory unknown"
		if g.MemoryB > 0 {
			size = fmt.Sprintf("%.1f GB", float64(g.MemoryB)/(1<<30))
		}
		b.Devices = append(b.Devices, g.Name+": "+size)
	}
	if nvidia > 0 {
		b.CUDA = fmt.Sprintf("%s (%d device(s))", cmp.Or(cuda, "version unknown"), nvidia)
	}
	return b
}

// platformOf formats the platform like Python's platform.platform().
func platformOf(e record.Environment, libc string) string {
	system := map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	arch := cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[e.Arch], e.Arch)
	out := system + "-" + e.Kernel
	if !strings.HasSuffix(e.Kernel, arch) {
		out += "-" + arch
	}
	if libc != "" {
		out += "-with-" + libc
	}
	return out
}
