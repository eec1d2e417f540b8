package llamacpp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/program"
)

// Kind is llama.cpp's server.
var Kind = kind(engine.Kind{
	Name: Name, Title: "llama.cpp", Default: true, Colour: 2,
	New:     func(_ string, c engine.Config, s engine.Settings) engine.Engine { return New(c.(*Config).with(s)) },
	DTypes:  []string{"f32", "f16"},
	Runs:    func(dtype string) string { return "runs it as it is stored, in " + dtype },
	Program: func(c engine.Config, s engine.Settings) (string, error) { return Find(c.(*Config).with(s)) },
	Parts: func(c engine.Config, s engine.Settings) []engine.Search {
		return []engine.Search{{Name: serverPart, Find: func(ctx context.Context) engine.Part {
			path, err := Find(c.(*Config).with(s))
			if err != nil {
				return engine.Part{Err: err}
			}
			return program.Part(ctx, fault.NoLlamaServer, path)
		}}}
	},
	Found: func(h engine.Here) engine.Finding { return program.Found(Name, h.Parts[serverPart], h) },
})

// The parts of both programs.
const (
	serverPart = "llama-server"
	cliPart    = "llama-completion"
)

// OneShotKind is its one-shot program.
var OneShotKind = kind(engine.Kind{
	Name: OneShotName, Title: "llama.cpp, one-shot", Presets: []string{"engines"}, Colour: 6,
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return NewOneShot(c.(*Config).with(s))
	},
	Runs:    func(dtype string) string { return "runs it as it is stored, in " + dtype + ", a process a generation" },
	Program: func(c engine.Config, s engine.Settings) (string, error) { return FindCLI(c.(*Config).with(s)) },
	Parts: func(c engine.Config, s engine.Settings) []engine.Search {
		return []engine.Search{{Name: cliPart, Find: func(ctx context.Context) engine.Part {
			own := c.(*Config).with(s)
			switch path, err := FindCLI(own); {
			// which nothing needs that was not asked for
			case err != nil && own.CLI == "" && os.Getenv(CLIVariable) == "":
				return engine.Part{Absent: true, Detail: "for " + OneShotName +
					" alone: scripts/setup llamacpp-tools builds one"}
			case err != nil:
				return engine.Part{Err: err}
			default:
				return program.Part(ctx, fault.NoLlamaServer, path)
			}
		}}}
	},
	Found: func(h engine.Here) engine.Finding { return program.Found(OneShotName, h.Parts[cliPart], h) },
})

// kind has what both programs share.
func kind(k engine.Kind) *engine.Kind {
	k.Section, k.Config = Name, func() engine.Config { return &Config{FlashAttention: "off", Mmap: "on"} }
	k.Shared, k.Axes, k.DTypeOf = []string{"threads", "dtype"}, []string{engine.AxisThreads}, "KV cache"
	k.Memory, k.Libraries = Memory, LibrariesSHA256
	k.KVTypes = func(string) []string { return cacheTypes() }
	return &k
}

// Memory is how llama.cpp has models in memory.
var Memory = &engine.Memory{Name: Name, Title: "llama.cpp", Runtime: engine.GGML, FourBits: "q4_k_m",
	Program: engine.Program{Bytes: 16.6 * record.MiB, Token: 360, Low: 0.5, High: 1.6,
		How: "llama-server's program, HTTP and the vocabulary, by PSS on Linux with a CPU while no other one shares its libraries; " +
			"a GPU's context adds to it"}}

// cacheTypes are the element types that the KV cache can have.
func cacheTypes() []string {
	return []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}
}

// quantised says that a cache's type needs flash attention.
func quantised(dtype string) bool { return !slices.Contains([]string{"", "f32", "f16", "bf16"}, dtype) }

