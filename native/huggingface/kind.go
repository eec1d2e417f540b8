package huggingface

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/native/place"
)

// Config is the configuration. The zero value computes in float32 on the CPU.
type Config struct {
	Python    string // program; empty: search for it
	Device    string // cpu, cuda or mps; empty: cpu
	DeviceMap string // how layers are spread over devices, by accelerate; empty: they are not
	Attention string // implementation; empty: transformers' choice
	Compile   bool   // torch.compile

	Cache    string // cache folder
	DType    string // f32, f16 or bf16; empty: f32
	Threads  int    // 0: torch's choice
	Slots    int    // requests that are one batch; 0: one
	Watchdog time.Duration

	in   *place.Place // where it runs; nil: on this machine
	deep bool         // for a profile
}

// Kind is Hugging Face's transformers.
var Kind = &engine.Kind{
	Name: Name, Title: "transformers", Section: Name, Presets: []string{"engines"}, Colour: 4,
	Config: func() engine.Config { return new(Config) },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return New(c.(*Config).with(s))
	},
	Shared: []string{"threads", "dtype", "watchdog", "container"}, Inside: true, Axes: []string{engine.AxisThreads},
	DTypes: []string{"f32", "f16", "bf16"}, DTypeOf: "weights and computation",
	Formats: []string{models.GGUF, models.HuggingFace}, Memory: Memory,
	Runs: func(dtype string) string { return "converts it to a Hugging Face folder; computes in --dtype" },
	Parts: func(c engine.Config, s engine.Settings) []engine.Search {
		own := c.(*Config).with(s)
		return []engine.Search{{Name: part, Find: func(ctx context.Context) engine.Part {
			e, err := own.find(ctx)
			switch {
			case err == nil:
				return engine.Part{Version: e.version(), Path: e.python}
			case own.Python == "" && os.Getenv(Variable) == "": // optional, and nobody requested it
				return engine.Part{Absent: true,
					Detail: "only for " + Name + ": install it with scripts/setup huggingface"}
			}
			return engine.Part{Err: err}
		}}}
	},
	Found: func(h engine.Here) engine.Finding {
		p := h.Parts[part]
		if p.Path == "" {
			return engine.Finding{Name: Name, Can: "not installed"}
		}
		return engine.Finding{Name: Name, Ready: true, Version: p.Version, Path: p.Path, Device: "cpu", F16: new(true),
			Can: "run Hugging Face folders and GGUF files on the CPU, or on a GPU of which torch knows on request"}
	},
	Program: func(c engine.Config, s engine.Settings) (string, error) {
		e, err := c.(*Config).with(s).find(context.Background())
		return e.python, err
	},
}

const part = "transformers"

// Memory describes how torch holds models.
var Memory = &engine.Memory{Name: Name, Title: "transformers", Runtime: "torch", FourBits: "nf4",
	KVTypes: []string{"f32", "f16", "bf16", "int8"},
	Before:  370 << 20, // torch and transformers, imported
	Program: engine.Program{Bytes: 0.6 * (1 << 30), Devices: true, Low: 0.5, High: 2,
		How: "rule of thumb: a CUDA context, cuBLAS workspace and PyTorch's rounding on each device; similar on a CPU"},
	Starts: func(s engine.Settings) map[string]string { return Config{}.with(s).policy(models.Model{}) }}

var (
	devices    = []string{"cpu", "cuda", "mps"}
	attentions = []string{"eager", "sdpa", "flash_attention_2", "flex_attention"}
	maps       = []string{"auto", "balanced", "balanced_low_0", "sequential"}
)

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{
		{To: &c.Python, Flag: "huggingface-python", Place: true,
			Help: "path of a Python that has torch and transformers (default: $" + Variable +
				", then PATH, then the environment of scripts/setup huggingface)"},
		{To: &c.Device, Flag: "huggingface-device", Key: "device", OneOf: devices,
			Help: "torch device of the model: cpu, cuda or mps (default: cpu)"},
		{To: &c.DeviceMap, Flag: "huggingface-device-map", Key: "device_map", OneOf: maps,
			Help: "let accelerate spread layers over devices: auto, balanced, balanced_low_0 or sequential (default: one device)"},
		{To: &c.Attention, Flag: "huggingface-attention", Key: "attention", OneOf: attentions,
			Help: "attention implementation: eager, sdpa, flash_attention_2 or flex_attention (default: transformers' choice)"},
		{To: &c.Compile, Flag: "huggingface-compile", Key: "compile",
			Help: "compile the model with torch.compile; needs a C++ compiler on a CPU"},
	}
}

// with applies the settings that all engines share.
func (c Config) with(s engine.Settings) Config {
	c.Cache, c.DType, c.Threads, c.Slots, c.Watchdog = s.Cache, s.DType, s.Threads, s.Slots, s.Watchdog
	c.in = place.In(s.Container)
	return c
}

func (c Config) batch() int     { return max(1, c.Slots) }
func (c Config) dtype() string  { return cmp.Or(c.DType, "f32") }
func (c Config) device() string { return cmp.Or(c.Device, "cpu") }

func (c Config) cache() string { return cmp.Or(c.Cache, cache.Dir(os.Getenv)) }

// coarse reports whether it computes at less than single precision, or in an order that can change tokens.
func (c Config) coarse() bool {
	return c.dtype() != "f32" || c.device() != "cpu" || c.DeviceMap != "" || c.Compile || c.batch() > 1
}

// arguments are those of the runner.
func (c Config) arguments() []string {
	list := []string{"--device", c.device()}
	if c.DeviceMap != "" {
		list = append(list, "--device-map", c.DeviceMap)
	}
	if c.Attention != "" {
		list = append(list, "--attention", c.Attention)
	}
	if c.Compile {
		list = append(list, "--compile")
	}
	if c.batch() > 1 {
		list = append(list, "--batch", strconv.Itoa(c.batch()))
	}
	if c.deep {
		list = append(list, "--profile")
	}
	return list
}

// Deepen has the runner note what it holds before and after the load.
func (c *Config) Deepen() { c.deep = true }

// policy lists the settings that affect memory.
func (c Config) policy(m models.Model) map[string]string {
	p := map[string]string{"weights_dtype": c.dtype(), "kv_dtype": c.dtype(), "prompt_cache": "off",
		"device": c.device(), "compile": map[bool]string{false: "off", true: "on"}[c.Compile]}
	for name, value := range map[string]string{"attention": c.Attention, "device_map": c.DeviceMap} {
		if value != "" {
			p[name] = value
		}
	}
	if m.Context > 0 {
		p["context"] = strconv.Itoa(m.Context)
	}
	if c.batch() > 1 {
		p["batch"] = strconv.Itoa(c.batch())
	}
	return p
}

// Check refuses what makes no sense.
func (c *Config) Check() error {
	if c.DeviceMap != "" && c.Device == "mps" {
		return fault.New(fault.Usage, "omit one of them", "--huggingface-device-map is for CUDA devices, not for mps")
	}
	return nil
}

// CheckPlan refuses the same in a plan.
func (c *Config) CheckPlan(engine.Settings) error {
	if c.DeviceMap != "" && c.Device == "mps" {
		return fmt.Errorf("device_map: it is for CUDA devices, not for mps; omit one of them")
	}
	return nil
}

// Complete fills in the default device.
func (c *Config) Complete(engine.Settings, models.Model) { c.Device = c.device() }
