// Package transformersjs runs transformers.js in a browser: models as ONNX, which ONNX Runtime computes in WebAssembly
// or on WebGPU. A GGUF is converted first.
//
// Tokens and their times come from its streamer. A page keeps its WebAssembly memory after an unload, for the next
// load.
package transformersjs

import (
	"cmp"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/models"
)

// Name is the engine's name in plans and records.
const Name = "transformersjs"

const title = "transformers.js"

// Backends: what it computes in.
const (
	Wasm   = "wasm"
	WebGPU = "webgpu"
)

// The dtypes of activations.
const (
	F32 = "f32"
	F16 = "f16"
)

// Kind is transformers.js in a browser.
var Kind = &engine.Kind{
	Name: Name, Title: title, Browser: true, Section: Name, Presets: []string{"matrix"},
	Config: func() engine.Config { return newConfig() },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return New(*c.(*Config), s)
	},
	Shared: []string{"threads", "dtype", "watchdog", "profile-phases", string(engine.HeapSnapshot),
		string(engine.SamplingProfile), string(engine.Trace), string(engine.CPUProfile)},
	Devices: func(c engine.Config) []engine.Section { return c.(*Config).Backends(Wasm, WebGPU) },
	Axes:    []string{engine.AxisThreads, engine.AxisStorage, engine.AxisStored},
	DTypes:  []string{F32, F16}, DTypeOf: "activations",
	Formats: []string{models.ONNX, models.GGUF},
	Runs: func(string) string {
		return "converts it to ONNX, and runs it in f32 or f16; matrices in Q4_0 keep their bits"
	},
	Parts: parts, Found: found, Compare: compare, Memory: Memory,
	Program: func(c engine.Config, _ engine.Settings) (string, error) { return c.(*Config).Browser(0).Find() },
}

// Config is the configuration of transformers.js and its browser.
type Config struct {
	browser.Settings
	Backend string
}

func newConfig() *Config { return &Config{Settings: browser.Defaults(), Backend: Wasm} }

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	return append(c.Settings.Fields(), engine.Field{To: &c.Backend, Flag: "backend", Key: "backend", Run: true,
		OneOf: []string{Wasm, WebGPU}, Help: "what the engine computes in: wasm (on the CPU) or webgpu"})
}

// CheckPlan accepts everything.
func (*Config) CheckPlan(engine.Settings) error { return nil }

func (c Config) backend() string { return cmp.Or(c.Backend, Wasm) }
