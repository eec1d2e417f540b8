// Package webllm runs WebLLM in a browser: its settings and versions, the conversion of models, and the calls of its
// page (load, generate, score, unload).
//
// Tokens are counted where WebLLM samples them. The page uses some internals of WebLLM, and fails with a clear error
// if a version lacks them. Model libraries are compiled for the architectures of package gguf. Weights keep the bits of
// their type where it has a form; activations are f32 or f16.
package webllm

import (
	"cmp"
	"errors"
	"slices"

	"llmparity/assets/bundle"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
)

// Kind is WebLLM in a browser that is started or attached.
var Kind = &engine.Kind{
	Name: Name, Title: "WebLLM", Default: true, Browser: true,
	Section: Name, Root: true, Config: func() engine.Config { return newConfig() },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		own := *c.(*Config)
		own.Weights = cmp.Or(s.Weights, own.Weights)
		return New(own, s)
	},
	Axes: []string{engine.AxisWeights, engine.AxisStorage, engine.AxisStored},
	Shared: []string{"dtype", "watchdog", "webllm-version", "profile-phases", string(engine.HeapSnapshot),
		string(engine.SamplingProfile), string(engine.Trace), string(engine.CPUProfile)},
	Version: bundle.Version, VersionAxis: versionAxis,
	VersionHelp: "WebLLM versions, downloaded from npm once (default: the built-in version)",
	DTypes:      []string{F32, F16}, DTypeOf: "activations",
	KVTypes: Memory.KVTypes,
	Runs: func(string) string {
		return "converts it, compiles a library for it, and runs it in f32, or in f16 if the WebGPU adapter has shader-f16"
	},
	Parts: parts, Found: found, Compare: compare,
	CannotMake: cannotMake, Memory: Memory, Formats: []string{models.WebLLM, models.GGUF}, Colour: 1,
	Can: canPackage, Library: canLibrary,
	Devices: func(c engine.Config) []engine.Section { return c.(*Config).Devices() },
	Program: func(c engine.Config, _ engine.Settings) (string, error) {
		return c.(*Config).Browser(0).Find()
	},
}

const versionAxis = "webllm_version"

// Config is the configuration of WebLLM and its browser.
type Config struct {
	browser.Settings
	Kernels    string // of the compiled model library
	Sort       string // of the compiled model library
	Weights    string // how the package stores them: mlc.AsIs, F32 or F16
	Requantize string // mlc.Requantized: round all matrices to it; empty: don't
	Library    string // file or URL of a model library, AutoLibrary or OwnLibrary; empty: AutoLibrary
	Bundle     string // file of a WebLLM build; empty: a version
}

func newConfig() *Config {
	return &Config{Settings: browser.Defaults(), Kernels: AutoKernels, Sort: "partial", Weights: mlc.AsIs}
}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	return append(c.Settings.Fields(), []engine.Field{
		{To: &c.Kernels, Flag: "kernels", Key: "kernels", Run: true, Make: true,
			OneOf: []string{AutoKernels, SoftwareKernels, GPUKernels, MLCKernels},
			Help: "kernels of the compiled model library: software (for the CPU), gpu, mlc (by MLC's rules), or auto " +
				"(software or gpu, chosen by WebGPU adapter)"},
		{To: &c.Sort, Flag: "sort", Key: "sort", Run: true, Make: true, OneOf: []string{"partial", "full"},
			Help: "sorting of probabilities in the compiled model library: partial or full"},
		{To: &c.Weights, Flag: "weights", Axis: engine.AxisWeights, Run: true, Make: true, OneOf: engine.WeightForms,
			Help: "weights of WebLLM's package: as-is (types that WebLLM lacks become --dtype), f32 or f16"},
		{To: &c.Requantize, Flag: "requantize", Key: "requantize", Run: true, Make: true,
			OneOf: []string{mlc.Requantized},
			Help:  "q4_0: round matrices of all other types to Q4_0 for WebLLM, with llama.cpp's rounding (default: don't)"},
		{To: &c.Library, Flag: "model-lib", Key: "model_lib", Run: true, Instead: c.instead(),
			Help: "model library: auto (MLC's, if one in the store or in --mirror's folder fits, otherwise llmparity's), own " +
				"(llmparity's), or a file or https URL (default auto)"},
		{To: &c.Bundle, Flag: "webllm-bundle", Key: "webllm_bundle", Run: true, Axis: versionAxis + "s",
			Help: "file of a WebLLM build (an ES module)"},
	}...)
}

// Check refuses contradictory flags.
func (c *Config) Check() error {
	if c.Requantize != "" && slices.Contains([]string{F32, F16}, c.Weights) {
		return fault.New(fault.Usage, "omit one", "requantize %s cannot be combined with weights %s", c.Requantize, c.Weights)
	}
	return c.Settings.Check()
}

// weights is the form of the package's weights.
func (c Config) weights() string { return cmp.Or(c.Requantize, c.Weights) }

// What Config.Library may name beside a file or URL.
const (
	AutoLibrary = "auto" // MLC's that is here and fits, else ours; ours where kernels or sort are chosen
	OwnLibrary  = "own"
)

// given is the library that the user named; empty: none.
func (c *Config) given() string {
	if c.Library == AutoLibrary || c.Library == OwnLibrary {
		return ""
	}
	return c.Library
}

// instead are the settings that a given library makes void.
func (c *Config) instead() []string {
	if c.given() == "" {
		return nil
	}
	return []string{"kernels", "sort"}
}

// auto reports whether a library of MLC's may run.
func (c *Config) auto() bool {
	other := newConfig()
	return (c.Library == "" || c.Library == AutoLibrary) && cmp.Or(c.Kernels, other.Kernels) == other.Kernels &&
		cmp.Or(c.Sort, other.Sort) == other.Sort
}

// CheckFiles refuses an invalid model library before anything starts.
func (c *Config) CheckFiles() error {
	if c.given() == "" || isAddress(c.Library) {
		return nil
	}
	if _, err := mlc.OpenLibrary(c.Library); err != nil {
		return fault.Wrap(fault.Usage, err, "", "--model-lib %s", c.Library)
	}
	return nil
}

// CheckPlan refuses compile settings for a given library.
func (c *Config) CheckPlan(engine.Settings) error {
	if c.given() != "" && c.Kernels+c.Sort != "" {
		return errors.New("model_lib: names a compiled library, so kernels and sort do not apply; remove one of them")
	}
	return nil
}

// Complete removes compile settings if a library is given.
func (c *Config) Complete(_ engine.Settings, m models.Model) {
	if c.given() != "" || m.Format == models.WebLLM {
		c.Kernels, c.Sort = "", ""
	}
}
