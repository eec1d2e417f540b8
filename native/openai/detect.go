package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// kind is what a server is.
type kind string

// The kinds that are told apart. Anything else speaks the common interface, and is sent nothing beyond it.
const (
	llamaServer kind = "llama-server"
	vllm        kind = "vLLM"
	sglang      kind = "SGLang"
	tgi         kind = "TGI"
	ollama      kind = "Ollama"
	lmStudio    kind = "LM Studio"
	unknown     kind = "unknown"
)

// ignoresEOS tells whether the server can be asked to go on behind the end of a text.
func (k kind) ignoresEOS() bool { return k == llamaServer || k == vllm || k == sglang }

// onDemand tells whether a server may load the model only when it is asked something.
func (s server) onDemand() bool {
	return s.router || s.kind == ollama || s.kind == lmStudio || s.kind == unknown
}

// server is what was found out about one.
type server struct {
	kind    kind
	version string // empty: it does not say
	models  []model
	listed  bool // it has a list of models, which may be empty
	loading bool // it is there, and its model is not yet
	context int  // the window; 0: it does not say
	file    string
	named   string // its Server header
	router  bool   // a llama-server that passes on to others, one a model: it wants to be told of which it is asked
}

// model is one that a server lists.
type model struct {
	ID      string   `json:"id"`
	Owner   string   `json:"owned_by"`
	Aliases []string `json:"aliases"`       // llama-server's
	Longest int      `json:"max_model_len"` // vLLM's and SGLang's
}

// detect asks for the list of models, which every server has, and then what only one kind answers. It fails where no
// server answers, or none that lets us in, or one that is no server of language models as far as can be seen.
func detect(ctx context.Context, c *client) (server, error) {
	s := server{kind: unknown}
	var answer struct {
		Data *[]model `json:"data"`
	}
	header, err := c.ask(ctx, http.MethodGet, c.at.api+"/models", nil, &answer)
	var r *refusal
	var odd *malformed
	switch {
	case err == nil && answer.Data != nil:
		s.models, s.listed, s.named = *answer.Data, true, header.Get("Server")
	case err == nil: // other JSON
	case errors.As(err, &r) && r.loading():
		s.loading = true
		return s, ctx.Err()
	case errors.As(err, &r) && (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed ||
		r.status == http.StatusNotImplemented):
	case errors.As(err, &odd):
		return s, c.unreachable("check --openai-url", "what answers at %s is no server of language models (%v)",
			c.at.host, odd)
	default:
		return s, c.explain(err)
	}
	if s.owned("llamacpp") { // whose list is open to all; what follows is not
		if _, err := c.ask(ctx, http.MethodGet, c.at.root+"/props", nil, new(json.RawMessage)); errors.As(err, &r) &&
			(r.status == 401 || r.status == 403) {
			return s, c.explain(err)
		}
	}
	for _, is := range []func(context.Context, *client) bool{s.isLlamaServer, s.isVLLM, s.isSGLang, s.isTGI, s.isOllama,
		s.isLMStudio} {
		if is(ctx, c) {
			break
		}
	}
	if err := ctx.Err(); err != nil || s.listed || s.kind != unknown {
		return s, err
	}
	return s, c.unreachable("check --openai-url: its path is what /models and the rest are appended to",
		"what answers at %s has no list of models and is no server that is known", c.at.api)
}

// loading tells whether a llama-server says that it is not ready yet. The 503 of others, a proxy's for one, may be for
// good.
func (r *refusal) loading() bool {
	return r.status == http.StatusServiceUnavailable && strings.Contains(strings.ToLower(r.message), "loading model")
}

func (s *server) owned(by string) bool {
	return slices.ContainsFunc(s.models, func(m model) bool { return m.Owner == by })
}

// has tells whether the server answers a question of its own kind.
func has(ctx context.Context, c *client, path string, into any) bool {
	_, err := c.ask(ctx, http.MethodGet, c.at.root+path, nil, into)
	return err == nil
}

// properties is what we read of a llama-server's /props.
type properties struct {
	Build    string `json:"build_info"`
	Path     string `json:"model_path"`
	Role     string `json:"role"`
	Settings *struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
}

