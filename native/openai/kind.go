package openai

import (
	"context"
	"errors"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/place"
)

// Kind is a running server with OpenAI's API.
var Kind = &engine.Kind{
	Parts: func(c engine.Config, _ engine.Settings) []engine.Search {
		if own := *c.(*Config); own.URL != "" {
			return []engine.Search{{Name: part, Find: own.ask}}
		}
		return nil
	},
	Found: func(h engine.Here) engine.Finding {
		if p, ok := h.Parts[part]; ok {
			return engine.Finding{Name: Name, Ready: true, Path: p.Path, Can: p.Detail}
		}
		return engine.Finding{Name: Name, Can: "use any server that --openai-url names"}
	},
	Ask:  func(ctx context.Context, url string) engine.Part { return Config{URL: url}.ask(ctx) },
	Name: Name, Title: "OpenAI server", Section: Name, Colour: 4, Remote: true, Inside: true,
	Shared: []string{"container"},
	Config: func() engine.Config { return &Config{API: Completions} },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		own := *c.(*Config)
		own.In = place.In(s.Container)
		return New(own)
	},
}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{
		{To: &c.URL, Flag: "openai-url", Key: "url", Required: true,
			Help: "URL of a server with OpenAI's API (llama-server, vLLM, SGLang, TGI …), e.g. http://127.0.0.1:8080"},
		{To: &c.Model, Flag: "openai-model", Key: "model",
			Help: "the server's name for the model (default: NAME of --model served:NAME, else the server's only model)"},
		{To: &c.API, Flag: "openai-api", Key: "api", OneOf: []string{Completions, Chat},
			Help: "endpoint: completions (raw prompt) or chat (prompt in the server's chat template)"},
		{To: &c.Device, Flag: "openai-device", Key: "device", OneOf: []string{string(record.CPU), string(record.GPU)},
			Help: "what the server computes on: cpu or gpu (default: derived from its processes if they run here, else unknown)"},
		{To: &c.KeyFrom, Flag: "openai-key-env", Key: "key_env",
			Help: "environment variable with the server's API key, e.g. OPENAI_API_KEY (default: no key)"},
	}
}

// Check leaves everything to the server.
func (*Config) Check() error { return nil }

// CheckPlan requires a server.
func (c *Config) CheckPlan(engine.Settings) error {
	if c.URL == "" {
		return errors.New("url: missing; use one such as http://127.0.0.1:8080")
	}
	return nil
}

const part = "OpenAI server"

// ask finds out what a server is.
func (c Config) ask(ctx context.Context) engine.Part {
	detail, err := New(c).Describe(ctx)
	return engine.Part{Name: "server", Path: c.URL, Detail: detail, Err: err}
}
