package openai

import (
	"context"
	"errors"
	"os"

	"llmparity/internal/engine"
)

// Kind is a server that runs already and speaks OpenAI's interface.
var Kind = &engine.Kind{
	Parts: parts, Found: found,
	Ask:  func(ctx context.Context, url string) engine.Part { return Config{URL: url}.ask(ctx) },
	Name: Name, Title: "OpenAI server", Section: Name, Colour: 4,
	Config: func() engine.Config { return &Config{API: Completions} },
	New: func(_ string, c engine.Config, _ engine.Settings) engine.Engine {
		return New(c.(*Config).WithKey())
	},
}

// WithKey is the configuration with the key, which goes no further than the engine.
func (c Config) WithKey() Config {
	if c.KeyFrom != "" {
		c.Key = Secret(os.Getenv(c.KeyFrom))
	}
	return c
}

// Fields are the settings that users have.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{
		{To: &c.URL, Flag: "openai-url", Key: "url", Required: true,
			Help: "a server that speaks OpenAI's interface, such as http://127.0.0.1:8080: llama-server, vLLM, SGLang, TGI …"},
		{To: &c.Model, Flag: "openai-model", Key: "model",
			Help: "the server's name for the model (default: NAME of --model served:NAME, else the only one it has)"},
		{To: &c.API, Flag: "openai-api", Key: "api", OneOf: []string{Completions, Chat},
			Help: "the server's interface: completions (the prompt as it is) or chat (in the server's template)"},
		{To: &c.KeyFrom, Flag: "openai-key-env", Key: "key_env",
			Help: "the environment variable that holds the server's key, such as OPENAI_API_KEY (default: no key is sent)"},
	}
}

// Check is for the server to do.
func (*Config) Check() error { return nil }

// CheckPlan wants a server.
func (c *Config) CheckPlan(engine.Settings) error {
	if c.URL == "" {
		return errors.New("url: no server is named; give one such as http://127.0.0.1:8080")
	}
	return nil
}

const part = "OpenAI server"

func parts(c engine.Config, _ engine.Settings) []engine.Search {
	own := c.(*Config).WithKey()
	if own.URL == "" {
		return nil
	}
	return []engine.Search{{Name: part, Find: own.ask}}
}

// ask asks a server that is named what it is.
func (c Config) ask(ctx context.Context) engine.Part {
	detail, err := New(c).Describe(ctx)
	return engine.Part{Name: "server", Path: c.URL, Detail: detail, Err: err}
}

func found(h engine.Here) engine.Finding {
	if p, ok := h.Parts[part]; ok {
		return engine.Finding{Name: Name, Ready: true, Path: p.Path, Can: p.Detail}
	}
	return engine.Finding{Name: Name, Can: "whatever a server runs that is named with --openai-url"}
}
