package ollama

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/native/place"
	"llmparity/native/program"
)

// Kind is Ollama.
var Kind = &engine.Kind{
	Parts: func(c engine.Config, s engine.Settings) []engine.Search {
		return []engine.Search{{Name: part, Find: New(c.(*Config).with(s)).find}}
	},
	Found: func(h engine.Here) engine.Finding { return program.Found(Name, h.Parts[part], h) },
	Name:  Name, Title: "Ollama", Section: Name,
	Config: func() engine.Config { return new(Config) },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return New(c.(*Config).with(s))
	},
	Inside: true, Shared: []string{"threads", "container"}, Axes: []string{engine.AxisThreads}, DTypes: []string{"f32", "f16"},
	KVTypes: Memory.KVTypes,
	Memory:  Memory, Presets: []string{"engines", "matrix"}, Colour: 3,
	Runs: func(dtype string) string { return "uses the file as it is, in " + dtype + ", with an f16 KV cache" },
	Program: func(c engine.Config, s engine.Settings) (string, error) {
		if own := c.(*Config).with(s); own.URL == "" {
			return Find(own)
		}
		return "", nil
	},
}

// Memory describes how Ollama holds models in memory. Its server uses some before it holds a model.
var Memory = &engine.Memory{Name: Name, Title: "Ollama", Runtime: "ggml", Before: 30 << 20, Itself: true,
	KVTypes: []string{"f16", "q8_0", "q4_0"}, FourBits: "q4_k_m",
	Program: engine.Program{Bytes: 36 << 20, Token: 360, Low: 0.5, High: 2,
		How: "PSS of Ollama's runner minus its idle server, on Linux with a CPU; a GPU context adds to it"},
	Starts: func(s engine.Settings) map[string]string { return New(Config{}.with(s)).Settings(models.Model{}) }}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{
		{To: &c.Path, Flag: "ollama", Place: true,
			Help: "path of ollama (default: $LLMPARITY_OLLAMA, then PATH, then the build of scripts/setup ollama)"},
		{To: &c.URL, Flag: "ollama-url", Key: "url",
			Help: "URL of a running Ollama server, e.g. " + DefaultURL + " (default: start a server with its own model store)"},
		{To: &c.KVType, Flag: "ollama-kv-type", Key: "kv_type", OneOf: Memory.KVTypes, Axis: engine.AxisKV,
			Help: "KV cache dtype of a server that llmparity starts: " + strings.Join(Memory.KVTypes, ", ") +
				"; quantized dtypes need a GPU with flash attention (default: f16)"},
		{To: &c.KeepAlive, Flag: "ollama-keep-alive", Key: "keep_alive",
			Help: "how long the model stays loaded after a request, e.g. 10m; -1: always " +
				"(default: always, or 15m in a running server)"},
		{To: &c.GPU, Flag: "ollama-gpu", Key: "gpu", Help: "use a GPU in a server that llmparity starts"},
	}
}

// with applies the settings that all engines share.
func (c Config) with(s engine.Settings) Config {
	c.Cache, c.Threads, c.Slots, c.PromptCache = s.Cache, s.Threads, s.Slots, s.Keep
	if c.URL == "" {
		c.in = place.In(s.Container)
	}
	if s.KVDType != "" {
		c.KVType = s.KVDType
	}
	return c
}

// CheckPlan refuses a keep-alive that is too short, and settings that a running server does not take.
func (c *Config) CheckPlan(s engine.Settings) error {
	switch keep, _ := stay(c.KeepAlive); { // validated by Check
	case keep > 0 && keep < s.Timeout:
		return fmt.Errorf("keep_alive: %s is less than the timeout of %s, so the model could be unloaded within a launch; "+
			"use %[2]s or more, or -1 for always", c.KeepAlive, s.Timeout)
	case c.inherent() != "":
		return fmt.Errorf("%s: applies to a server that llmparity starts, ollama.url to one that is running; omit one of them",
			strings.ReplaceAll(strings.TrimPrefix(c.inherent(), "ollama-"), "-", "_"))
	}
	return nil
}

// stay parses a keep-alive; a plain number is in seconds.
func stay(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// Complete fills in the KV cache dtype, and a keep-alive that is as long as a launch may take.
func (c *Config) Complete(s engine.Settings, _ models.Model) {
	if c.URL != "" && c.KeepAlive == "" && s.Timeout > KeepAlive {
		c.KeepAlive = s.Timeout.String()
	}
	if c.URL == "" && c.KVType == "" {
		c.KVType = "f16"
	}
}

const part = "Ollama"
