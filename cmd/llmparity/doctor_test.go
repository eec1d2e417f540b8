package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/mem"

	"llmparity/compare/explain"
	"llmparity/internal/doctor"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/schematest"
)

// reported returns the JSON of doctor.
func reported(t *testing.T, env []string, args ...string) (d doctor.Diagnosis, stderr string, code int) {
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

// partOf finds a part.
func partOf(d doctor.Diagnosis, name string) engine.Part {
	for _, p := range d.Parts {
		if p.Name == name {
			return p
		}
	}
	return engine.Part{}
}

func engineOf(d doctor.Diagnosis, name string) engine.Finding {
	for _, e := range d.Engines {
		if e.Name == name {
			return e
		}
	}
	return engine.Finding{}
}

func TestDoctorDescribesMachine(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v1/models") {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"mouse","object":"model"}]}`)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	d, stderr, code := reported(t, nil, "--adapter", "swiftshader", "--openai-url", server.URL)
	if e := engineOf(d, "openai"); !e.Ready || !strings.Contains(e.Can, "mouse") || e.Path != server.URL {
		t.Errorf("a server that is named: %+v", e)
	}
	if code != 0 || stderr != "" || d.ExitCode != 0 || len(d.Missing) != 0 || d.Schema != doctor.Schema {
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

func checkMachine(t *testing.T, d doctor.Diagnosis) {
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

func checkParts(t *testing.T, d doctor.Diagnosis) {
	for _, name := range []string{"browser", "llama-server", "Ollama", "WebLLM bundle", "emscripten",
		"Python with TVM"} {
		if p := partOf(d, name); p.Version == "" || p.Absent {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for _, name := range []string{"browser", "llama-server", "Ollama"} {
		if _, err := os.Stat(partOf(d, name).Path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func checkAdapter(t *testing.T, d doctor.Diagnosis) {
	g := d.WebGPU
	if g == nil {
		t.Fatal("there is none")
	}
	if g.Class != record.SoftwareAdapter || !strings.Contains(g.Name, "SwiftShader") || g.Vendor == "" ||
		g.Architecture == "" || g.F16 || len(g.Features) < 5 {
		t.Errorf("%+v", g)
	}
	for _, limit := range []string{"maxBufferSize", "maxStorageBufferBindingSize"} {
		if g.Limits[limit] < 128<<20 { // what the standard promises of the second
			t.Errorf("%s: %d", limit, g.Limits[limit])
		}
	}
	if e := engineOf(d, "webllm"); !e.Ready || e.F16 == nil || *e.F16 || e.Device != string(record.SoftwareAdapter) ||
		!strings.Contains(e.Can, "float32") {
		t.Errorf("%+v", e)
	}
	for _, name := range []string{"llamacpp", "ollama"} {
		if e := engineOf(d, name); !e.Ready || e.F16 == nil || !*e.F16 || e.Version == "" {
			t.Errorf("%+v", e)
		}
	}
}

func TestDoctorText(t *testing.T) {
	t.Parallel()
	rule := strings.Repeat("=", 60)
	stdout, _ := well(t, program(t, "env", "--quick"))
	lines := strings.Split(stdout, "\n")
	if len(lines) < 40 || !strings.HasPrefix(lines[0], "Engines ") {
		t.Errorf("the engines are not first:\n%s", stdout)
	}
	mentions(t, stdout, rule+"\nPlatform: ", "\nMachine\n", "\nGPUs\n", "\nParts\n", "llama-server", "Free memory: ",
		"llmparity estimate")
	if strings.Contains(stdout, "maxBufferSize") {
		t.Errorf("a browser was started:\n%s", stdout)
	}
	if strings.Count(stdout, "no supported GPU found")+strings.Count(stdout, "read by") == 0 {
		t.Errorf("nothing of GPUs:\n%s", stdout)
	}
}

func TestDoctorExitCodeIsFirstMissingPart(t *testing.T) {
	t.Parallel()
	bare := t.TempDir()
	d, stderr, code := reported(t, []string{"PATH=" + bare, "LLMPARITY_CHROME=",
		"LLMPARITY_LLAMA_SERVER=/nowhere/llama-server"}, "--chrome", "/nowhere/chrome",
		"--openai-url", "http://127.0.0.1:1", "--ollama", "/nowhere/ollama")
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
		"WebGPU adapter": {fault.NoChrome, "apt install chromium"},
		"OpenAI server":  {fault.ServerUnreachable, "127.0.0.1:1"},
		"Ollama":         {fault.NoOllama, "/nowhere/ollama"}} {
		if p := missing[name]; p.Class != want.class || p.ExitCode != want.class.ExitCode() ||
			!strings.Contains(p.Missing, want.how) || strings.Contains(p.Missing, "\n") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if d.WebGPU != nil || engineOf(d, "webllm").Ready || engineOf(d, "llamacpp").Ready || engineOf(d, "openai").Ready {
		t.Errorf("%+v", d.Engines)
	}
	if d.Banner.Python != "not installed" || d.Machine.CPU == "" {
		t.Errorf("%+v", d.Banner)
	}
}

func TestDoctorPassesWithoutOllama(t *testing.T) {
	t.Parallel()
	d, stderr, code := reported(t, []string{"LLMPARITY_OLLAMA=/nowhere/ollama"}, "--quick")
	if code != 0 || len(d.Missing) > 0 || !partOf(d, "Ollama").Absent || engineOf(d, "ollama").Ready {
		t.Errorf("exit code %d, missing %+v\n%s", code, d.Missing, stderr)
	}
}
