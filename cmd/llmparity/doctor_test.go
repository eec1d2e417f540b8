package main

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/compare/explain"
	"llmparity/internal/bench/doctor"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

// reported returns the JSON of doctor.
func reported(t *testing.T, env []string, args ...string) (doctor.Diagnosis, string, int) {
	t.Helper()
	cmd := program(t, append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	stdout, stderr, code := output(t, cmd)
	schematest.Valid(t, "doctor", []byte(stdout))
	if left := append(filesIn(t, filepath.Join(cmd.Dir, "tmp")), filesIn(t, cmd.Dir)...); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	return decoded[doctor.Diagnosis](t, stdout), stderr, code
}

// partOf finds a part, or returns an empty one.
func partOf(d doctor.Diagnosis, name string) engine.Part {
	parts := append(d.Parts, engine.Part{Name: name})
	return parts[slices.IndexFunc(parts, func(p engine.Part) bool { return p.Name == name })]
}

func engineOf(d doctor.Diagnosis, name string) engine.Finding {
	all := append(d.Engines, engine.Finding{Name: name})
	return all[slices.IndexFunc(all, func(e engine.Finding) bool { return e.Name == name })]
}

func TestDoctorDescribesMachine(t *testing.T) {
	browserTest(t)
	t.Parallel()
	server := served(t, "mouse")
	d, stderr, code := reported(t, nil, "--adapter", "swiftshader", "--openai-url", server)
	if e := engineOf(d, "openai"); !e.Ready || !strings.Contains(e.Can, "mouse") || e.Path != server {
		t.Errorf("a server that is named: %+v", e)
	}
	if code != 0 || stderr != "" || d.ExitCode != 0 || len(d.Missing) != 0 || d.Schema != doctor.Schema {
		t.Errorf("exit code %d, missing %+v\n%s", code, d.Missing, stderr)
	}
	t.Run("the machine", func(t *testing.T) { checkMachine(t, d) })
	t.Run("the parts", func(t *testing.T) { checkParts(t, d) })
	t.Run("the adapter", func(t *testing.T) { checkAdapter(t, d) })
	for i, item := range []string{explain.SameModel, explain.SamePrompt, explain.SameMaxTokens, explain.Deterministic,
		explain.QuietMachine, explain.SeveralRuns, explain.SystemState} {
		if d.Checklist[i].Item != item {
			t.Errorf("%+v, want %s", d.Checklist[i], item)
		}
	}
}

func checkMachine(t *testing.T, d doctor.Diagnosis) {
	m := d.Machine
	if m.MemoryB == 0 || m.Cores != runtime.NumCPU() || m.CPU == "" || m.Kernel == "" || m.Arch != runtime.GOARCH ||
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
		if path := partOf(d, name).Path; !there(path) {
			t.Errorf("%s: there is no %s", name, path)
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

// Without a GPU, doctor says what was tried to reach one, and what answered.
func TestDoctorShowsWhatWasTried(t *testing.T) {
	browserTest(t)
	t.Parallel()
	if !browser.Auto.Software() {
		t.Skip("there is a GPU here")
	}
	const first = "no flags: SwiftShader (software-adapter, vulkan)"
	stdout, _ := well(t, program(t, "doctor", "--adapter", "gpu"), "tried             "+first, "tried             Vulkan: ",
		"tried             a window: ", "backend", "SwiftShader driver")
	if n := strings.Count(stdout, "  tried  "); n != 4 {
		t.Errorf("%d ways:\n%s", n, stdout)
	}
}

func TestDoctorText(t *testing.T) {
	browserTest(t)
	t.Parallel()
	rule := strings.Repeat("=", 60)
	stdout, _ := well(t, program(t, "env", "--quick"), rule+"\nPlatform: ", "\nMachine\n", "\nGPUs\n", "\nParts\n",
		"llama-server", "Free memory: ", "llmparity estimate")
	if !strings.HasPrefix(stdout, "Engines ") || strings.Contains(stdout, "maxBufferSize") {
		t.Errorf("the engines are not first, or a browser was started:\n%s", stdout)
	}
	if strings.Count(stdout, "no supported GPU found")+strings.Count(stdout, "read by") == 0 {
		t.Errorf("nothing of GPUs:\n%s", stdout)
	}
}

func TestDoctorExitCodeIsFirstMissingPart(t *testing.T) {
	lightTest(t)
	t.Parallel()
	bare := t.TempDir()
	d, stderr, code := reported(t, []string{"PATH=" + bare, "LLMPARITY_CHROME=",
		"LLMPARITY_LLAMA_SERVER=/nowhere/llama-server"}, "--chrome", "/nowhere/chrome",
		"--openai-url", "http://127.0.0.1:1", "--ollama", "/nowhere/ollama")
	if code != fault.NoChrome.ExitCode() || d.ExitCode != code ||
		!strings.Contains(lastLine(stderr), "/nowhere/chrome") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	d.Parts = d.Missing
	for name, want := range map[string]struct {
		class fault.Kind
		how   string
	}{"browser": {fault.NoChrome, "apt install chromium"}, "llama-server": {fault.NoLlamaServer, "make setup"},
		"emscripten":     {fault.NoEmscripten, "make setup"},
		"WebGPU adapter": {fault.NoChrome, "apt install chromium"},
		"OpenAI server":  {fault.ServerUnreachable, "127.0.0.1:1"},
		"Ollama":         {fault.NoOllama, "/nowhere/ollama"}} {
		if p := partOf(d, name); p.Class != want.class || p.ExitCode != want.class.ExitCode() ||
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
	browserTest(t)
	t.Parallel()
	d, stderr, code := reported(t, []string{"LLMPARITY_OLLAMA=/nowhere/ollama"}, "--quick")
	if code != 0 || len(d.Missing) > 0 || !partOf(d, "Ollama").Absent || engineOf(d, "ollama").Ready {
		t.Errorf("exit code %d, missing %+v\n%s", code, d.Missing, stderr)
	}
}
