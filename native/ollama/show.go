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

// shown is what a server tells of a model that it has. Old versions, and what stands between, may tell less.
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

// blobs are the sums of the files that the model is made of.
func (k shown) blobs() (sums []string) {
	for _, m := range fromLine.FindAllStringSubmatch(k.Modelfile, -1) {
		sums = append(sums, m[1])
	}
	return sums
}

// longest is the context that the model was made for; 0: not told.
func (k shown) longest() int {
	for name, raw := range k.Info {
		var n float64
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(raw, &n) == nil {
			return count(&n)
		}
	}
	return 0
}

// maxUnasked is the longest context that is taken where nobody asked for one, as of a model that is a file: there is
// memory for all of it from the load on.
const maxUnasked = 4096

// window is the context to ask for where the user asks for none: that which whoever made the model has set, else the
// model's own. Nothing is left to Ollama, which does not tell how much that is and cuts without a word what does not
// fit.
func (k shown) window() int {
	if m := windowLine.FindStringSubmatch(k.Parameters); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return min(k.longest(), maxUnasked)
}

// look settles what a model is made of and its context.
func (s *session) look(ctx context.Context, l *loaded) error {
	k, _ := s.client.show(ctx, l.name) // a proxy may not pass it on: the load says what is wrong with the model
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.blobs = append(l.blobs, k.blobs()...)
	l.longest = k.longest()
	if l.context == 0 {
		l.context = k.window()
	}
	if l.context == 0 {
		return engine.SetUp(fault.New(fault.Usage, "say how long it is to be, in tokens (run --context, ollama --n-ctx)",
			"the Ollama server does not tell how long a context %s has, and it cuts without a word what does not fit",
			l.name))
	}
	l.options["num_ctx"] = l.context
	return nil
}
