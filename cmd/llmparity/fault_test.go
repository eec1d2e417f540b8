package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/browser/find"
	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
	"llmparity/internal/tiny"
)

func TestErrorsAreOneLineWithClass(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		put(t, dir, name, string(data))
		return filepath.Join(dir, name)
	}
	whole := filepath.Join(dir, "tiny.gguf")
	check(t, tiny.WriteFile(whole))
	model, err := os.ReadFile(whole)
	check(t, err)
	foreign, err := os.Create(filepath.Join(dir, "qwen2.gguf"))
	check(t, err)
	check(t, gguf.Write(foreign, []gguf.Entry{{Key: "general.architecture", Value: "gemma3"}}, nil))
	check(t, foreign.Close())
	python := modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Python
	chrome, err := find.Chrome("")
	check(t, err)
	noGPU := write("chrome-without-webgpu", []byte(`#!/bin/sh
for a; do shift; [ "$a" = --enable-unsafe-webgpu ] || set -- "$@" "$a"; done
exec `+chrome+` --disable-gpu "$@"
`))
	bare := filepath.Join(dir, "bare")

	for _, c := range []struct {
		name string
		args []string
		env  []string
		kind fault.Kind
		want string

		launched bool
	}{
		{"no browser", []string{"run", "--strict"}, []string{"PATH=" + dir, "LLMPARITY_CHROME=nosuchbrowser"},
			fault.NoChrome,
			"install Chromium", false},
		{"another browser", []string{"run", "--strict", "--chrome", "/nonexistent/chrome"}, nil, fault.NoChrome,
			"/nonexistent/chrome", false},
		{"no llama-server", []string{"run", "--engines", "llamacpp"},
			[]string{"PATH=" + dir, "LLMPARITY_CACHE=" + bare, "LLMPARITY_LLAMA_SERVER="}, fault.NoLlamaServer,
			"make setup", false},
		{"no emscripten", []string{"run", "--engines", "webllm"},
			[]string{"LLMPARITY_CACHE=" + bare, "LLMPARITY_PYTHON=" + python, "LLMPARITY_EMCC=/nonexistent/emcc"},
			fault.NoEmscripten, "make setup", false},
		{"no Python", []string{"run", "--engines", "webllm"}, []string{"LLMPARITY_CACHE=" + bare, "LLMPARITY_PYTHON="},
			fault.NoPython, "make setup", false},
		{"no WebGPU", []string{"run", "--engines", "webllm", "--chrome", noGPU, "--repetitions", "1"},
			nil, fault.NoAdapter, "WebGPU", true},
		{"empty model", []string{"run", "--model", write("empty.gguf", nil)}, nil, fault.BadModel, "empty", false},
		{"truncated model", []string{"run", "--model", write("short.gguf", model[:len(model)-5000])}, nil,
			fault.BadModel, "truncated", false},
		{"half a header", []string{"run", "--model", write("header.gguf", model[:100])}, nil, fault.BadModel,
			"header.gguf", false},
		{"no model", []string{"run", "--model", "/nonexistent.gguf"}, nil, fault.BadModel, "/nonexistent.gguf", false},
		{"another architecture", []string{"run", "--model", foreign.Name()}, nil, fault.UnknownArch, "qwen2", false},
		{"a long prompt, natively", []string{"run", "--engines", "llamacpp", "--prompt",
			strings.Repeat("one two three ", 400)}, nil, fault.PromptTooLong, "1024", true},
		{"a long prompt, in the browser",
			[]string{"run", "--engines", "webllm", "--prompt", strings.Repeat("one two three ", 400)},
			nil, fault.PromptTooLong, "1024", true},
		{"a prompt beyond the vocabulary", []string{"run", "--prompt", "caf\u00e9"}, nil, fault.Usage, "é", false},
		{"unwritable folder", []string{"run", "--out", "/dev/null/x"}, nil, fault.Unwritable, "--out", false},
		{"unknown engine", []string{"run", "--engines", "webllm,lamacpp"}, nil, fault.UnknownEngine,
			`did you mean "llamacpp"?`, false},
		{"unknown flag", []string{"run", "--engin", "webllm"}, nil, fault.Usage, "--engin", false},
		{"no threads", []string{"run", "--threads", "0"}, nil, fault.Usage, "--threads", false},
		{"doctor with an unknown adapter", []string{"doctor", "--adapter", "dx12"}, nil, fault.Usage, "dx12", false},
		{"unknown adapter", []string{"run", "--adapter", "dx12"}, nil, fault.Usage, "dx12", false},
		{"no float16 here", []string{"run", "-q", "--engines", "webllm", "--adapter", "swiftshader", "--dtype", "f16"},
			nil, fault.NoF16, "--dtype f32", false},
		{"unknown kernels", []string{"run", "--kernels", "fast"}, nil, fault.Usage, "--kernels", false},
		{"unknown sort", []string{"model", "convert", whole, "--to", "webllm", "--sort", "none"}, nil, fault.Usage,
			"--sort", false},
		{"unknown dtype", []string{"run", "--dtype", "q4"}, nil, fault.Usage, `dtype: unknown value "q4"`, false},
		{"two ways to say which WebLLM", []string{"run", "--webllm-version", "0.2.80", "--webllm-bundle", "x.js"},
			nil, fault.Usage, "use one of them", false},
		{"no version of WebLLM", []string{"run", "--strict", "--webllm-version", "newest"}, nil, fault.Usage, "newest",
			false},
		{"no bundle there", []string{"run", "--strict", "--webllm-bundle", "/nonexistent.js"}, nil, fault.NoBundle,
			"/nonexistent.js", false},
		{"a WebLLM that is not used", []string{"run", "--engines", "llamacpp", "--webllm-version", "0.2.80"}, nil,
			fault.Usage, "add webllm", false},
		{"a WebLLM of another age", []string{"run", "-q", "--engines", "webllm", "--webllm-bundle",
			write("old.js", []byte("TVMWasmPackedCFunc"))}, nil, fault.BadLibrary, "TVMFFIWasmSafeCall", false},
		{"no library", []string{"run", "-q", "--engines", "llamacpp,webllm", "--model-lib", whole}, nil, fault.Usage,
			"not a model library", false},
		{"no library there", []string{"run", "-q", "--model-lib", "none.wasm"}, nil, fault.Usage, "none.wasm", false},
		{"a library from anybody", []string{"run", "-q", "--model-lib", "http://192.0.2.1/lib.wasm"}, nil, fault.Usage,
			"use https", false},
		{"a library and its kernels", []string{"run", "--model-lib", "lib.wasm", "--kernels", "gpu"}, nil, fault.Usage,
			"--model-lib", false},
		{"a library that is not used", []string{"run", "--engines", "llamacpp", "--model-lib", "lib.wasm"}, nil,
			fault.Usage, "add webllm", false},
		{"no such brand", []string{"run", "--strict", "--chrome", "netscape"}, nil, fault.NoChrome, "netscape", false},
		{"a flag that is ours", []string{"run", "--chrome-flag", "user-data-dir=/x"}, nil, fault.Usage, "user-data-dir",
			false},
		{"a window without a display", []string{"run", "-q", "--engines", "webllm", "--headed", "--repetitions", "1"},
			[]string{"PATH=" + dir, "DISPLAY=", "WAYLAND_DISPLAY=", "LLMPARITY_CHROME=" + chrome}, fault.NoDisplay,
			"apt install xvfb", true},
		{"a browser that does not run", []string{"run", "-q", "--engines", "webllm", "--attach", "127.0.0.1:1"}, nil,
			fault.NoChrome, "--remote-debugging-port", false},
		{"attaching to nothing", []string{"doctor", "--attach", "somewhere"}, nil, fault.Usage, "--attach", false},
		{"two browsers", []string{"run", "--attach", "127.0.0.1:1", "--headed"}, nil, fault.Usage, "--headed", false},
		{"a profile of nothing", []string{"run", "--engines", "llamacpp", "--cpu-profile"}, nil, fault.Usage,
			"add webllm", false},
		{"a profile of no phase", []string{"run", "--trace", "--profile-phases", "lunch"}, nil, fault.Usage, "lunch",
			false},
		{"unknown command", []string{"rum"}, nil, fault.Usage, "rum", false},
		{"no plan", []string{"run", "/nonexistent.yaml"}, nil, fault.Usage, "/nonexistent.yaml", false},
		{"flags that exclude each other", []string{"report", "--json", "--profile", dir}, nil, fault.Usage,
			"--json and --profile cannot be combined", false},
		{"no run folder", []string{"report", dir}, nil, fault.BadRecord, "not a run folder", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := program(t, c.args...)
			cmd.Env = append(cmd.Env, c.env...)
			stdout, stderr, code := output(t, cmd)
			line := lastLine(stderr)
			// What keeps a run from starting is said in one line and leaves nothing; what a launch runs into is in its
			// record too. what came first is progress
			said := strings.TrimPrefix(stderr, "webllm: converting tiny-llama-2x128 into a WebLLM package, once\n")
			if !c.launched && (strings.Count(said, "\n") != 1 || stdout != "") {
				t.Errorf("more than one line:\n%s%s", stderr, stdout)
			}
			if _, err := os.Lstat(filepath.Join(cmd.Dir, "results", "latest")); !c.launched && err == nil {
				t.Error("a run that never started left a record")
			}
			if code != c.kind.ExitCode() || !strings.HasPrefix(line, "llmparity: "+string(c.kind)+": ") ||
				!strings.Contains(line, c.want) || len(line) > 600 {
				t.Errorf("exit code %d, want class %s with %q:\n%s", code, c.kind, c.want, stderr)
			}
			if strings.Contains(stderr, "goroutine ") {
				t.Errorf("a panic:\n%s", stderr)
			}
		})
	}
}

// The bundle is removed from the build with an overlay, not from disk.
func TestMissingBundleIsReported(t *testing.T) {
	root, err := filepath.Abs("../..")
	check(t, err)
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(
		root, "assets/page/dist/web-llm.js"): ""}})
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	binary := filepath.Join(dir, "llmparity")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary,
		".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := program(t, "run", "--engines", "webllm,llamacpp", "--repetitions", "1")
	cmd.Path, cmd.Args[0] = binary, binary
	_, stderr, code := output(t, cmd)
	if code != fault.NoBundle.ExitCode() || !strings.Contains(lastLine(stderr), "make setup") {
		t.Errorf("exit code %d, want %s:\n%s", code, fault.NoBundle, stderr)
	}
}
