package modellib_test

import (
	"bytes"
	"context"
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

	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
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
	check.Err(t, os.Mkdir(filepath.Join(dir, "modellib"), 0o755))
	runtimes, err := filepath.Glob(filepath.Join(tools.Cache, "modellib", "runtime-*.o"))
	if err != nil || len(runtimes) == 0 {
		t.Fatalf("no runtime in %s: %v", tools.Cache, err)
	}
	for _, path := range runtimes {
		check.Err(t, os.Symlink(path, filepath.Join(dir, "modellib", filepath.Base(path))))
	}
	return dir
}

func TestBuild(t *testing.T) {
	tools := realTools(t)
	real := tools.Cache
	tools.Cache = ownCache(t, tools)
	var steps []string
	built, err := modellib.Build(t.Context(), tools, small, software, func(step string) { steps = append(steps, step) })
	check.Err(t, err)
	if filepath.Base(built.Path) != modellib.Key(small, software)+".wasm" || len(built.SHA256) != 64 {
		t.Errorf("built: %+v", built)
	}
	if len(steps) == 0 || strings.Contains(strings.Join(steps, "\n"), "runtime") {
		t.Errorf("steps %q: the library alone was to be compiled", steps)
	}
	content := check.Read(t, built.Path)
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
			f.SetFloat(f.Float()*2 + 1)
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 3, 3))
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string][]string{"lm_head": {"q8_0"}}))
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

// The compiler refuses bad shapes in one line that names the field.
func TestRefusedShapes(t *testing.T) {
	tools := realTools(t)
	tools.Cache = t.TempDir()
	for field, change := range map[string]func(*modellib.Shape){
		"mamba":                  func(s *modellib.Shape) { s.ModelType = "mamba" },
		"hidden_size":            func(s *modellib.Shape) { s.HiddenSize = 0 },
		"rope_theta":             func(s *modellib.Shape) { s.RopeTheta = -1 },
		"heads":                  func(s *modellib.Shape) { s.NumAttentionHeads = 5 },
		"rope_factors":           func(s *modellib.Shape) { s.RopeFactors = []float64{1, 2} },
		"rotary_dim":             func(s *modellib.Shape) { s.RotaryDim = s.HeadDim + 2 },
		"local_layers":           func(s *modellib.Shape) { s.LocalLayers = []int{s.NumHiddenLayers} },
		"attn_logit_softcapping": func(s *modellib.Shape) { s.AttnLogitSoftcapping = -1 },
		"sliding_window_size":    func(s *modellib.Shape) { s.SlidingWindowSize = s.ContextWindowSize },
	} {
		s := small
		change(&s)
		_, err := modellib.Build(t.Context(), tools, s, software, nil)
		if err == nil || fault.Of(err) == fault.Run || !strings.Contains(err.Error(), field) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", field, err)
		}
	}
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

// If the parent is killed while clang compiles the runtime, no process is left.
func TestEverythingEndsWithTheParent(t *testing.T) {
	tools := realTools(t)
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+t.TempDir(),
		modellib.PythonVariable+"="+tools.Python, modellib.EmccVariable+"="+tools.Emcc)
	cmd.Stdout = &out
	check.Err(t, cmd.Start())
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
	check.Err(t, cmd.Process.Kill())
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

func script(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.Err(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	return path
}
