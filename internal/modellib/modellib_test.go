package modellib_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	program "llmparity/assets/modellib"
	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/modellib"
)

// asParent names the cache folder that the test binary builds in, as a parent process that a test kills.
const asParent = "MODELLIB_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asParent); dir != "" {
		_, err := modellib.Build(context.Background(), modellib.FindTools(dir, os.Getenv), small, software, nil)
		fmt.Println(err) // only seen when it was not killed
		return
	}
	goleak.VerifyTestMain(m)
}

var software = modellib.Variant{Kernels: "software", Sort: "partial"}

var small = modellib.Shape{
	ModelType: "llama", DType: "float32", HiddenSize: 24, IntermediateSize: 40, NumHiddenLayers: 1,
	NumAttentionHeads: 4,
	NumKeyValueHeads:  2, HeadDim: 6, VocabSize: 50, RopeTheta: 10000, RMSNormEps: 1e-5, ContextWindowSize: 64,
	PrefillChunkSize: 32,
}

// realTools returns the installed tools.
func realTools(t *testing.T) modellib.Tools {
	t.Helper()
	return modellib.FindTools(cache.Dir(os.Getenv), os.Getenv)
}

// ownCache returns a cache folder with only the runtime, which takes almost a minute to compile.
func ownCache(t *testing.T, tools modellib.Tools) string {
	t.Helper()
	if _, err := modellib.Build(t.Context(), tools, small, software, func(step string) { t.Log(step) }); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "modellib"), 0o755); err != nil {
		t.Fatal(err)
	}
	runtimes, err := filepath.Glob(filepath.Join(tools.Cache, "modellib", "runtime-*.o"))
	if err != nil || len(runtimes) == 0 {
		t.Fatalf("no runtime in %s: %v", tools.Cache, err)
	}
	for _, path := range runtimes {
		if err := os.Symlink(path, filepath.Join(dir, "modellib", filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBuild(t *testing.T) {
	tools := realTools(t)
	real := tools.Cache
	tools.Cache = ownCache(t, tools)
	var steps []string
	built, err := modellib.Build(t.Context(), tools, small, software, func(step string) { steps = append(steps, step) })
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(built.Path) != modellib.Key(small, software)+".wasm" || len(built.SHA256) != 64 {
		t.Errorf("built: %+v", built)
	}
	if len(steps) == 0 || strings.Contains(strings.Join(steps, "\n"), "runtime") {
		t.Errorf("steps %q: the library alone was to be compiled", steps)
	}
	content, err := os.ReadFile(built.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\x00asm\x01\x00\x00\x00", "TVMFFIFunctionCall", "TVMWasmAllocSpace", // what the page calls
		"create_tir_paged_kv_cache", "sample_with_top_p", "apply_penalty_inplace", // what the engine looks up
		"fn attend_decode_kernel(", `"model.layers.0.self_attn.qkv_proj.weight"`, `"prefill_chunk_size": 32`,
	} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the library lacks %q", want)
		}
	}
	home, _ := os.UserHomeDir()
	for _, path := range []string{home + "/", tools.Cache, real, os.TempDir() + "/"} {
		if bytes.Contains(content, []byte(path)) {
			t.Errorf("the library names a path of this machine: %s", path)
		}
	}
	if left := child.Scratches(os.Getpid()); len(left) != 0 {
		t.Errorf("left behind: %s", left)
	}

	// A second build needs no tools, and another compilation gives the same bytes.
	again, err := modellib.Build(t.Context(), modellib.Tools{Cache: tools.Cache}, small, software, nil)
	if err != nil || again != built {
		t.Errorf("from the cache: %+v, %v", again, err)
	}
	if other, err := modellib.Build(t.Context(), modellib.Tools{Cache: real}, small, software, nil); err != nil ||
		other.SHA256 != built.SHA256 {
		t.Errorf("compiled twice: %s and %s, %v", built.SHA256, other.SHA256, err)
	}
}

func TestKeyDependsOnEveryField(t *testing.T) {
	seen := map[string]string{modellib.Key(small, software): "nothing"}
	for i := range reflect.TypeFor[modellib.Shape]().NumField() {
		s := small
		switch f := reflect.ValueOf(&s).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		case reflect.Float64:
			f.SetFloat(f.Float() * 2)
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Slice:
			f.Set(reflect.ValueOf([]float64{1, 2, 3}))
		}
		name := reflect.TypeFor[modellib.Shape]().Field(i).Name
		key := modellib.Key(s, software)
		if with, ok := seen[key]; ok {
			t.Errorf("%s and %s changed give one key", name, with)
		}
		seen[key] = name
	}
	for _, v := range []modellib.Variant{{Kernels: "gpu", Sort: "partial"}, {Kernels: "software", Sort: "full"}} {
		key := modellib.Key(small, v)
		if with, ok := seen[key]; ok {
			t.Errorf("%s and %s changed give one key", v, with)
		}
		seen[key] = v.String()
	}
}

