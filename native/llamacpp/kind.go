package llamacpp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/place"
	"llmparity/native/program"
)

// Kind is llama.cpp's server.
var Kind = kind(false, engine.Kind{Name: Name, Title: "llama.cpp", Default: true, Colour: 2, Inside: true,
	DTypes: []string{"f32", "f16"},
	Runs:   func(dtype string) string { return "uses the file as it is, in " + dtype }})

// OneShotKind is llama.cpp's one-shot program.
var OneShotKind = kind(true, engine.Kind{Name: OneShotName, Title: "llama.cpp one-shot", Presets: []string{"engines"},
	Colour: 6,
	Runs: func(dtype string) string {
		return "uses the file as it is, in " + dtype + "; one process per generation"
	}})

// kind adds what both programs share.
func kind(oneShot bool, k engine.Kind) *engine.Kind {
	p, _ := Config{}.program(oneShot)
	part := p.Names[0]
	k.Section, k.Config = Name, func() engine.Config { return &Config{FlashAttention: "off", Mmap: "on"} }
	k.Shared, k.Axes, k.DTypeOf = []string{"threads", "dtype"}, []string{engine.AxisThreads}, "KV cache"
	k.Memory, k.Libraries = Memory, LibrariesSHA256
	k.KVTypes = cacheTypes
	if k.Inside {
		k.Shared = append(k.Shared, "container")
	}
	k.New = func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		if oneShot {
			return NewOneShot(c.(*Config).with(s))
		}
		return New(c.(*Config).with(s))
	}
	k.Found = func(h engine.Here) engine.Finding { return program.Found(k.Name, h.Parts[part], h) }
	k.Program = func(c engine.Config, s engine.Settings) (string, error) { return c.(*Config).with(s).find(oneShot) }
	k.Parts = func(c engine.Config, s engine.Settings) []engine.Search {
		own := c.(*Config).with(s)
		return []engine.Search{{Name: part, Find: func(ctx context.Context) engine.Part {
			path, err := own.find(oneShot)
			switch {
			case err == nil:
				p := engine.Version(ctx, fault.NoLlamaServer, path, "--version")
				p.Version, p.Backends = strings.TrimPrefix(p.Version, "version: "), program.Backends(path)
				return p
			case oneShot && own.CLI == "" && os.Getenv(CLIVariable) == "": // optional, and nobody requested it
				return engine.Part{Absent: true,
					Detail: "only for " + k.Name + ": build it with scripts/setup llamacpp-tools"}
			}
			return engine.Part{Err: err}
		}}}
	}
	return &k
}

// Memory describes how llama.cpp holds models in memory.
var Memory = &engine.Memory{Name: Name, Title: "llama.cpp", Runtime: "ggml", FourBits: "q4_k_m",
	KVTypes: cacheTypes,
	Program: engine.Program{Bytes: 16.6 * record.MiB, Token: 360, Low: 0.5, High: 1.6,
		How: "PSS of llama-server's code, HTTP and vocabulary, on Linux with a CPU, while no other process shares its libraries; " +
			"a GPU context adds to it"},
	Starts: func(s engine.Settings) map[string]string { return Config{}.with(s).policy(models.Model{}, logs.Load{}) }}

// cacheTypes are the dtypes that the KV cache can have.
var cacheTypes = []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}

// quantised reports whether a KV cache dtype needs flash attention.
func quantised(name string) bool {
	d, _ := dtype.Named(name)
	return name != "" && !d.Float()
}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	types := strings.Join(cacheTypes, ", ")
	return []engine.Field{
		{To: &c.Path, Flag: "llama-server", Key: "server", Only: Name, Place: true, Help: "path of llama-server, or " +
			narrow + " for the build without wider vectors than a browser has " +
			"(default: $LLMPARITY_LLAMA_SERVER, then PATH, then the build of make setup)"},
		{To: &c.CLI, Flag: "llamacpp-cli", Only: OneShotName, Place: true,
			Help: "path of the program of " + OneShotName + ": llama-completion, or llama-cli or main of an older llama.cpp " +
				"(default: $LLMPARITY_LLAMA_CLI, then PATH, then the program that scripts/setup llamacpp-tools built)"},
		{To: &c.BatchThreads, Flag: "llamacpp-batch-threads", Key: "batch_threads", Zero: "same as threads",
			Help: "threads for prefill; 0: same as --threads"},
		{To: &c.Batch, Flag: "llamacpp-batch", Key: "batch", Zero: "llama.cpp's default",
			Help: "prompt tokens submitted at a time; 0: llama.cpp's default"},
		{To: &c.UBatch, Flag: "llamacpp-ubatch", Key: "ubatch", Zero: "llama.cpp's default",
			Help: "prompt tokens computed at a time; 0: llama.cpp's default"},
		{To: &c.CacheK, Flag: "llamacpp-cache-type-k", Key: "cache_type_k", OneOf: cacheTypes, Axis: engine.AxisKV,
			Help: "dtype of keys in the KV cache: " + types + " (default: --dtype)"},
		{To: &c.CacheV, Flag: "llamacpp-cache-type-v", Key: "cache_type_v", OneOf: cacheTypes, Axis: engine.AxisKV,
			Help: "dtype of values in the KV cache, with the same choices as for keys; quantized dtypes need flash attention"},
		{To: &c.FlashAttention, Flag: "llamacpp-flash-attention", Key: "flash_attention",
			OneOf: []string{"off", "on", "auto"},
			Help:  "flash attention: off, on or auto; it sums in another order, so tokens may differ"},
		{To: &c.Mmap, Flag: "llamacpp-mmap", Key: "mmap", OneOf: []string{"on", "off"},
			Help: "on: map the model file; off: read the file into memory"},
		{To: &c.GPULayers, Flag: "llamacpp-gpu-layers", Key: "gpu_layers", Zero: "none",
			Help: "layers to put on a GPU; needs a llama.cpp build with GPU support"},
	}
}

// with applies the settings that all engines share.
func (c Config) with(s engine.Settings) Config {
	c.Cache, c.Threads, c.KVType, c.Slots, c.PromptCache = s.Cache, s.Threads, s.DType, s.Slots, s.Keep
	c.Fallback, c.in = s.Fallback, place.In(s.Container)
	if s.KVDType != "" {
		c.CacheK, c.CacheV = s.KVDType, s.KVDType
		if quantised(s.KVDType) && c.flashAttention() == "off" {
			c.FlashAttention = "on"
		}
	}
	return c
}

// coarse reports whether it computes at less than single precision or sums in another order, which can change tokens.
// A KV cache of --dtype's own precision is left to package plan.
func (c Config) coarse() bool {
	plain := func(value, of string) bool { return value == "" || value == of }
	return !plain(c.CacheK, "f32") || !plain(c.CacheV, "f32") || c.flashAttention() != "off" || c.GPULayers > 0
}

// Check leaves everything to CheckPlan.
func (*Config) Check() error { return nil }

// CheckPlan refuses what llama.cpp would refuse.
func (c *Config) CheckPlan(engine.Settings) error {
	if quantised(c.CacheV) && c.flashAttention() == "off" {
		return fmt.Errorf("cache_type_v: %s needs flash attention; set flash_attention: on (--llamacpp-flash-attention on)", c.CacheV)
	}
	return nil
}

// Complete fills in the defaults.
func (c *Config) Complete(s engine.Settings, _ models.Model) {
	c.BatchThreads = cmp.Or(c.BatchThreads, s.Threads)
	c.FlashAttention, c.Mmap = c.flashAttention(), cmp.Or(c.Mmap, "on")
}