func (s *server) isLlamaServer(ctx context.Context, c *client) bool {
	if !s.owned("llamacpp") && s.named != "llama.cpp" {
		return false
	}
	var p properties
	if !has(ctx, c, "/props", &p) || p.Settings == nil {
		return false
	}
	s.kind, s.version, s.router = llamaServer, p.Build, p.Role == "router"
	if !s.router { // whose own say nothing of a model
		s.file, s.context = p.Path, p.Settings.Context
	}
	return true
}

// of is what is appended to a path for the server to know of which of its models is asked.
func (s server) of(m model) string {
	if !s.router {
		return ""
	}
	return "?model=" + url.QueryEscape(m.ID)
}

// versioned is what servers say of themselves, each some of it.
type versioned struct {
	Version string `json:"version"`
	Router  string `json:"router"`
	ModelID string `json:"model_id"`
	Most    int    `json:"max_total_tokens"`
}

func (s *server) isVLLM(ctx context.Context, c *client) bool {
	if !s.owned("vllm") {
		return false
	}
	var v versioned
	has(ctx, c, "/version", &v) // older ones have none
	s.kind, s.version = vllm, v.Version
	return true
}

func (s *server) isSGLang(ctx context.Context, c *client) bool {
	if !s.owned("sglang") {
		return false
	}
	// The answer has the server's key in it, if there is one: nothing but the version is read of it.
	var v versioned
	if !has(ctx, c, "/server_info", &v) || v.Version == "" {
		has(ctx, c, "/get_server_info", &v)
	}
	s.kind, s.version = sglang, v.Version
	return true
}

func (s *server) isTGI(ctx context.Context, c *client) bool {
	var v versioned
	if !has(ctx, c, "/info", &v) || v.ModelID == "" || v.Version == "" || v.Router == "" && v.Most == 0 {
		return false
	}
	s.kind, s.version, s.context = tgi, v.Version, v.Most
	return true
}

func (s *server) isOllama(ctx context.Context, c *client) bool {
	var v versioned
	if !has(ctx, c, "/api/version", &v) || v.Version == "" {
		return false
	}
	s.kind, s.version = ollama, v.Version
	return true
}

// isLMStudio goes by what its own list has and no other's.
func (s *server) isLMStudio(ctx context.Context, c *client) bool {
	var answer struct {
		Data []struct {
			Type string `json:"compatibility_type"`
		} `json:"data"`
	}
	if !has(ctx, c, "/api/v0/models", &answer) || len(answer.Data) == 0 || answer.Data[0].Type == "" {
		return false
	}
	s.kind = lmStudio
	return true
}

// choose gives the server's name for the model that is asked for.
func choose(at address, s server, c Config, m engine.Model) (model, error) {
	name := c.Model
	if name == "" && m.Format == record.Served {
		name = m.Name
	}
	have := s.ids()
	if name == "" {
		if len(s.models) == 1 {
			return s.models[0], nil
		}
		return model{}, noModel(at, "", have)
	}
	if !s.listed || len(s.models) == 0 {
		return model{ID: name}, nil // it will say itself what it doesn't have
	}
	for _, l := range s.models {
		if l.ID == name || slices.Contains(l.Aliases, name) {
			return l, nil
		}
	}
	// Ollama's names have a tag that may be left out.
	for _, l := range s.models {
		if s.kind == ollama && l.ID == name+":latest" {
			return l, nil
		}
	}
	return model{}, noModel(at, name, have)
}

// ids are the names of the server's models.
func (s server) ids() []string {
	var out []string
	for _, l := range s.models {
		out = append(out, l.ID)
	}
	return out
}

// window is how many tokens a prompt and its continuation may come to; 0: the server does not say.
func (s server) window(m model) int {
	if s.context > 0 {
		return s.context
	}
	return m.Longest
}

// tokenizer tells where the prompt can be had as ids, as the server makes them.
func (s server) tokenizer() bool { return s.kind == llamaServer }

// title is the server and its version, as far as it says.
func (s server) title() string {
	switch {
	case s.kind == unknown && s.named != "":
		return "unknown server (" + s.named + ")"
	case s.kind == unknown:
		return "unknown server"
	case s.version == "":
		return string(s.kind) + " of an unknown version"
	}
	return string(s.kind) + " " + s.version
}