func TestRefusedVariants(t *testing.T) {
	for _, v := range []modellib.Variant{{}, {Kernels: "software"}, {Sort: "full"}, {Kernels: "fast", Sort: "full"},
		{Kernels: "gpu", Sort: "none"}} {
		err := v.Validate()
		if fault.Of(err) != fault.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", v, err)
		}
		if _, build := modellib.Build(t.Context(), modellib.Tools{}, small, v, nil); build == nil ||
			build.Error() != err.Error() {
			t.Errorf("%+v: Build says %v", v, build)
		}
	}
}

// The compiler refuses bad shapes in one line that names the field.
func TestRefusedShapes(t *testing.T) {
	cases := []struct {
		field  string
		change func(*modellib.Shape)
	}{
		{"", func(*modellib.Shape) {}},
		{"", func(s *modellib.Shape) { s.DType = "float16" }},
		{"", func(s *modellib.Shape) { s.ModelType, s.AttentionBias = "qwen2", true }},
		{"", func(s *modellib.Shape) { s.RopeFactors, s.SlidingWindowSize = []float64{1, 2.5, 8}, 8 }},
		{"mamba", func(s *modellib.Shape) { s.ModelType = "mamba" }},
		{"bfloat16", func(s *modellib.Shape) { s.DType = "bfloat16" }},
		{"hidden_size", func(s *modellib.Shape) { s.HiddenSize = 0 }},
		{"vocab_size", func(s *modellib.Shape) { s.VocabSize = 1 << 21 }},
		{"rms_norm_eps", func(s *modellib.Shape) { s.RMSNormEps = 0 }},
		{"rope_theta", func(s *modellib.Shape) { s.RopeTheta = -1 }},
		{"heads", func(s *modellib.Shape) { s.NumAttentionHeads = 5 }},
		{"head_dim", func(s *modellib.Shape) { s.HeadDim = 7 }},
		{"sliding_window_size", func(s *modellib.Shape) { s.SlidingWindowSize = -1 }},
		{"sliding_window_size", func(s *modellib.Shape) { s.SlidingWindowSize = s.ContextWindowSize }},
		{"attention_bias", func(s *modellib.Shape) { s.ModelType = "qwen2" }},
		{"hidden_size", func(s *modellib.Shape) { s.DType, s.HiddenSize = "float16", 25 }},
		{"rope_factors", func(s *modellib.Shape) { s.RopeFactors = []float64{1, 2} }},
		{"rope_factors", func(s *modellib.Shape) { s.RopeFactors = []float64{1, 0, 2} }},
		{"prefill_chunk_size", func(s *modellib.Shape) { s.PrefillChunkSize = s.ContextWindowSize + 1 }},
	}
	shapes := make([]modellib.Shape, len(cases))
	for i, c := range cases {
		shapes[i] = small
		c.change(&shapes[i])
	}
	answers := askCompiler(t, shapes)
	for i, c := range cases {
		said := answers[i]
		if c.field == "" && said != "" || !strings.Contains(said, c.field) || c.field != "" &&
			!strings.HasPrefix(said, "5 shape: ") {
			t.Errorf("%q: the compiler says %q", c.field, said)
		}
	}
}

