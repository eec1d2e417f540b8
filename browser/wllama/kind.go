// Package wllama runs wllama in a browser: llama.cpp's server compiled to WebAssembly, with WebGPU where the adapter
// has shader-f16. It loads the same GGUF as llama.cpp, with the same settings.
//
// wllama computes in a worker of its own, where the page's ledger counts. It takes prompts as text alone and does not
// return their ids: package tokenizer computes these here, and the counts of both are compared. Texts are scored by a
// grammar of token ids. What really ran follows from llama.cpp's log.
package wllama

import (
	"fmt"
	"strings"

	"llmparity/browser"
	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// Name is the engine's name in plans and records.
const Name = "wllama"

const title = "wllama"

// Kind is wllama in a browser that is started or attached.
var Kind = &engine.Kind{
	Name: Name, Title: title, Browser: true, Presets: []string{"engines", "matrix"}, Colour: 5,
	Section: Name, Config: func() engine.Config { return newConfig() },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return &Engine{config: *c.(*Config), settings: s}
	},
	Devices: func(c engine.Config) []engine.Section { return c.(*Config).Backends(WASM, WebGPU) },
	Axes:    []string{engine.AxisThreads, engine.AxisStorage, engine.AxisStored},
	Shared:  []string{"threads", "dtype", "watchdog"},
	DTypes:  []string{"f32", "f16"}, DTypeOf: "KV cache", KVTypes: cacheTypes,
	Runs:  func(dtype string) string { return "uses the file as it is, in " + dtype + ", in the browser" },
	Parts: parts, Found: found, Compare: compare, Memory: Memory, Formats: []string{models.GGUF},
	Program: func(c engine.Config, s engine.Settings) (string, error) {
		return c.(*Config).Browser(s.Watchdog).Find()
	},
}

// Backends that can be asked for.
const (
	Auto   = "auto" // WebGPU if the adapter has shader-f16, else WASM, as wllama itself does
	WASM   = "wasm"
	WebGPU = "webgpu"
)

// cacheTypes are the dtypes that the KV cache can have.
var cacheTypes = []string{"f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"}

// Config is the configuration of wllama and its browser.
type Config struct {
	browser.Settings
	Backend        string
	Batch, UBatch  int // prompt tokens handed over, and computed, at a time; 0: llama.cpp's own
	CacheK, CacheV string
	FlashAttention string
}

func newConfig() *Config {
	return &Config{Settings: browser.Defaults(), Backend: Auto, FlashAttention: "off"}
}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	types := strings.Join(cacheTypes, ", ")
	return append(c.Settings.Fields(), []engine.Field{
		{To: &c.Backend, Flag: "wllama-backend", Key: "backend", OneOf: []string{Auto, WASM, WebGPU},
			Help: "wllama: wasm (on the CPU); webgpu, which needs an adapter with shader-f16; or auto (WebGPU where it can)"},
		{To: &c.Batch, Flag: "wllama-batch", Key: "batch", Zero: "llama.cpp's default",
			Help: "wllama: prompt tokens submitted at a time; 0: llama.cpp's default"},
		{To: &c.UBatch, Flag: "wllama-ubatch", Key: "ubatch", Zero: "llama.cpp's default",
			Help: "wllama: prompt tokens computed at a time; 0: llama.cpp's default"},
		{To: &c.CacheK, Flag: "wllama-cache-type-k", Key: "cache_type_k", OneOf: cacheTypes, Axis: engine.AxisKV,
			Help: "wllama: dtype of keys in the KV cache: " + types + " (default: --dtype)"},
		{To: &c.CacheV, Flag: "wllama-cache-type-v", Key: "cache_type_v", OneOf: cacheTypes, Axis: engine.AxisKV,
			Help: "wllama: dtype of values in the KV cache; quantized dtypes need flash attention"},
		{To: &c.FlashAttention, Flag: "wllama-flash-attention", Key: "flash_attention", OneOf: []string{"off", "auto"},
			Help: "wllama: flash attention: off, or auto; it sums in another order, so tokens may differ"},
	}...)
}

// CheckPlan refuses what llama.cpp would refuse.
func (c *Config) CheckPlan(engine.Settings) error {
	if quantised(c.CacheV) && c.flash() == "off" {
		return fmt.Errorf("cache_type_v: %s needs flash attention; set flash_attention: auto (--wllama-flash-attention auto)",
			c.CacheV)
	}
	return nil
}

// Complete fills in the defaults.
func (c *Config) Complete(engine.Settings, models.Model) {
	c.Backend, c.FlashAttention = c.backend(), c.flash()
}

func (c Config) backend() string { return or(c.Backend, Auto) }

func (c Config) flash() string { return or(c.FlashAttention, "off") }

// quantised reports whether a KV cache dtype needs flash attention.
func quantised(name string) bool {
	d, _ := dtype.Named(name)
	return name != "" && !d.Float()
}

func or(value, none string) string {
	if value == "" {
		return none
	}
	return value
}

// Memory describes how wllama holds models in memory. A browser with its page was seen to use 190 to 370 MiB before it
// loads a model.
var Memory = &engine.Memory{Name: Name, Title: title, Runtime: "ggml-web", Before: 370 << 20, FourBits: "q4_k_m",
	KVTypes: cacheTypes,
	Program: engine.Program{Bytes: 136 * record.MiB, Token: 360, Low: 0.6, High: 1.6,
		How: "PSS of wllama's compiled code, its worker and its heap, of which 128 MiB are reserved at once"},
	Starts: func(s engine.Settings) map[string]string {
		e := Engine{config: *newConfig(), settings: s}
		return e.policy(models.Model{}, logs.Load{Offloaded: -1})
	}}
