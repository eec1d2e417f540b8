package doctor

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	programs "llmparity/native/program"
)

func TestServersAreFoundByPort(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"mouse","object":"model"}]}`)
	}))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	if found := findServers(t.Context(), kinds.All, []string{"1", port}); len(found) != 1 ||
		found[0].Path != server.URL || !strings.Contains(found[0].Detail, "mouse") {
		t.Errorf("%+v", found)
	}
}

// `go version` would download the toolchain that a project's go.mod asks for.
func TestDoctorDownloadsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOTOOLCHAIN", "auto")
	t.Setenv("GOPROXY", "off")
	check.Err(t, os.WriteFile("go.mod", []byte("module x\n\ngo 1.99\n"), 0o600))
	if p := spare("go", "", "version").Find(t.Context()); p.Absent || !strings.HasPrefix(p.Version, "go version go") {
		t.Errorf("%+v", p)
	}
}

// Backends are found by the libraries beside a program.
func TestBackendsOfPrograms(t *testing.T) {
	dir := check.Tree(t, t.TempDir(), map[string]string{"bin/llama-server": "", "bin/libggml-cuda.so": "",
		"lib/ollama/cuda_v12/libggml-cuda.so": "", "lib/ollama/rocm/libggml-hip.so": "", "bin/ollama": ""})
	if got := programs.Backends(filepath.Join(dir, "bin", "llama-server"), "../lib/ollama/*"); !slices.Equal(
		got, []string{"cuda", "hip"}) {
		t.Errorf("%q", got)
	}
	if got := programs.Backends(filepath.Join(dir, "nowhere", "llama-server")); len(got) != 0 {
		t.Errorf("of none: %q", got)
	}
	if got := programs.Backends("/bin/sh"); len(got) != 0 {
		t.Errorf("of a shell: %q", got)
	}
}

func TestGPUsThatBackendsUse(t *testing.T) {
	nvidia := GPU{GPUInfo: record.GPUInfo{Role: "gpu0", Name: "L4", Vendor: "NVIDIA"}}
	amd := GPU{GPUInfo: record.GPUInfo{Role: "gpu0", Name: "W7900", Vendor: "AMD", Driver: "amdgpu"}}
	for _, c := range []struct {
		backends []string
		gpus     []GPU
		want     string
	}{
		{nil, []GPU{nvidia}, "no GPU backend"}, {[]string{"cuda"}, nil, "no such GPU"},
		{[]string{"cuda"}, []GPU{amd}, "no such GPU"},
		{[]string{"cuda"}, []GPU{nvidia}, "or on gpu0 (L4)"}, {[]string{"hip"}, []GPU{amd}, "or on gpu0 (W7900)"},
		{[]string{"vulkan"}, []GPU{amd}, "or on gpu0 (W7900)"},
	} {
		if e := programs.Found("x", engine.Part{Path: "/x", Backends: c.backends},
			engine.Here{GPU: func(b []string) string { return reached(b, c.gpus) }}); !strings.Contains(e.Can, c.want) {
			t.Errorf("%v on %v: %s", c.backends, c.gpus, e.Can)
		}
	}
}

// An AMD GPU in sysfs.
func TestDoctorReportsFreeGPUMemory(t *testing.T) {
	o := gpu.Options{Sys: t.TempDir(), Proc: t.TempDir()}
	check.Tree(t, filepath.Join(o.Sys, "class/drm/card0/device"), map[string]string{
		"uevent":             "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n",
		"drm/renderD128/dev": "226:128\n", "mem_info_vram_used": "1073741824\n",
		"mem_info_vram_total": "25753026560\n"})
	infos, found, notes := findGPUs(t.Context(), o)
	if len(infos) != 1 || len(found) != 1 || found[0].UsedB == nil || *found[0].UsedB != 1<<30 ||
		found[0].FreeB == nil || *found[0].FreeB != 25753026560-1<<30 {
		t.Fatalf("%+v %+v %v", infos, found, notes)
	}
	if f := newFits(t.Context(), found); f.VRAMB != 25753026560-1<<30 {
		t.Errorf("%+v", f)
	}
	d := Diagnosis{GPUs: found, GPUNotes: notes}
	if rows := d.gpuRows(); rows[0][0] != "gpu0" ||
		!strings.Contains(rows[0][1], "24.0 GiB, 23.0 GiB free, driver amdgpu, read by "+gpu.Sysfs) {
		t.Errorf("%q", rows)
	}
	if _, found, _ := findGPUs(t.Context(), gpu.Options{Sys: t.TempDir(), Proc: t.TempDir()}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// A program that does not answer in time is not missing, but what needs it cannot be promised.
func TestSilentPartsAreNotCalledMissing(t *testing.T) {
	var d Diagnosis
	d.sort([]engine.Part{{Name: "emscripten", Err: fault.Wrap(fault.NoEmscripten, child.NoAnswer{},
		"the machine may be busy: try again", "emcc")}})
	rows := d.partRows()
	if len(rows) != 1 || rows[0][0] != "unknown" || strings.Contains(rows[0][1], "setup") ||
		!strings.HasSuffix(rows[0][1], "emcc: no answer within 30s; the machine may be busy: try again") {
		t.Errorf("%q", rows)
	}
	if err := d.Err(); d.ExitCode != 4 || fault.Of(err) != fault.NoEmscripten ||
		!strings.HasPrefix(err.Error(), "something did not answer: ") {
		t.Errorf("exit code %d, %v", d.ExitCode, err)
	}
}

func TestBannerWithGPUs(t *testing.T) {
	e := record.Environment{Kernel: "6.14.0", Arch: "amd64"}
	p := pythonFound{Version: "3.13.7", LibC: "glibc2.35",
		Packages: map[string]string{"torch": "2.7.1", "transformers": "4.56.0"}}
	g := []GPU{{GPUInfo: record.GPUInfo{Role: "gpu0", Name: "NVIDIA GeForce RTX 4090", Vendor: "nvidia",
		MemoryB: 24 << 30}}}
	b := newBanner(e, p, "12.6", g)
	var text strings.Builder
	(&Diagnosis{Banner: b}).printBanner(func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) })
	want := strings.Join([]string{rule, "llmparity - Environment Information", rule,
		"Platform: Linux-6.14.0-x86_64-with-glibc2.35", "Python: 3.13.7",
		"CUDA: 12.6 (1 device(s))", "  - NVIDIA GeForce RTX 4090: 24.0 GB", "PyTorch: 2.7.1", "Transformers: 4.56.0",
		rule, ""}, "\n")
	if runtime.GOOS == "linux" && text.String() != want {
		t.Errorf("%s\nwant\n%s", text.String(), want)
	}
	if b := newBanner(e, pythonFound{}, "", nil); b.Python != notInstalled || b.CUDA != notAvailable ||
		len(b.Devices) != 0 {
		t.Errorf("%+v", b)
	}
}

const linkerList = `1205 libs found in cache '/etc/ld.so.cache'
	libvulkan.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libvulkan.so.1
	libnvidia-ml.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libnvidia-ml.so.1
	libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1
	libcuda.so.1 (libc6) => /lib/i386-linux-gnu/libcuda.so.1
	libcuda.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so
	libamdhip64.so.6 (libc6,x86-64) => /opt/rocm/lib/libamdhip64.so.6
