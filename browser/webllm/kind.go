// Package webllm makes WebLLM an engine that runs in a browser: its settings, which of its versions runs, models as it
// wants them, and its page's calls: load, generate, score, unload.
//
// It counts tokens where WebLLM samples them. It knows the inside of WebLLM as far as its page needs it, which fails
// clearly where another version has another; and it compiles model libraries for llama and qwen2 in f32 and f16 alone.
package webllm

import (
	"errors"
	"strings"

	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
)

// Kind is WebLLM, in a browser that is started or attached to.
var Kind = &engine.Kind{
	Name: Name, Title: "WebLLM", Default: true, Browser: true,
	Section: Name, Root: true, Config: func() engine.Config { return newConfig() },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine { return New(*c.(*Config), s) },
	Shared: []string{"dtype", "watchdog", "webllm-version", "profile-phases", string(engine.HeapSnapshot),
		string(engine.SamplingProfile), string(engine.Trace), string(engine.CPUProfile)},
	Version: page.WebLLM, VersionAxis: versionAxis,
	VersionHelp: "versions of WebLLM, fetched by npm once (default: the one that is built in)",
	DTypes:      []string{F32, F16}, DTypeOf: "weights, activations and KV cache",
	KVTypes: func(dtype string) []string {
		if dtype == F16 {
			return []string{F16}
		}
		return []string{F32}
	},
	Runs: func(string) string {
		return "converts it, compiles a library for it and runs it: in f32, or in f16 where the WebGPU adapter has shader-f16"
	},
	Parts: parts, Found: found, Compare: compare,
	Makes: makes, Memory: Memory, Formats: []string{model.WebLLM}, Colour: 1,
	Program: func(c engine.Config, _ engine.Settings) (string, error) {
		if own := c.(*Config); own.Launch.Attach == "" {
			return find.Chrome(own.Chrome)
		}
		return "", nil
	},
}

const versionAxis = "webllm_version"

// Config is what a user may choose of WebLLM and its browser.
type Config struct {
	Chrome  string
	Launch  browser.Launch
	Adapter string
	Thread  string
	Kernels string // of the model library, and how it sorts
	Sort    string
	Library string // a model library, by its file or address; empty: one is compiled
	Bundle  string // a build of WebLLM, by its file; empty: a version
}

func newConfig() *Config {
	return &Config{Adapter: string(browser.Auto), Thread: string(browser.PageThread), Kernels: AutoKernels,
		Sort: "partial"}
}

// Fields are the settings that users have.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{
		{To: &c.Chrome, Flag: "chrome", Place: true, Help: "the browser to start, by its path or as " +
			strings.Join(find.Brands, ", ") + " (default: $LLMPARITY_CHROME, else Chrome, Chromium or Edge)"},
		{To: &c.Launch.Headed, Flag: "headed", Place: true,
			Help: "let the browser have a window: on a private Xvfb where there is no display"},
		{To: &c.Launch.Attach, Flag: "attach", Place: true,
			Help: "open a tab in a browser that runs already: HOST:PORT of its --remote-debugging-port, or ws://…"},
		{To: &c.Launch.Flags, Flag: "chrome-flag",
			Help: "pass NAME or NAME=VALUE on to the browser; may be given several times"},
		{To: &c.Adapter, Flag: "adapter", Key: "adapter",
			OneOf: []string{string(browser.Auto), string(browser.GPU), string(browser.SwiftShader)},
			Help:  "WebGPU adapter: auto, gpu or swiftshader (computed on the CPU)"},
		{To: &c.Thread, Flag: "thread", Key: "thread", Run: true,
			OneOf: []string{string(browser.PageThread), string(browser.WorkerThread)},
			Help:  "where WebLLM runs: page (the page's own thread) or worker (a dedicated worker)"},
		{To: &c.Kernels, Flag: "kernels", Key: "kernels", Run: true, Make: true,
			OneOf: []string{AutoKernels, SoftwareKernels, GPUKernels},
			Help:  "the model library's kernels: software, gpu, or auto (by the WebGPU adapter)"},
		{To: &c.Sort, Flag: "sort", Key: "sort", Run: true, Make: true, OneOf: []string{"partial", "full"},
			Help: "how much of the probabilities the model library sorts to sample: partial or full"},
		{To: &c.Library, Flag: "model-lib", Key: "model_lib", Run: true, Instead: []string{"kernels", "sort"},
			Help: "a model library for WebLLM, by its file or https address, in place of one that is compiled here"},
		{To: &c.Bundle, Flag: "webllm-bundle", Key: "webllm_bundle", Run: true, Axis: versionAxis + "s",
			Help: "a build of WebLLM: an ES module on disk"},
	}
}

// Check refuses flags of the browser that make no sense together.
func (c *Config) Check() error { return c.Launch.Check(c.Chrome) }

// CheckFiles refuses a model library's file that is none: what a user named stops a run before anything starts.
func (c *Config) CheckFiles() error {
	if c.Library == "" || isAddress(c.Library) {
		return nil
	}
	if _, err := mlc.OpenLibrary(c.Library); err != nil {
		return fault.Wrap(fault.Usage, err, "", "--model-lib %s", c.Library)
	}
	return nil
}

// CheckPlan refuses to say how a library is compiled that is named.
func (c *Config) CheckPlan(engine.Settings) error {
	if c.Library != "" && c.Kernels+c.Sort != "" {
		return errors.New("model_lib: it names a library that is compiled, and kernels and sort say how one is; choose one")
	}
	return nil
}

// Complete leaves a package its own library.
func (c *Config) Complete(_ engine.Settings, m engine.Model) {
	if c.Library != "" || m.Format == model.WebLLM {
		c.Kernels, c.Sort = "", ""
	}
}