// askCompiler returns what the compiler says of each shape.
func askCompiler(t *testing.T, shapes []modellib.Shape) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, program.Files); err != nil {
		t.Fatal(err)
	}
	const ask = `import sys, shape
for file in sys.argv[1:]:
    try: shape.load(file); print()
    except shape.Refused as e: print(e.code, e)`
	args := []string{"-B", "-c", ask}
	for i, s := range shapes {
		text, err := json.Marshal(s)
		args = append(args, filepath.Join(dir, fmt.Sprint(i, ".json")))
		if err = errors.Join(err, os.WriteFile(args[len(args)-1], text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), realTools(t).Python, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(lines) != len(shapes) {
		t.Fatalf("%v: %s", err, out)
	}
	return lines
}

func TestMissingTools(t *testing.T) {
	tools := realTools(t)
	tools.Cache = t.TempDir()
	bare := script(t, "python3", `exec python3 -S "$@"`) // a Python without any package
	broken := script(t, "emcc", "exit 1")
	for _, c := range []struct {
		name  string
		tools modellib.Tools
		kind  fault.Kind
		says  string
	}{
		{"no Python", modellib.Tools{Python: "/nowhere/python", Emcc: tools.Emcc, Cache: tools.Cache}, fault.NoPython,
			"/nowhere/python"},
		{"no packages", modellib.Tools{Python: bare, Emcc: tools.Emcc, Cache: tools.Cache}, fault.NoPython,
			"apache-tvm"},
		{"no emcc", modellib.Tools{Python: tools.Python, Emcc: "/nowhere/emcc", Cache: tools.Cache}, fault.NoEmscripten,
			"/nowhere"},
		{"broken emcc", modellib.Tools{Python: tools.Python, Emcc: broken, Cache: tools.Cache}, fault.NoEmscripten,
			"emcc"},
	} {
		_, err := modellib.Build(t.Context(), c.tools, small, software, nil)
		if fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "make setup") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestFailureKeepsItsLog(t *testing.T) {
	tools := realTools(t)
	tools.Cache = t.TempDir()
	tools.Emcc = script(t, "emcc", `
[ "$1" = --version ] && echo emcc 9 && exit
echo "runtime.cc:1: error: no such luck" >&2
echo more >&2
exit 1`)
	_, err := modellib.Build(t.Context(), tools, small, software, nil)
	log := filepath.Join(tools.Cache, "modellib", modellib.Key(small, software)+".wasm.log")
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), log) {
		t.Fatalf("error: %v", err)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "more") {
		t.Errorf("log: %q, %v", text, err)
	}
}

func TestCancelEndsEverything(t *testing.T) {
	tools := realTools(t)
	tools.Cache = t.TempDir()
	note := filepath.Join(t.TempDir(), "pid")
	tools.Emcc = script(t, "emcc", fmt.Sprintf(`
[ "$1" = --version ] && echo emcc 9 && exit
echo $$ >%s.new
mv %[1]s.new %[1]s
exec sleep 600`, note))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := modellib.Build(ctx, tools, small, software, nil); done <- err }()
	pid := waitFor(t, note)
	cancel()
	if err := <-done; err == nil || ctx.Err() == nil {
		t.Errorf("cancelled: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || bytes.Contains(status, []byte(") Z ")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("emcc still runs: %s", status)
		}
	}
	if left := child.Scratches(os.Getpid()); len(left) != 0 {
		t.Errorf("left behind: %s", left)
	}
}

// If the parent is killed while clang compiles the runtime, no process is left.
func TestEverythingEndsWithTheParent(t *testing.T) {
	tools := realTools(t)
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+t.TempDir(),
		modellib.PythonVariable+"="+tools.Python, modellib.EmccVariable+"="+tools.Emcc)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	owner := cmd.Process.Pid
	t.Cleanup(func() {
		for _, pid := range child.Tagged(owner) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it may have ended
			}
		}
		child.Sweep() // the folder that the killed one left
	})
	compiling := func() bool {
		return slices.ContainsFunc(child.Tagged(owner), func(pid int) bool {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return err == nil && bytes.Contains(line, []byte("clang")) && bytes.Contains(line, []byte("runtime.cc"))
		})
	}
	for deadline := time.Now().Add(time.Minute); !compiling(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("no compiler was started: %s", &out)
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it should be
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := child.Tagged(owner)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes outlive their owner: %v", len(left), left)
		}
	}
}

// waitFor returns the content of a file that another process will write.
func waitFor(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatalf("%s never came", path)
	return ""
}

func script(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
