// Package openai uses any server with OpenAI's HTTP API: llama-server, vLLM, SGLang, TGI, Ollama, LM Studio and
// others.
//
// The server is already running with its model; nothing is started, loaded or ended here. An engine that starts one
// joins it (Engine.Join). Times are when the client
// has read a chunk with text. A chunk is a piece of text and not a token, so tokens are counted by the server's usage,
// with every chunk if the server supports that. Only vLLM returns token ids. The kind of server is detected from its
// answers, and only known kinds get fields beyond the common API. Of a server on another machine only its answers are
// measured.
package openai

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/place"
	"llmparity/native/program"
)

// Name is the engine's name in plans and records.
const Name = "openai"

// APIs: the prompt as it is, or as a user message in a chat.
const (
	Completions = "completions"
	Chat        = "chat"
)

// requests is how many streams can run at a time; more cannot be timed by one client.
const requests = 256

// Config is the configuration. URL is required.
type Config struct {
	URL string // http://host:port, with or without /v1
	// Model is the server's name for the model; empty: the name of a served model, else the only one on the server.
	Model  string
	API    string // Completions, unless set
	Device string // what the server computes on: cpu or gpu; empty: derived if it runs here, else unknown
	// KeyFrom is the environment variable that holds the key.
	KeyFrom string
	In      *place.Place // where the server runs, if not on this machine as the URL says
}

func (c Config) api() string { return cmp.Or(c.API, Completions) }

// Engine is a server with OpenAI's API.
type Engine struct {
	config Config
	met    atomic.Pointer[found] // the latest; nil: not contacted yet
}

// found is a server that has answered.
type found struct {
	client *client
	server
	api string
}

// New makes the engine without contacting the server.
func New(c Config) *Engine { return &Engine{config: c} }

// Name returns Name.
func (*Engine) Name() string { return Name }

// Caps returns what the server can do. Whether it continues after the end of a text, and whether its prompt cache can
// be switched off, is known after it was contacted.
func (e *Engine) Caps() engine.Caps {
	s := e.met.Load()
	if s == nil {
		at, _ := parseAddress(e.config.URL) // Check reports errors
		s = &found{client: &client{at: at}}
	}
	c := s.caps()
	c.Resident, c.Isolation = s.client.at.local, record.OfServer
	return c
}

// caps returns what a server can do. Its precision is unknown.
func (s *found) caps() engine.Caps {
	ids := s.tellsIDs()
	return engine.Caps{IgnoreEOS: s.kind.ignoresEOS(), PromptCache: s.kind != llamaServer && !s.salts(), Served: true,
		TokenIDs: ids, TakesIDs: ids, Exact: ids, Scores: ids, Requests: requests, Rounds: true}
}

// Check finds out what the server is and whether it has the model.
func (e *Engine) Check(ctx context.Context, m models.Model) error {
	if m.Format != record.Served {
		if err := program.CheckGGUF("openai", m); err != nil {
			return err
		}
	}
	s, err := e.reach(ctx)
	if err != nil {
		return err
	}
	_, err = s.choose(e.config, m)
	return err
}

// reach connects to the server and finds out what it is.
func (e *Engine) reach(ctx context.Context) (*found, error) {
	at, err := parseAddress(e.config.URL)
	if err != nil {
		return nil, err
	}
	key := os.Getenv(e.config.KeyFrom)
	if e.config.KeyFrom != "" && key == "" {
		return nil, fault.New(fault.Usage, "set it, or omit the flag",
			"--openai-key-env: variable %s is empty or not set", e.config.KeyFrom)
	}
	unsendable := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' } // in a header
	if strings.ContainsFunc(key, unsendable) {
		return nil, fault.New(fault.Usage, "set it without line breaks, spaces and quotes",
			"--openai-key-env: variable %s contains characters that a key cannot have", e.config.KeyFrom)
	}
	c := newClient(at.resolved(ctx), key, e.config.KeyFrom)
	if in := e.config.In; in != nil {
		c.HTTP, c.dial, c.at.local = in.Client(), in.Dial, true
	}
	s, err := detect(ctx, c)
	if err != nil {
		return nil, err
	}
	of := &found{c, s, e.config.api()}
	e.met.Store(of)
	return of, nil
}

// Open finds out what the server is, and starts sampling it if it is visible.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	of, err := e.reach(ctx)
	if err != nil {
		return nil, err
	}
	s := of.session(e.config, p)
	p.Event(record.Event{At: time.Now(), Device: new(s.stated())}) // Load knows more
	if err := s.watchProcesses(ctx); err != nil {
		engine.Warn(p, "server-not-sampled", "the memory of the server at %s is not sampled: %v", s.client.at.host, err)
	}
	s.watchMetrics(ctx)
	return s, nil
}

func (s *found) session(c Config, p engine.Probe) *session {
	life, end := context.WithCancel(context.Background())
	return &session{found: s, config: c, probe: p, life: life, end: end,
		own: launch.Held[model]{Name: "the session", Closed: errClosed, Turns: engine.Turns{Most: requests}}}
}

// Describe returns the server and its models on one line.
func (e *Engine) Describe(ctx context.Context) (string, error) {
	s, err := e.reach(ctx)
	if err != nil {
		return "", err
	}
	if !s.listed {
		return s.title() + " at " + s.client.at.host + ", which lists no models", nil
	}
	return s.title() + " at " + s.client.at.host + ", with " + list(s.ids()), nil
}

// Named is a model on the server.
func (*Engine) Named(name string) string { return record.Served + ":" + name }

// Count asks the server for the number of tokens: llama-server and vLLM tokenise, others count the prompt of a request
// for one token.
func (e *Engine) Count(ctx context.Context, m models.Model, prompt string) (int, error) {
	s := e.met.Load()
	if s == nil {
		var err error
		if s, err = e.reach(ctx); err != nil {
			return 0, err
		}
	}
	of, err := s.choose(e.config, m)
	if err != nil {
		return 0, err
	}
	c := s.client
	asked := map[string]any{"model": of.ID, "prompt": prompt, "max_tokens": 1, "temperature": 0}
	path, tokenize := c.at.api+"/completions", c.at.root+"/tokenize"
	switch {
	case e.config.api() == Chat:
		delete(asked, "prompt")
		asked["messages"] = []map[string]string{{"role": "user", "content": prompt}}
		path = c.at.api + "/chat/completions"
	case s.kind == llamaServer:
		asked, path = map[string]any{"content": prompt, "add_special": true, "parse_special": true}, tokenize
	case s.kind == vllm:
		asked, path = map[string]any{"model": of.ID, "prompt": prompt}, tokenize
	}
	var answer struct {
		Tokens []int `json:"tokens"`
		Usage  struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := c.Call(ctx, http.MethodPost, path, asked, &answer); err != nil {
		return 0, c.explain(err)
	}
	if n := max(len(answer.Tokens), answer.Usage.Prompt); n > 0 {
		return n, nil
	}
	return 0, fault.New(fault.NotSupported, "use texts as prompts", "the server at %s does not count the tokens of a prompt",
		c.at.host)
}
