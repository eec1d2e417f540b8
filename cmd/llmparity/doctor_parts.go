package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"llmparity/assets/charts"
	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/modellib"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/openai"
)

// part is something that llmparity works with, as it was found.
type part struct {
	Name     string     `json:"name"`
	Version  string     `json:"version,omitempty"`
	Path     string     `json:"path,omitempty"`
	Detail   string     `json:"detail,omitempty"`
	Absent   bool       `json:"absent,omitempty"` // it is not here, and most do without it
	Missing  string     `json:"missing,omitempty"`
	Class    fault.Kind `json:"class,omitempty"` // of what is missing
	ExitCode int        `json:"exit_code,omitempty"`

	backends []string // for which GPUs it was built
	webgpu   *webgpu
	err      error // what is missing, and how to get it
}

// check finds a part.
type check struct {
	name string
	find func(context.Context) part
}

func (c check) ask(ctx context.Context) part {
	p := c.find(ctx)
	p.Name = c.name
	return p
}

// The names of parts that other things are told of.
const (
	browserPart     = "browser"
	llamaServerPart = "llama-server"
	oneShotPart     = "llama-completion"
	ollamaPart      = "Ollama"
	bundlePart      = "WebLLM bundle"
	adapterPart     = "WebGPU adapter"
)

// checks are in the order in which what is missing counts.
func (f *doctorFlags) checks(dir string) []check {
	tools := modellib.FindTools(dir, os.Getenv)
	out := []check{
		{browserPart, func(ctx context.Context) part { return f.findBrowser(ctx) }},
		{llamaServerPart, func(ctx context.Context) part {
			path, err := llamacpp.Find(f.llamacppFlags.config(""))
			return nativeProgram(ctx, path, err, fault.NoLlamaServer)
		}},
		{oneShotPart, func(ctx context.Context) part { return f.findOneShot(ctx) }},
		{ollamaPart, func(ctx context.Context) part { return f.findOllama(ctx) }},
		{bundlePart, func(context.Context) part {
			_, err := page.Bundle()
			return part{Version: page.WebLLM, err: err}
		}},
		{"echarts", func(context.Context) part {
			_, _, err := charts.Libraries()
			return part{Detail: "inlined in reports", err: err}
		}},
		{"emscripten", func(ctx context.Context) part {
			return version(ctx, fault.NoEmscripten, tools.Emcc,
				"--version")
		}},
		{"Python with TVM", func(ctx context.Context) part {
			return version(ctx, fault.NoPython, tools.Python, "-c",
				"import sys, tvm; print(sys.version.split()[0], 'with TVM', tvm.__version__)")
		}},
	}
	if !f.quick {
		out = append(out, check{adapterPart, func(ctx context.Context) part {
			return findAdapter(ctx, browser.New(
				browser.Config{Chrome: f.chrome, Launch: f.launch, Adapter: browser.Adapter(f.adapter)}))
		}})
	}
	out = append(out, check{"cache", func(context.Context) part { return part{Path: dir} }})
	if f.server.URL != "" {
		out = append(out, check{"OpenAI server", f.openaiFlags.check})
	}
	return append(out, spare("node", "npm fetches WebLLM and echarts for make setup", "--version"),
		spare("go", "builds llmparity and an Ollama", "version"))
}

// spare looks for a program that is not needed once llmparity is set up.
func spare(name, use string, question string) check {
	return check{name, func(ctx context.Context) part {
		path, err := exec.LookPath(name)
		if err != nil {
			return part{Absent: true, Detail: "not on PATH; " + use}
		}
		p := version(ctx, fault.Run, path, question)
		if p.err != nil {
			return part{Absent: true, Path: path, Detail: "says nothing; " + use}
		}
		return p
	}}
}

// findBrowser names the browser, and what a window of its could be opened on.
func (f *doctorFlags) findBrowser(ctx context.Context) part {
	if f.launch.Attach != "" {
		return part{Path: f.launch.Attach, Detail: "one that runs already"}
	}
	path, err := browser.FindChrome(f.chrome)
	if err != nil {
		return part{err: err}
	}
	p := version(ctx, fault.NoChrome, path, "--version")
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		p.Detail = "no window: there is no display, and no Xvfb to make one"
		if _, err := exec.LookPath("Xvfb"); err == nil {
			p.Detail = "a window opens on an Xvfb"
		}
	}
	return p
}

// nativeProgram is one of llama.cpp's or an Ollama, with the GPUs that it was built for.
func nativeProgram(ctx context.Context, path string, err error, kind fault.Kind) part {
	if err != nil {
		return part{err: err}
	}
	p := version(ctx, kind, path, "--version")
	p.Version = strings.TrimPrefix(p.Version, "version: ")
	p.backends = builtFor(path)
	return p
}

// findOneShot looks for llama.cpp's one-shot program, which nothing needs that was not asked for.
func (f *doctorFlags) findOneShot(ctx context.Context) part {
	path, err := llamacpp.FindCLI(f.llamacppFlags.config(""))
	if err != nil && f.llamaCLI == "" && os.Getenv(llamacpp.CLIVariable) == "" {
		return part{Absent: true, Detail: "for " + llamacpp.OneShotName +
			" alone: scripts/setup llamacpp-tools builds one"}
	}
	return nativeProgram(ctx, path, err, fault.NoLlamaServer)
}

// findOllama asks the program, or the server where one is named.
func (f *doctorFlags) findOllama(ctx context.Context) part {
	detail, err := ollama.New(f.ollamaFlags.config(0)).Describe(ctx)
	if err != nil {
		return part{err: err}
	}
	v, path, _ := strings.Cut(detail, "  ")
	p := part{Version: v, Path: path}
	if f.ollamas.URL == "" {
		p.backends = builtFor(path)
	}
	return p
}

// check is what doctor asks of a server that is named.
func (f *openaiFlags) check(ctx context.Context) part {
	detail, err := openai.New(f.config()).Describe(ctx)
	return part{Name: "server", Path: f.server.URL, Detail: detail, err: err}
}

// version runs a program that tells its version.
func version(ctx context.Context, kind fault.Kind, path string, args ...string) part {
	words, err := programSays(ctx, path, args...)
	if err != nil {
		return part{err: fault.Wrap(kind, err, "run `make setup`", "%s can't be run", path)}
	}
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	return part{Version: firstLine(words), Path: path}
}

// saidMost is how much of what a program says is kept, of its end: the linker's list of a desktop's libraries has 200
// KB.
const saidMost = 1 << 20

// said runs a command as ours, and gives what it said.
func said(ctx context.Context, cmd *exec.Cmd) (string, error) {
	tail := &child.Tail{Max: saidMost}
	cmd.Stdout, cmd.Stderr = tail, tail
	p, err := child.StartGuarded(ctx, cmd)
	if err != nil {
		return "", err
	}
	defer p.Kill() // and what it may have started
	<-p.Done()
	words := strings.Join(tail.Lines(saidMost), "\n")
	if p.Err() != nil && !errors.Is(p.Err(), exec.ErrWaitDelay) { // what it left behind keeps its output open, and goes
		return words, fmt.Errorf("%w: %s", p.Err(), fault.OneLine(lastWords(words)))
	}
	return words, nil
}

// lastWords is the last line that says something.
func lastWords(words string) string {
	lines := strings.Split(strings.TrimSpace(words), "\n")
	return lines[len(lines)-1]
}
