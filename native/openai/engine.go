// Package openai drives any server that speaks OpenAI's HTTP interface: llama-server, vLLM, SGLang, TGI, Ollama, LM
// Studio and the rest.
//
// The server runs already, with its model, and goes on: nothing here starts, loads or ends one. Times are those at
// which the client had read a chunk of the stream that has text in it; a chunk is a piece of text and no token, so that
// tokens are counted by the server's own usage, with every chunk where it can be asked for that. No ids are told. What
// a server is, is found out from what it answers; fields that only some servers know are sent to those alone. Of a
// server on another machine nothing is measured but its answers.
package openai

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/program"
)

// Name is the engine's name in plans and records.
const Name = "openai"

// The interfaces: prompts as they are, or as a user's message in a chat.
const (
	Completions = "completions"
	Chat        = "chat"
)

// requests is how many streams may go on at a time: enough for any load that one client can time.
const requests = 256

// Config is what a user may choose. A URL is needed.
type Config struct {
	URL string // http://host:port, with or without /v1
	// by the server's name for it; empty: the model's own where it is a served one, else the only one that there is
	Model string
	API   string // Completions, unless set
	Key   Secret
	// KeyFrom names the variable that the key is from, for advice.
	KeyFrom string
}

func (c Config) api() string { return cmp.Or(c.API, Completions) }

// Secret is not printed.
type Secret string

// String hides it.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[key]"
}

// GoString hides it too.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides it as well.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Engine is a server.
type Engine struct {
	config Config

	patience time.Duration                         // with questions; 0: askPatience
	proxies  func(*http.Request) (*url.URL, error) // nil: the environment's
	waiting  time.Duration                         // for a model that is being loaded; 0: loadPatience

	mu    sync.Mutex
	kind  kind // as it was found out last
	local bool
}

// loadPatience bounds the wait for a server that loads its model: what it can do is known no sooner.
const loadPatience = 5 * time.Minute

// New makes the engine; nothing is asked of the server yet.
func New(c Config) *Engine { return &Engine{config: c} }

// Name is Name.
func (*Engine) Name() string { return Name }

// Caps is what can be had of such a server. Whether it goes on behind the end of a text, and
// whether its prompt cache can be switched off, is known once it was asked what it is.
func (e *Engine) Caps() engine.Caps {
	at, _ := parseAddress(e.config.URL) // what is wrong with it Check says; what its name stands for, too
	e.mu.Lock()
	defer e.mu.Unlock()
	return engine.Caps{IgnoreEOS: e.kind.ignoresEOS(), PromptCache: e.kind != llamaServer, Resident: at.local ||
		e.local, Served: true, Requests: requests,
		Isolation: record.OfServer, Rounds: true} // what it has is not known
}

// Check asks the server what it is and whether it has the model. One that loads it is waited for.
func (e *Engine) Check(ctx context.Context, m engine.Model) error {
	if err := checkModel(m); err != nil {
		return err
	}
	c, s, err := e.reach(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if s.loading {
		if s, err = e.await(ctx, c); err != nil {
			return err
		}
	}
	_, err = choose(c.at, s, e.config, m)
	return err
}

// await asks again until the server has loaded its model.
func (e *Engine) await(ctx context.Context, c *client) (server, error) {
	patience := cmp.Or(e.waiting, loadPatience)
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := settled(waiting, c)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return s, c.unreachable("wait until it has, and see its own log",
			"the server at %s has not loaded its model within %v", c.at.host, patience)
	}
	e.found(c, s)
	return s, err
}

// settled is what a server is once it has loaded what it is loading.
func settled(ctx context.Context, c *client) (server, error) {
	for {
		s, err := detect(ctx, c)
		if err != nil || !s.loading {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// found keeps what Caps tells.
func (e *Engine) found(c *client, s server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kind, e.local = s.kind, c.at.local
}

// checkModel refuses models that no such server can have.
func checkModel(m engine.Model) error {
	switch m.Format {
	case record.Served:
		return nil
	case "", "gguf":
		return program.CheckGGUF(m)
	}
	return fault.New(fault.BadModel, "name its GGUF, or the server's own name for it as served:NAME",
		"the server of the engine openai has no use for the model %s, which is a %s package", m.Name, m.Format)
}

// reach finds out what the server is.
func (e *Engine) reach(ctx context.Context) (*client, server, error) {
	at, err := parseAddress(e.config.URL)
	if err != nil {
		return nil, server{}, err
	}
	if e.config.KeyFrom != "" && e.config.Key == "" {
		return nil, server{}, fault.New(fault.Usage, "export it, or leave the flag out",
			"--openai-key-env: the variable %s is empty or not set", e.config.KeyFrom)
	}
	if !sendable(string(e.config.Key)) {
		return nil, server{}, fault.New(fault.Usage, "export it without line breaks, blanks and quotes",
			"--openai-key-env: what $%s holds has characters that no key can have", e.config.KeyFrom)
	}
	c := newClient(at.resolved(ctx), e.config.Key, e.config.KeyFrom)
	if e.patience > 0 {
		c.patience = e.patience
	}
	if e.proxies != nil {
		c.proxies = e.proxies
	}
	s, err := detect(ctx, c)
	if err != nil {
		c.close()
		return nil, server{}, err
	}
	e.found(c, s)
	return c, s, nil
}

// sendable tells whether a key can stand in a header.
func sendable(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Open finds out what the server is, and begins to sample it where it can be seen.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	c, found, err := e.reach(ctx)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	s := &session{config: e.config, client: c, server: found, probe: p, life: life, end: end,
		turns: engine.Turns{Most: requests}, own: launch.Held[model]{Name: "the session", Closed: errClosed},
		refused: map[string]bool{}}
	p.Event(record.Event{At: time.Now(),
		Device: &record.Device{Class: "unknown", Name: "an unknown device behind " + c.at.host}})
	s.watch(ctx)
	return s, nil
}

// Describe says in a line what the server is and which models it has.
func (e *Engine) Describe(ctx context.Context) (string, error) {
	c, s, err := e.reach(ctx)
	if err != nil {
		return "", err
	}
	defer c.close()
	switch {
	case s.loading:
		return "a server at " + c.at.host + " that is loading its model", nil
	case !s.listed:
		return s.title() + " at " + c.at.host + ", which lists no models", nil
	}
	return s.title() + " at " + c.at.host + ", with " + list(s.ids()), nil
}
