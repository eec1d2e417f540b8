package webllm

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"llmparity/assets/bundle"
	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
	"llmparity/internal/record"
)

// Parts that WebLLM needs.
const (
	bundlePart  = "WebLLM bundle"
	adapterPart = "WebGPU adapter"
)

// parts returns the browser, WebLLM, and what compiles model libraries.
func parts(c engine.Config, s engine.Settings) []engine.Search {
	own, tools := *c.(*Config), modellib.FindTools(s.Cache, os.Getenv)
	says := func(kind fault.Kind, path string, args ...string) func(context.Context) engine.Part {
		return func(ctx context.Context) engine.Part { return engine.Version(ctx, kind, path, args...) }
	}
	return []engine.Search{
		{Name: browser.Part, Find: own.browserPart},
		{Name: string(browser.Lavapipe), Find: func(context.Context) engine.Part {
			path, err := find.Lavapipe()
			if err != nil {
				return engine.Part{Absent: true, Detail: "for float16 without a GPU, run `scripts/setup lavapipe`"}
			}
			return engine.Part{Path: path, Detail: "for --adapter lavapipe"}
		}},
		{Name: "Firefox", Find: browser.Firefox},
		{Name: bundlePart, Find: func(context.Context) engine.Part {
			_, err := bundle.Script()
			return engine.Part{Version: bundle.Version, Err: err}
		}},
		{Name: "emscripten", Find: says(fault.NoEmscripten, tools.Emcc, "--version")},
		{Name: "Python with TVM", Find: says(fault.NoPython, tools.Python, "-c",
			"import sys, tvm; print(sys.version.split()[0], 'with TVM', tvm.__version__)")},
		{Name: adapterPart, Starts: true, Find: func(ctx context.Context) engine.Part {
			d, err := New(own, s).Device(ctx, func(string) {})
			if err != nil {
				return engine.Part{Err: err, Tried: browser.Tried(err)}
			}
			half := "without float16"
			if hasF16(d) {
				half = "with float16"
			}
			return engine.Part{Detail: d.Name + " (" + string(d.Class) + "), " + half, Device: &d, Tried: d.Tried()}
		}},
	}
}

// browserPart finds the browser, and what a window could be shown on.
func (c Config) browserPart(ctx context.Context) engine.Part {
	if c.Launch.Attach != "" {
		return engine.Part{Path: c.Launch.Attach, Detail: "running"}
	}
	path, err := c.Browser(0).Find()
	if err != nil {
		return engine.Part{Err: err}
	}
	p := engine.Version(ctx, fault.NoChrome, path, "--version")
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		p.Detail = "no window: there is neither a display nor Xvfb"
		if _, err := exec.LookPath("Xvfb"); err == nil {
			p.Detail = "windows open on an Xvfb"
		}
	}
	return p
}

func found(here engine.Here) engine.Finding {
	bundle, haveBundle := here.Parts[bundlePart]
	chrome, haveChrome := here.Parts[browser.Part]
	adapter := here.Parts[adapterPart].Device
	e := engine.Finding{Name: Name, Version: bundle.Version, Path: chrome.Path}
	switch {
	case !haveBundle || !haveChrome:
		e.Can = "nothing yet; see what is missing"
	case here.Quick:
		e.Ready, e.Can = true, "depends on the WebGPU adapter, which --quick does not check"
	case adapter == nil:
		e.Can = "nothing: there is no WebGPU adapter"
	default:
		f16 := hasF16(*adapter)
		e.Ready, e.Device, e.F16 = true, string(adapter.Class), &f16
		e.Can = "runs models with float32 weights (q0f32, q4f32_1 …); the adapter lacks shader-f16"
		if f16 {
			e.Can = "runs models with float16 or float32 weights"
		}
		if adapter.Class == record.SoftwareAdapter {
			e.Can += "; WebGPU runs on the CPU: slow; not a browser-versus-native comparison"
		}
	}
	return e
}
