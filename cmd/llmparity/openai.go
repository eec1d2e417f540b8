package main

import (
	"os"

	"github.com/spf13/pflag"

	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/native/openai"
)

// openaiFlags is what a user may say of a server that speaks OpenAI's interface.
type openaiFlags struct{ server plan.OpenAI }

func openaiKind() engineKind {
	return engineKind{name: openai.Name, flags: []string{"openai-url", "openai-model", "openai-api", "openai-key-env"},
		make: func(f *engineFlags, _ string) engine.Engine { return openai.New(f.openaiFlags.config()) }}
}

func (f *openaiFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.server.URL, "openai-url",
		"", "a server that speaks OpenAI's interface, such as http://127.0.0.1:8080: llama-server, vLLM, SGLang, TGI …")
	flags.StringVar(&f.server.Model, "openai-model", "",
		"the server's name for the model (default: NAME of --model served:NAME, else the only one it has)")
	flags.StringVar(&f.server.API, "openai-api", openai.Completions,
		"the server's interface: completions (the prompt as it is) or chat (in the server's template)")
	flags.StringVar(&f.server.KeyEnv, "openai-key-env",
		"", "the environment variable that holds the server's key, such as OPENAI_API_KEY (default: no key is sent)")
}

// change puts into the plan what flags say.
func (f *openaiFlags) change(p *plan.Plan, given func(string) bool) {
	said := plan.OpenAI{}
	if p.OpenAI != nil {
		said = *p.OpenAI
	}
	for flag, field := range map[string]struct{ to, from *string }{
		"openai-url": {&said.URL, &f.server.URL}, "openai-model": {&said.Model, &f.server.Model},
		"openai-api": {&said.API, &f.server.API}, "openai-key-env": {&said.KeyEnv, &f.server.KeyEnv},
	} {
		if given(flag) {
			*field.to = *field.from
			p.OpenAI = &said
		}
	}
}

// follow takes what the plan says.
func (f *openaiFlags) follow(p plan.Plan) {
	if p.OpenAI != nil {
		f.server = *p.OpenAI
	}
}

// config reads the key, which goes no further than the engine.
func (f *openaiFlags) config() openai.Config {
	c := openai.Config{URL: f.server.URL, Model: f.server.Model, API: f.server.API, KeyFrom: f.server.KeyEnv}
	if c.KeyFrom != "" {
		c.Key = openai.Secret(os.Getenv(c.KeyFrom))
	}
	return c
}
