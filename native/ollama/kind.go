package ollama

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/native/program"
)

// Kind is Ollama.
var Kind = &engine.Kind{
	Parts: parts, Found: func(h engine.Here) engine.Finding { return program.Found(Name, h.Parts[part], h) },
	Name: Name, Title: "Ollama", Section: Name,
	Config: func() engine.Config { return new(Config) },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return New(c.(*Config).with(s))
	},
	Shared: []string{"threads"}, Axes: []string{engine.AxisThreads}, DTypes: []string{"f32", "f16"},
	KVTypes: func(string) []string { return KVTypes() },
	Memory:  Memory, Presets: []string{"engines"}, Colour: 3,
	Runs: func(dtype string) string { return "runs it as it is stored, in " + dtype + ", with a KV cache of f16" },
	Program: func(c engine.Config, s engine.Settings) (string, error) {
		if own := c.(*Config).with(s); own.URL == "" {
			return Find(own)
		}
		return "", nil
	},
}

// Memory is how Ollama has models in memory. Its server holds some before a model is there.
var Memory = &engine.Memory{Name: Name, Title: "Ollama", Runtime: engine.GGML, Before: 30 << 20, Itself: true,
	FourBits: "q4_k_m",
	Program: engine.Program{Bytes: 36 << 20, Token: 360, Low: 0.5, High: 2,
		How: "Ollama's runner beyond its idle server, by PSS on Linux with a CPU; a GPU's context adds to it"}}

// Fields are the settings that users have.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{
		{To: &c.Path, Flag: "ollama", Place: true,
			Help: "the ollama to start (default: $LLMPARITY_OLLAMA, else PATH, else the one that scripts/setup ollama built)"},
		{To: &c.URL, Flag: "ollama-url", Key: "url",
			Help: "an Ollama that runs already, such as " + DefaultURL +
				" (default: one is started, with a store of its own)"},
		{To: &c.KVType, Flag: "ollama-kv-type", Key: "kv_type", OneOf: KVTypes(), Axis: engine.AxisKV,
			Help: "numbers of the KV cache of the Ollama that is started: " + strings.Join(KVTypes(), ", ") +
				"; quantised ones need a GPU that has flash attention (default: f16)"},
		{To: &c.KeepAlive, Flag: "ollama-keep-alive", Key: "keep_alive",
			Help: "how long a model stays in Ollama's memory after a request, as in 10m; -1: for ever " +
				"(default: for ever, 15m in one that runs already)"},
		{To: &c.GPU, Flag: "ollama-gpu", Key: "gpu", Help: "let the Ollama that is started use a GPU"},
	}
}

// with is the configuration for what a plan says to all engines.
func (c Config) with(s engine.Settings) Config {
	c.Cache, c.Threads, c.Slots, c.PromptCache = s.Cache, s.Threads, s.Slots, s.Keep
	if s.KVDType != "" {
		c.KVType = s.KVDType
	}
	return c
}

// CheckPlan refuses a model that would go too soon, and what only an Ollama that is started can be told.
func (c *Config) CheckPlan(s engine.Settings) error {
	switch keep, _ := stay(c.KeepAlive); { // Check says what is wrong with it
	case keep > 0 && keep < s.Timeout:
		return fmt.Errorf("keep_alive: %s is less than the timeout of %s: the model might go within a launch; "+
			"make it as long, or -1 for ever", c.KeepAlive, s.Timeout)
	case c.URL != "" && c.KVType != "":
		return fmt.Errorf("kv_type: %s is for an Ollama that is started, and ollama.url names one that runs; leave one out", c.KVType)
	case c.URL != "" && c.GPU:
		return fmt.Errorf("gpu: an Ollama that runs already does as it likes; leave out gpu or url")
	}
	return nil
}

// stay is how long a model stays after a request: a number is one of seconds.
func stay(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// Complete keeps the model for as long as a launch may take, and says which KV cache there is.
func (c *Config) Complete(s engine.Settings, _ engine.Model) {
	if c.URL != "" && c.KeepAlive == "" && s.Timeout > KeepAlive {
		c.KeepAlive = s.Timeout.String()
	}
	if c.URL == "" && c.KVType == "" {
		c.KVType = "f16"
	}
}

const part = "Ollama"

// parts is the program, or the server where one is named.
func parts(c engine.Config, s engine.Settings) []engine.Search {
	return []engine.Search{{Name: part, Find: func(ctx context.Context) engine.Part {
		own := c.(*Config).with(s)
		detail, err := New(own).Describe(ctx)
		if err != nil {
			return engine.Part{Err: err}
		}
		version, path, _ := strings.Cut(detail, "  ")
		p := engine.Part{Version: version, Path: path}
		if own.URL == "" {
			p.Backends = program.Backends(path, "lib/ollama", "lib/ollama/*", "../lib/ollama", "../lib/ollama/*",
				"build/lib/ollama")
		}
		return p
	}}}
}
