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

// kind is the software of a server.
type kind string

// Known kinds. Other servers get only what the common API has.
const (
	llamaServer kind = "llama-server"
	vllm        kind = "vLLM"
	sglang      kind = "SGLang"
	tgi         kind = "TGI"
	ollama      kind = "Ollama"
	lmStudio    kind = "LM Studio"
	unknown     kind = "unknown"
)

// ignoresEOS reports whether the server can continue after the end of a text.
func (k kind) ignoresEOS() bool { return k == llamaServer || k == vllm || k == sglang }

// onDemand reports whether the server may load a model only at the first request.
func (s server) onDemand() bool {
	return s.router || s.kind == ollama || s.kind == lmStudio || s.kind == unknown
}

// server is what is known about a server.
type server struct {
	kind    kind
	version string // empty: unknown
	models  []model
	listed  bool // has a list of models, possibly empty
	loading bool // is still loading its model
	context int  // 0: unknown
	file    string
	named   string // its Server header
	router  bool   // a llama-server that starts another one per model and needs the model's name in each request
}

// model is a model in a server's list.
type model struct {
	ID      string   `json:"id"`
	Owner   string   `json:"owned_by"`
	Aliases []string `json:"aliases"`       // llama-server's
	Longest int      `json:"max_model_len"` // vLLM's and SGLang's
}

// detect asks for the list of models, which every server has, and then what only one kind answers. It fails if no
// server answers, access is denied, or it seems not to serve language models.
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
		return s, c.unreachable("check --openai-url", "%s is not a language model server: %v", c.at.host, odd)
	default:
		return s, c.explain(err)
	}
	if s.owned("llamacpp") { // its list needs no key, but the rest does
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
	return s, c.unreachable("check --openai-url: /models is appended to its path",
		"%s has no list of models and is not a known server", c.at.api)
}

// loading reports whether a llama-server is still loading. A 503 of others, such as a proxy, may be permanent.
func (r *refusal) loading() bool {
	return r.status == http.StatusServiceUnavailable && strings.Contains(strings.ToLower(r.message), "loading model")
}

func (s *server) owned(by string) bool {
	return slices.ContainsFunc(s.models, func(m model) bool { return m.Owner == by })
}

// has reports whether the server answers a question that only one kind answers.
func has(ctx context.Context, c *client, path string, into any) bool {
	_, err := c.ask(ctx, http.MethodGet, c.at.root+path, nil, into)
	return err == nil
}

// properties holds the fields of llama-server's /props that we use.
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
	if !s.router { // a router has no model of its own
		s.file, s.context = p.Path, p.Settings.Context
	}
	return true
}

// of returns the query that tells a router which model is meant.
func (s server) of(m model) string {
	if !s.router {
		return ""
	}
	return "?model=" + url.QueryEscape(m.ID)
}

// versioned holds what servers say about themselves, each only some of it.
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
	has(ctx, c, "/version", &v) // missing in old versions
	s.kind, s.version = vllm, v.Version
	return true
}

func (s *server) isSGLang(ctx context.Context, c *client) bool {
	if !s.owned("sglang") {
		return false
	}
	// The answer may contain the server's key, so only the version is read.
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

// isLMStudio recognises LM Studio by a field of its list.
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

// choose returns the server's model for the requested one.
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
		return model{ID: name}, nil // the server refuses unknown models
	}
	for _, l := range s.models {
		if l.ID == name || slices.Contains(l.Aliases, name) {
			return l, nil
		}
	}
	// Ollama's tag is optional.
	for _, l := range s.models {
		if s.kind == ollama && l.ID == name+":latest" {
			return l, nil
		}
	}
	return model{}, noModel(at, name, have)
}

// ids returns the names of the server's models.
func (s server) ids() []string {
	var out []string
	for _, l := range s.models {
		out = append(out, l.ID)
	}
	return out
}

// window returns the context; 0: unknown.
func (s server) window(m model) int {
	if s.context > 0 {
		return s.context
	}
	return m.Longest
}

// tokenizer reports whether the server can tokenise a prompt.
func (s server) tokenizer() bool { return s.kind == llamaServer }

// title returns the server's name and version.
func (s server) title() string {
	switch {
	case s.kind == unknown && s.named != "":
		return "unknown server (" + s.named + ")"
	case s.kind == unknown:
		return "unknown server"
	case s.version == "":
		return string(s.kind) + " (unknown version)"
	}
	return string(s.kind) + " " + s.version
}