Cache generated by: ldconfig (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36
`

func TestLinkerList(t *testing.T) {
	want := map[string]string{"libvulkan.so.1": "/lib/x86_64-linux-gnu/libvulkan.so.1",
		"libnvidia-ml.so.1": "/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
		"libcuda.so.1":      "/lib/x86_64-linux-gnu/libcuda.so.1", "libamdhip64.so": "/opt/rocm/lib/libamdhip64.so.6"}
	if got := parseLinker(linkerList); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// The list can be long, with GPU libraries first.
func TestLinkerListIsReadCompletely(t *testing.T) {
	dir := t.TempDir()
	list := "3000 libs found in cache\n\tlibvulkan.so.1 (libc6,x86-64) => /lib/libvulkan.so.1\n" +
		strings.Repeat("\tlibof-a-desktop-with-many-programs.so.1 (libc6,x86-64) => /lib/libof-a-desktop-with-many-programs.so.1\n", 5000)
	for name, text := range map[string]string{"list": list, "ldconfig": "#!/bin/sh\nexec cat \"${0%/*}\"/list\n"} {
		check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if got := findLibraries(t.Context()); !maps.Equal(got, map[string]string{"libvulkan.so.1": "/lib/libvulkan.so.1"}) {
		t.Errorf("%v", got)
	}
}

func FuzzLinkerList(f *testing.F) {
	f.Add(linkerList)
	f.Add("libcuda.so.1 => \n =>\n\t => x")
	f.Fuzz(func(t *testing.T, text string) {
		for name, path := range parseLinker(text) {
			if !slices.Contains(wanted, name) || !strings.Contains(text, path) {
				t.Errorf("%q at %q", name, path)
			}
		}
	})
}

func TestCUDAVersion(t *testing.T) {
	for words, want := range map[string]string{
		"| NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6     |": "12.6",
		"CUDA Version        : 12.4": "12.4", "CUDA UMD Version: 13.0": "13.0", "No devices were found": "",
		"CUDA Version: N/A": "",
	} {
		got := ""
		if m := cudaLine.FindStringSubmatch(words); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
