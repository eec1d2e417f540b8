package openai

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/wire"
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

// server is what is known about a server.
type server struct {
	kind    kind
	version string // empty: unknown
	models  []model
	listed  bool // has a list of models, possibly empty
	context int  // 0: unknown
	file    string
}

// model is a model in a server's list.
type model struct {
	ID      string   `json:"id"`
	Owner   string   `json:"owned_by"`
	Aliases []string `json:"aliases"`       // llama-server's
	Longest int      `json:"max_model_len"` // vLLM's and SGLang's
	Root    string   `json:"root"`          // the same two's: the model's folder, or its name at Hugging Face
}

// detect asks for the list of models, which every server has, and then what only one kind answers. It fails if no
// server answers, access is denied, the model is still being loaded, or it seems not to serve language models.
func detect(ctx context.Context, c *client) (server, error) {
	s := server{kind: unknown}
	var answer struct {
		Data *[]model `json:"data"`
	}
	err := c.ask(ctx, http.MethodGet, c.at.api+"/models", nil, &answer)
	r := wire.RefusalOf(err)
	switch {
	case err == nil && answer.Data != nil:
		s.models, s.listed = *answer.Data, true
	case err == nil: // other JSON
	case r != nil && r.Status == http.StatusServiceUnavailable &&
		strings.Contains(strings.ToLower(r.Message), "loading model"):
		return s, c.unreachable("try again later",
			"the server at %s has not loaded its model yet", c.at.host)
	case r != nil && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotImplemented}, r.Status):
	case engine.ClassOf(err) == record.BadOutput:
		return s, c.unreachable("check --openai-url", "%s is not a language model server: %v", c.at.host, err)
	default:
		return s, c.explain(err)
	}
	if err := s.identify(ctx, c); err != nil || s.kind != unknown {
		return s, err
	}
	if err := ctx.Err(); err != nil || s.listed {
		return s, err
	}
	return s, c.unreachable("check --openai-url: /models is appended to its path",
		"%s has no list of models and is not a known server", c.at.api)
}

// facts holds what servers say about themselves, each only some of it.
type facts struct {
	// llama-server's
	Build    string `json:"build_info"`
	Path     string `json:"model_path"`
	Settings struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`

	Version string `json:"version"` // of all others
	// TGI's
	Router  string `json:"router"`
	ModelID string `json:"model_id"`
	Most    int    `json:"max_total_tokens"`
	// LM Studio's
	Data []struct {
		Type string `json:"compatibility_type"`
	} `json:"data"`
}

// signs are what each kind of server is known by: the owner of its models, and what it says about itself. An answer
// may contain the server's key, so only the facts are read. The version may be missing in old servers.
var signs = []struct {
	kind  kind
	owner string // empty: any
	paths []string
	is    func(facts) bool
}{
	{llamaServer, "llamacpp", []string{"/props"}, func(f facts) bool { return f.Settings.Context > 0 }},
	{vllm, "vllm", []string{"/version"}, func(facts) bool { return true }},
	{sglang, "sglang", []string{"/server_info", "/get_server_info"}, func(facts) bool { return true }},
	{tgi, "", []string{"/info"}, func(f facts) bool {
		return f.ModelID != "" && f.Version != "" && (f.Router != "" || f.Most > 0)
	}},
	{ollama, "", []string{"/api/version"}, func(f facts) bool { return f.Version != "" }},
	{lmStudio, "", []string{"/api/v0/models"}, func(f facts) bool { return len(f.Data) > 0 && f.Data[0].Type != "" }},
}

// identify finds out the kind of the server.
func (s *server) identify(ctx context.Context, c *client) error {
	for _, sign := range signs {
		owned := func(m model) bool { return m.Owner == sign.owner }
		if sign.owner != "" && !slices.ContainsFunc(s.models, owned) {
			continue
		}
		var f facts
		for _, path := range sign.paths {
			err := c.ask(ctx, http.MethodGet, c.at.root+path, nil, &f)
			if r := wire.RefusalOf(err); sign.owner != "" && r.Denied() {
				return c.explain(err) // the list of models needs no key, but the rest does
			}
			if err == nil && cmp.Or(f.Build, f.Version) != "" {
				break
			}
		}
		if sign.is(f) {
			s.kind, s.version, s.file = sign.kind, cmp.Or(f.Build, f.Version), f.Path
			s.context = cmp.Or(f.Settings.Context, f.Most)
			return nil
		}
	}
	return nil
}

// choose returns the server's model for the requested one.
func (s *found) choose(c Config, m models.Model) (model, error) {
	name := c.Model
	if name == "" && m.Format == record.Served {
		name = m.Name
	}
	have := s.ids()
	if name == "" {
		if len(s.models) == 1 {
			return s.models[0], nil
		}
		return model{}, noModel(s.client.at, "", have)
	}
	if !s.listed || len(s.models) == 0 {
		return model{ID: name}, nil // the server refuses unknown models
	}
	for _, l := range s.models { // Ollama's tag is optional
		if l.ID == name || slices.Contains(l.Aliases, name) || s.kind == ollama && l.ID == name+":latest" {
			return l, nil
		}
	}
	return model{}, noModel(s.client.at, name, have)
}

// ids returns the names of the server's models.
func (s server) ids() []string {
	var out []string
	for _, l := range s.models {
		out = append(out, l.ID)
	}
	return out
}

// title returns the server's name and version.
func (s server) title() string {
	switch {
	case s.kind == unknown:
		return "unknown server"
	case s.version == "":
		return string(s.kind) + " (unknown version)"
	}
	return string(s.kind) + " " + s.version
}
