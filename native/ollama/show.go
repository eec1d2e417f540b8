package ollama

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
)

// shown is what a server says about a model. Old versions and proxies may say less.
type shown struct {
	Modelfile  string                     `json:"modelfile"`
	Parameters string                     `json:"parameters"`
	Info       map[string]json.RawMessage `json:"model_info"`
}

func (c *client) show(ctx context.Context, name string) (shown, error) {
	var k shown
	err := c.Call(ctx, http.MethodPost, "/api/show", map[string]string{"model": name}, &k)
	return k, err
}

var (
	fromLine   = regexp.MustCompile(`(?m)^(?:FROM|ADAPTER) .*sha256[-:]([0-9a-f]{64})`)
	windowLine = regexp.MustCompile(`(?m)^num_ctx\s+(\d+)\s*$`)
)

// blobs returns the hashes of the files that the model consists of.
func (k shown) blobs() (sums []string) {
	for _, m := range fromLine.FindAllStringSubmatch(k.Modelfile, -1) {
		sums = append(sums, m[1])
	}
	return sums
}

// longest returns the context that the model was trained for; 0: unknown.
func (k shown) longest() int {
	for name, raw := range k.Info {
		var n int
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(raw, &n) == nil {
			return max(0, n)
		}
	}
	return 0
}

// maxUnasked is the longest context if the user does not choose one, as for model files. Its memory is reserved at the
// load.
const maxUnasked = 4096

// window returns the context to use if the user does not choose one: the one set by the model's author, else the
// model's own. Ollama's default is not used because Ollama does not report it and silently truncates what does not
// fit.
func (k shown) window() int {
	if m := windowLine.FindStringSubmatch(k.Parameters); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return min(k.longest(), maxUnasked)
}

// look finds out the model's files and context.
func (s *session) look(ctx context.Context, l *loaded) error {
	k, _ := s.client.show(ctx, l.name) // a proxy may not support it; the load reports errors
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.blobs = append(l.blobs, k.blobs()...)
	l.longest = k.longest()
	if l.context == 0 {
		l.context = k.window()
	}
	if l.context == 0 {
		return engine.SetUp(fault.New(fault.Usage, "set it with --context",
			"the Ollama server does not report the context length of %s, and silently truncates what does not fit",
			l.name))
	}
	l.options["num_ctx"] = l.context
	return nil
}
