package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
)

// convertingTiny is what a run says before anything else, unless the tiny model was converted before.
const convertingTiny = "webllm: converting tiny-llama-2x128 to a WebLLM package for a context of 1024 tokens\n"

// Errors of the environment, and of a launch. TestRefusals has those of a command line.
func TestErrorsAreOneLineWithClass(t *testing.T) {
	browserTest(t)
	dir := t.TempDir()
	python := modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Python
	chrome, err := find.Chrome("")
	check(t, err)
	noGPU := put(t, dir, "chrome-without-webgpu", `#!/bin/sh
for a; do shift; [ "$a" = --enable-unsafe-webgpu ] || set -- "$@" "$a"; done
exec `+chrome+` --disable-gpu "$@"
`)
	long := strings.Repeat("one two three ", 400)
	bare := filepath.Join(dir, "bare")

	for _, c := range []struct {
		name string
		args []string
		env  []string
		kind fault.Kind
		want string

		launched bool // what a launch runs into is in its record too
	}{
		{"no browser", []string{"run", "--strict"}, []string{"PATH=" + dir, "LLMPARITY_CHROME=nosuchbrowser"},
			fault.NoChrome, "install Chromium", false},
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
		{"a long prompt, natively", []string{"run", "--engines", "llamacpp", "--prompt", long}, nil,
			fault.PromptTooLong, "1024", true},
		{"a long prompt, in the browser", []string{"run", "--engines", "webllm", "--prompt", long}, nil,
			fault.PromptTooLong, "1024", true},
		{"a window without a display", []string{"run", "-q", "--engines", "webllm", "--headed", "--repetitions", "1"},
			[]string{"PATH=" + dir, "DISPLAY=", "WAYLAND_DISPLAY=", "LLMPARITY_CHROME=" + chrome}, fault.NoDisplay,
			"apt install xvfb", true},
		{"a software adapter instead of a GPU", []string{"run", "-q", "--strict", "--engines", "webllm", "--adapter",
			"gpu", "--repetitions", "1"}, nil, fault.Fallback, "asks for gpu, but the engine runs on software", true},
		{"a software adapter for one text", []string{"generate", "--engine", "webllm", "--adapter", "gpu"}, nil,
			fault.Fallback, "asks for gpu, but the engine runs on software", true},
		{"float16 on SwiftShader", []string{"run", "-q", "--engines", "webllm", "--adapter", "swiftshader", "--dtype",
			"f16"},
			nil, fault.NoF16, "--dtype f32", false},
		{"a model of float16 on SwiftShader", []string{"run", "-q", "--engines", "webllm", "--model",
			"SmolLM2-135M-Instruct-q0f16-MLC", "--adapter", "swiftshader"}, nil, fault.NoF16, "shader-f16", false},
		{"a GPU that llama.cpp lacks", []string{"run", "-q", "--engines", "llamacpp", "--llamacpp-gpu-layers", "9"},
			nil, fault.Fallback, "no GPU for 9 layers", false},
		{"a GPU that Ollama lacks", []string{"run", "-q", "--engines", "ollama", "--ollama-gpu", "--repetitions", "1"},
			nil, fault.Fallback, "asks for gpu, but the engine runs on cpu", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.kind == fault.Fallback && !browser.Auto.Software() {
				t.Skip("there is a GPU here")
			}
			cmd := program(t, c.args...)
			cmd.Env = append(cmd.Env, c.env...)
			stdout, stderr, code := output(t, cmd)
			line := lastLine(stderr)
			said := strings.TrimPrefix(stderr, convertingTiny)
			if !c.launched && (strings.Count(said, "\n") != 1 || stdout != "" ||
				there(filepath.Join(cmd.Dir, "results", "latest"))) {
				t.Errorf("more than one line, or a record:\n%s%s", stderr, stdout)
			}
			if code != c.kind.ExitCode() || !strings.HasPrefix(line, "llmparity: "+string(c.kind)+": ") ||
				!strings.Contains(line, c.want) || len(line) > 600 || strings.Contains(stderr, "goroutine ") {
				t.Errorf("exit code %d, want class %s with %q:\n%s", code, c.kind, c.want, stderr)
			}
		})
	}
}
