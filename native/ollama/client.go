package ollama

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// DefaultURL is Ollama's default address.
const DefaultURL = "http://localhost:11434"

// ParseURL parses a base URL; the scheme and the port may be missing.
func ParseURL(text string) (*url.URL, error) {
	whole := strings.TrimSpace(text)
	if !strings.Contains(whole, "://") {
		whole = "http://" + whole
	}
	u, err := wire.ParseAddress("--ollama-url", whole, DefaultURL)
	if err == nil && u.Port() == "" && u.Path == "" && u.Scheme == "http" {
		u.Host = net.JoinHostPort(u.Hostname(), "11434")
	}
	return u, err
}

// client talks to one server.
type client struct {
	wire.Client
	at *url.URL
}

func newClient(u *url.URL) *client {
	return &client{wire.Client{Name: "Ollama", Base: u.String(), HTTP: wire.NewClient(wire.IsHere(u.Hostname()))}, u}
}

func refuses(text string) *wire.Refusal { return &wire.Refusal{Who: "Ollama", Message: text} }

// version returns the server's version. It also shows that the server is an Ollama.
func (c *client) version(ctx context.Context) (string, error) {
	var v struct {
		Version string `json:"version"`
	}
	if err := c.Call(ctx, http.MethodGet, "/api/version", nil, &v); err != nil {
		return "", err
	}
	if v.Version == "" {
		return "", engine.Fail(record.BadOutput, "the answer to /api/version has no version")
	}
	return v.Version, nil
}

// listed is a model in one of the server's lists.
type listed struct {
	Name   string  `json:"name"`
	Digest string  `json:"digest"`
	Size   float64 `json:"size"`
	VRAM   float64 `json:"size_vram"`

	Details struct {
		Quantization string `json:"quantization_level"`
	} `json:"details"`
}

func (c *client) list(ctx context.Context, path string) ([]listed, error) {
	var answer struct {
		Models []listed `json:"models"`
	}
	err := c.Call(ctx, http.MethodGet, path, nil, &answer)
	return answer.Models, err
}

// find returns a model from a list. A name without a tag has the tag latest.
func find(models []listed, name string) (listed, bool) {
	tagged := func(s string) string {
		if !strings.Contains(s[strings.LastIndex(s, "/")+1:], ":") {
			s += ":latest"
		}
		return strings.ToLower(s)
	}
	for _, m := range models {
		if tagged(m.Name) == tagged(name) {
			return m, true
		}
	}
	return listed{}, false
}

// absent reports whether the server refuses because it does not have something.
func absent(err error) bool {
	r := wire.RefusalOf(err)
	return r != nil && r.Status == http.StatusNotFound
}

// tags returns the models that the server has.
func (c *client) tags(ctx context.Context) ([]listed, error) { return c.list(ctx, "/api/tags") }

// loaded returns the models that the server holds in memory.
func (c *client) loaded(ctx context.Context) ([]listed, error) { return c.list(ctx, "/api/ps") }

// upload sends a file; the server checks its hash.
func (c *client) upload(ctx context.Context, path, sha256 string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.Call(ctx, http.MethodPost, "/api/blobs/sha256:"+sha256, f, nil)
}

// ensure makes a model from a file, unless the server has it. give sends the file to the server.
func (c *client) ensure(ctx context.Context, name, sha256 string, give func() error) (had bool, err error) {
	models, err := c.tags(ctx)
	if _, had = find(models, name); err != nil || had {
		return had, err
	}
	if err := give(); err != nil {
		return false, err
	}
	var answer struct {
		Error string `json:"error"`
	}
	body := map[string]any{"model": name, "files": map[string]string{"model.gguf": "sha256:" + sha256}, "stream": false}
	if err := c.Call(ctx, http.MethodPost, "/api/create", body, &answer); err != nil {
		return false, err
	}
	if answer.Error != "" {
		return false, refuses(answer.Error)
	}
	_, err = c.known(ctx, name)
	return false, err
}

// generate is the body of a request for text.
type generate struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt,omitempty"`
	Raw    bool   `json:"raw,omitempty"`
	Stream bool   `json:"stream"`
	// seconds, or a duration such as 5m; nil: the server's default
	KeepAlive any            `json:"keep_alive,omitempty"`
	Options   map[string]any `json:"options,omitempty"`
}

// answer is a line of a stream, or a whole answer.
type answer struct {
	Response string `json:"response"`
	Done     bool   `json:"done"`
	Reason   string `json:"done_reason"`
	Error    string `json:"error"`

	figures map[string]float64 // the server's own, under its names; durations in nanoseconds
}

// count returns one of the counts; 0 if it is missing or invalid.
func (a answer) count(name string) int {
	if n := a.figures[name]; n >= 0 && n < 1<<31 {
		return int(n)
	}
	return 0
}

// parse parses an answer. An error in it becomes a refusal.
func parse(text []byte) (answer, error) {
	var a answer
	err := json.Unmarshal(text, &a)
	if err == nil && a.Done {
		a.figures, err = wire.Figures(text)
	}
	switch {
	case err != nil:
		return a, engine.Fail(record.BadOutput, "Ollama sent an invalid line: %w (%.80q)", err, text)
	case a.Error != "":
		return a, refuses(a.Error)
	}
	return a, nil
}

// whole runs a request without streaming.
func (c *client) whole(ctx context.Context, body generate) (answer, error) {
	var text json.RawMessage
	if err := c.Call(ctx, http.MethodPost, "/api/generate", body, &text); err != nil {
		return answer{}, err
	}
	return parse(text)
}
