package main

import (
	"context"
	"encoding/json"
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
	"time"

	"github.com/shirou/gopsutil/v3/mem"

	"llmparity/compare/explain"
	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
	"llmparity/internal/schematest"
	programs "llmparity/native/program"
)

// reported runs doctor and reads what it prints for machines.
func reported(t *testing.T, env []string, args ...string) (d diagnosis, stderr string, code int) {
	t.Helper()
	cmd := program(t, append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	stdout, stderr, code := output(t, cmd)
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	schematest.Valid(t, "doctor", []byte(stdout))
	if left, err := os.ReadDir(filepath.Join(cmd.Dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if all, err := os.ReadDir(cmd.Dir); err != nil || len(all) != 1 {
		t.Errorf("in the folder: %v %v", all, err)
	}
	return d, stderr, code
}

// partOf finds a part that is here.
func (d diagnosis) partOf(name string) engine.Part {
	for _, p := range d.Parts {
		if p.Name == name {
			return p
		}
	}
	return engine.Part{}
}

func (d diagnosis) engine(name string) engine.Finding {
	for _, e := range d.Engines {
		if e.Name == name {
			return e
		}
	}
	return engine.Finding{}
}

func TestDoctorTellsOfThisMachine(t *testing.T) {
	d, stderr, code := reported(t, nil, "--adapter", "swiftshader")
	if code != 0 || stderr != "" || d.ExitCode != 0 || len(d.Missing) != 0 || d.Schema != doctorSchema {
		t.Errorf("exit code %d, missing %+v\n%s", code, d.Missing, stderr)
	}
	t.Run("the machine", func(t *testing.T) { checkMachine(t, d) })
	t.Run("the parts", func(t *testing.T) { checkParts(t, d) })
	t.Run("the adapter", func(t *testing.T) { checkAdapter(t, d) })
	var items []string
	for _, c := range d.Checklist {
		items = append(items, c.Item)
	}
	if want := []string{explain.SameModel, explain.SamePrompt, explain.SameMaxTokens, explain.Deterministic,
		explain.QuietMachine, explain.SeveralRuns,
		explain.SystemState}; !slices.Equal(items, want) {
		t.Errorf("%q", items)
	}
}

func checkMachine(t *testing.T, d diagnosis) {
	total, err := mem.VirtualMemory()
	m := d.Machine
	if err != nil || m.MemoryB != int64(total.Total) || m.Cores != runtime.NumCPU() || m.CPU == "" || m.Kernel == "" ||
		m.Arch != runtime.GOARCH ||
		m.Processor == nil || m.Background == nil || len(m.Disks) < 3 {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(d.Banner.Platform, m.Kernel) || d.Banner.Python == "" || d.Banner.CUDA == "" {
		t.Errorf("%+v", d.Banner)
	}
	if d.Fits.RAMB <= 0 || d.Fits.RAMB > m.MemoryB || d.Fits.Within == "" {
		t.Errorf("%+v", d.Fits)
	}
}

func checkParts(t *testing.T, d diagnosis) {
	for _, name := range []string{"browser", "llama-server", "Ollama", "WebLLM bundle", "emscripten",
		"Python with TVM"} {
		if p := d.partOf(name); p.Version == "" || p.Absent {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for _, name := range []string{"browser", "llama-server", "Ollama"} {
		if _, err := os.Stat(d.partOf(name).Path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func checkAdapter(t *testing.T, d diagnosis) {
	g := d.WebGPU
	if g == nil {
		t.Fatal("there is none")
	}
	if g.Class != record.SoftwareAdapter || !strings.Contains(g.Name, "swiftshader") || g.Vendor == "" ||
		g.Architecture == "" || g.F16 || len(g.Features) < 5 {
		t.Errorf("%+v", g)
	}
	for _, limit := range []string{"maxBufferSize", "maxStorageBufferBindingSize"} {
		if g.Limits[limit] < 128<<20 { // what the standard promises of the second
			t.Errorf("%s: %d", limit, g.Limits[limit])
		}
	}
	if e := d.engine("webllm"); !e.Ready || e.F16 == nil || *e.F16 || e.Device != string(record.SoftwareAdapter) ||
		!strings.Contains(e.Can, "float32") {
		t.Errorf("%+v", e)
	}
	for _, name := range []string{"llamacpp", "ollama"} {
		if e := d.engine(name); !e.Ready || e.F16 == nil || !*e.F16 || e.Version == "" {
			t.Errorf("%+v", e)
		}
	}
}

func TestDoctorInWords(t *testing.T) {
	stdout, stderr, code := output(t, program(t, "env", "--quick"))
	if code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(stdout, "\n")
	if len(lines) < 40 || lines[0] != rule || lines[1] != "llmparity - Environment Information" || lines[2] != rule ||
		!strings.HasPrefix(lines[3], "Platform: ") ||
		!strings.HasPrefix(lines[4], "Python: ") || !strings.HasPrefix(lines[5], "CUDA: ") {
		t.Errorf("the banner:\n%s", stdout)
	}
	for _, want := range []string{"\nMachine\n", "\nGPUs\n", "\nParts\n", "llama-server", "Free for a model: ",
		"llmparity estimate"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "maxBufferSize") {
		t.Errorf("a browser was started:\n%s", stdout)
	}
	if strings.Count(stdout, "no GPU was found")+strings.Count(stdout, "read by") == 0 {
		t.Errorf("nothing of GPUs:\n%s", stdout)
	}
}

func TestDoctorNamesWhatIsMissingFirst(t *testing.T) {
	bare := t.TempDir()
	d, stderr, code := reported(t, []string{"PATH=" + bare, "LLMPARITY_CHROME=",
		"LLMPARITY_LLAMA_SERVER=/nowhere/llama-server"}, "--chrome", "/nowhere/chrome")
	if code != fault.NoChrome.ExitCode() || d.ExitCode != code ||
		!strings.Contains(lastLine(stderr), "/nowhere/chrome") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	missing := map[string]engine.Part{}
	for _, p := range d.Missing {
		missing[p.Name] = p
	}
	for name, want := range map[string]struct {
		class fault.Kind
		how   string
	}{"browser": {fault.NoChrome, "apt install chromium"}, "llama-server": {fault.NoLlamaServer, "make setup"},
		"emscripten":     {fault.NoEmscripten, "make setup"},
		"WebGPU adapter": {fault.NoChrome, "apt install chromium"}} {
		if p := missing[name]; p.Class != want.class || p.ExitCode != want.class.ExitCode() ||
			!strings.Contains(p.Missing, want.how) || strings.Contains(p.Missing, "\n") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if d.WebGPU != nil || d.engine("webllm").Ready || d.engine("llamacpp").Ready {
		t.Errorf("%+v", d.Engines)
	}
	if d.Banner.Python != notInstalled || d.Machine.CPU == "" {
		t.Errorf("%+v", d.Banner)
	}
}

func TestDoctorAsksAServerThatIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v1/models") {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"mouse","object":"model"}]}`)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	d, stderr, code := reported(t, nil, "--quick", "--openai-url", server.URL)
	if e := d.engine("openai"); code != 0 || !e.Ready || !strings.Contains(e.Can, "mouse") || e.Path != server.URL {
		t.Errorf("exit code %d, %+v\n%s", code, e, stderr)
	}
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	if found := findServers(t.Context(), []string{"1", port}); len(found) != 1 || found[0].Path != server.URL ||
		!strings.Contains(found[0].Detail, "mouse") {
		t.Errorf("%+v", found)
	}
	server.Close()
	if d, _, code = reported(t, nil, "--quick", "--openai-url",
		server.URL); code != fault.ServerUnreachable.ExitCode() ||
		d.ExitCode != code || d.engine("openai").Ready {
		t.Errorf("exit code %d, %+v", code, d.engine("openai"))
	}
}

// A program that hangs, or prints without end, or leaves others behind, is no reason to hang.
func TestAProgramThatDoesNotSayWhatItIs(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := child.Says(soon, "sh", "-c", "sleep 1000 & sleep 1000"); err == nil || soon.Err() == nil {
		t.Errorf("it hangs: %v", err)
	}
	if words, err := child.Says(t.Context(), "sh", "-c", "sleep 1000 & echo done"); err != nil ||
		child.LastLine(words) != "done" {
		t.Errorf("%q, %v", words, err)
	}
	words, err := child.Says(t.Context(), "sh", "-c",
		"echo first; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo last")
	if err != nil || len(words) > child.MostSaid || child.LastLine(words) != "last" {
		t.Errorf("%d bytes, %v", len(words), err)
	}
	if _, err := child.Says(t.Context(), "sh", "-c", "echo sorry >&2; exit 3"); err == nil ||
		!strings.Contains(err.Error(), "sorry") {
		t.Errorf("%v", err)
	}
}

// A Go that is asked for its version in the folder of a project that wants a newer one would fetch that.
func TestNothingIsFetched(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOTOOLCHAIN", "auto")
	t.Setenv("GOPROXY", "off")
	if err := os.WriteFile("go.mod", []byte("module x\n\ngo 1.99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := spare("go", "", "version").Find(t.Context()); p.Absent || !strings.HasPrefix(p.Version, "go version go") {
		t.Errorf("%+v", p)
	}
}

// The programs here were built for processors alone; one that loads a GPU's library from beside it was not.
func TestWhatAProgramWasBuiltFor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin/llama-server", "bin/libggml-cuda.so", "lib/ollama/cuda_v12/libggml-cuda.so",
		"lib/ollama/rocm/libggml-hip.so", "bin/ollama"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := programs.Backends(filepath.Join(dir, "bin", "llama-server")); !slices.Equal(
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

func TestWhatBackendsReach(t *testing.T) {
	nvidia := gpuFound{GPUInfo: record.GPUInfo{Role: "gpu0", Name: "L4", Vendor: "NVIDIA"}}
	amd := gpuFound{GPUInfo: record.GPUInfo{Role: "gpu0", Name: "W7900", Vendor: "AMD", Driver: "amdgpu"}}
	for _, c := range []struct {
		backends []string
		gpus     []gpuFound
		want     string
	}{
		{nil, []gpuFound{nvidia}, "not built for a GPU"}, {[]string{"cuda"}, nil, "no such GPU"},
		{[]string{"cuda"}, []gpuFound{amd}, "no such GPU"},
		{[]string{"cuda"}, []gpuFound{nvidia}, "on gpu0 (L4)"}, {[]string{"hip"}, []gpuFound{amd}, "on gpu0 (W7900)"},
		{[]string{"vulkan"}, []gpuFound{amd}, "on gpu0 (W7900)"},
	} {
		if e := programs.Found("x", engine.Part{Path: "/x", Backends: c.backends},
			engine.Here{GPU: func(b []string) string { return reached(b, c.gpus) }}); !strings.Contains(e.Can, c.want) {
			t.Errorf("%v on %v: %s", c.backends, c.gpus, e.Can)
		}
	}
}

// A machine with an AMD GPU, as the kernel shows it.
func TestDoctorReportsFreeGPUMemory(t *testing.T) {
	o := gpu.Options{Sys: t.TempDir(), Proc: t.TempDir(), Path: []string{}}
	for name, text := range map[string]string{"uevent": "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n",
		"drm/renderD128/dev": "226:128\n",
		"mem_info_vram_used": "1073741824\n", "mem_info_vram_total": "25753026560\n"} {
		path := filepath.Join(o.Sys, "class/drm/card0/device", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	infos, found, notes := findGPUs(t.Context(), o)
	if len(infos) != 1 || len(found) != 1 || found[0].UsedB == nil || *found[0].UsedB != 1<<30 ||
		found[0].FreeB == nil || *found[0].FreeB != 25753026560-1<<30 {
		t.Fatalf("%+v %+v %v", infos, found, notes)
	}
	if f := newFits(t.Context(), found); f.VRAMB != 25753026560-1<<30 {
		t.Errorf("%+v", f)
	}
	d := diagnosis{GPUs: found, GPUNotes: notes}
	if rows := d.gpuRows(); rows[0][0] != "gpu0" ||
		!strings.Contains(rows[0][1], "24.0 GiB, 23.0 GiB free, driver amdgpu, read by "+gpu.Sysfs) {
		t.Errorf("%q", rows)
	}
	if _, found, _ := findGPUs(t.Context(), gpu.Options{Sys: t.TempDir(), Proc: t.TempDir(), Path: []string{}}); len(
		found) != 0 {
		t.Errorf("%+v", found)
	}
}

func TestTheBannerOfAMachineWithGPUs(t *testing.T) {
	e := record.Environment{Kernel: "6.14.0", Arch: "amd64"}
	p := pythonFound{Version: "3.13.7", LibC: "glibc2.35",
		Packages: map[string]string{"torch": "2.7.1", "transformers": "4.56.0"}}
	g := []gpuFound{{GPUInfo: record.GPUInfo{Role: "gpu0", Name: "NVIDIA GeForce RTX 4090", Vendor: "nvidia",
		MemoryB: 24 << 30}}}
	b := newBanner(e, p, "12.6", g)
	var text strings.Builder
	(&diagnosis{Banner: b}).printBanner(func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) })
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

func TestTheLinkersList(t *testing.T) {
	want := map[string]string{"libvulkan.so.1": "/lib/x86_64-linux-gnu/libvulkan.so.1",
		"libnvidia-ml.so.1": "/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
		"libcuda.so.1":      "/lib/x86_64-linux-gnu/libcuda.so.1", "libamdhip64.so": "/opt/rocm/lib/libamdhip64.so.6"}
	if got := parseLinker(linkerList); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// The list of a machine with many libraries is long, and those of GPUs may stand first in it.
func TestTheLinkersListIsReadWhole(t *testing.T) {
	dir := t.TempDir()
	list := "3000 libs found in cache\n\tlibvulkan.so.1 (libc6,x86-64) => /lib/libvulkan.so.1\n" +
		strings.Repeat("\tlibof-a-desktop-with-many-programs.so.1 (libc6,x86-64) => /lib/libof-a-desktop-with-many-programs.so.1\n", 5000)
	for name, text := range map[string]string{"list": list, "ldconfig": "#!/bin/sh\nexec cat \"${0%/*}\"/list\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if got := findLibraries(t.Context()); !maps.Equal(got, map[string]string{"libvulkan.so.1": "/lib/libvulkan.so.1"}) {
		t.Errorf("%v", got)
	}
}

func FuzzTheLinkersList(f *testing.F) {
	f.Add(linkerList)
	f.Add("libcuda.so.1 => \n =>\n\t => x")
	f.Fuzz(func(t *testing.T, text string) {
		for name, path := range parseLinker(text) {
			if !slices.Contains(wanted(), name) || !strings.Contains(text, path) {
				t.Errorf("%q at %q", name, path)
			}
		}
	})
}

func TestWhatNvidiaSMISaysOfCUDA(t *testing.T) {
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