// Fields are the settings that users have.
func (c *Config) Fields() []engine.Field {
	types := strings.Join(cacheTypes(), ", ")
	return []engine.Field{
		{To: &c.Path, Flag: "llama-server", Only: Name, Place: true, Help: "the llama-server to start " +
			"(default: $LLMPARITY_LLAMA_SERVER, else PATH, else the one that make setup built)"},
		{To: &c.CLI, Flag: "llamacpp-cli", Only: OneShotName, Place: true,
			Help: "the program of " + OneShotName + ": llama-completion, or an older llama-cli or main " +
				"(default: $LLMPARITY_LLAMA_CLI, else PATH, else the one that scripts/setup llamacpp-tools built)"},
		{To: &c.BatchThreads, Flag: "llamacpp-batch-threads", Key: "batch_threads", Zero: "as many as threads",
			Help: "llama.cpp's threads in prefill; 0: as many as --threads"},
		{To: &c.Batch, Flag: "llamacpp-batch", Key: "batch", Zero: "llama.cpp's own",
			Help: "tokens of a prompt that llama.cpp takes at a time; 0: its own choice"},
		{To: &c.UBatch, Flag: "llamacpp-ubatch", Key: "ubatch", Zero: "llama.cpp's own",
			Help: "tokens that llama.cpp computes at a time; 0: its own choice"},
		{To: &c.CacheK, Flag: "llamacpp-cache-type-k", Key: "cache_type_k", OneOf: cacheTypes(), Axis: engine.AxisKV,
			Help: "numbers of the keys in llama.cpp's KV cache: " + types + " (default: --dtype's)"},
		{To: &c.CacheV, Flag: "llamacpp-cache-type-v", Key: "cache_type_v", OneOf: cacheTypes(), Axis: engine.AxisKV,
			Help: "numbers of the values in llama.cpp's KV cache: as of the keys; quantised ones need flash attention"},
		{To: &c.FlashAttention, Flag: "llamacpp-flash-attention", Key: "flash_attention",
			OneOf: []string{"off", "on", "auto"},
			Help:  "llama.cpp's flash attention: off, on or auto; it sums in another order"},
		{To: &c.Mmap, Flag: "llamacpp-mmap", Key: "mmap", OneOf: []string{"on", "off"},
			Help: "whether llama.cpp maps the model's file: on, or off (reads it into memory of its own)"},
		{To: &c.GPULayers, Flag: "llamacpp-gpu-layers", Key: "gpu_layers", Zero: "none",
			Help: "layers that llama.cpp puts on a GPU; its build must have one"},
	}
}

// with is the configuration for what a plan says to all engines.
func (c Config) with(s engine.Settings) Config {
	c.Cache, c.Threads, c.KVType, c.Slots, c.PromptCache = s.Cache, s.Threads, s.DType, s.Slots, s.Keep
	if s.KVDType != "" {
		c.CacheK, c.CacheV = s.KVDType, s.KVDType
		if quantised(s.KVDType) && c.flashAttention() == "off" {
			c.FlashAttention = "on"
		}
	}
	return c
}

// coarse says that it computes otherwise than in single precision and one sum after another: what a model says may then
// be something else. That the cache has dtype's numbers by default is the plan's to look at.
func (c Config) coarse() bool {
	plain := func(value, of string) bool { return value == "" || value == of }
	return !plain(c.CacheK, "f32") || !plain(c.CacheV, "f32") || c.flashAttention() != "off" || c.GPULayers > 0
}

// Check leaves all to CheckPlan.
func (*Config) Check() error { return nil }

// CheckPlan refuses what llama.cpp would.
func (c *Config) CheckPlan(engine.Settings) error {
	if quantised(c.CacheV) && c.flashAttention() == "off" {
		return fmt.Errorf("cache_type_v: %s needs flash attention; add flash_attention: on (--llamacpp-flash-attention on)", c.CacheV)
	}
	return nil
}

// Complete says what is chosen by default.
func (c *Config) Complete(s engine.Settings, _ engine.Model) {
	c.BatchThreads = cmp.Or(c.BatchThreads, s.Threads)
	c.FlashAttention, c.Mmap = c.flashAttention(), cmp.Or(c.Mmap, "on")
}
