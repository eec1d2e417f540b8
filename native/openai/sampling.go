package openai

import (
	"crypto/rand"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/native/wire"
)

// body is a generation request: fields that every server knows and those that this one knows. Optional fields may be
// dropped if a version refuses them, because the figures remain valid.
type body struct {
	fields   map[string]any
	optional []string
	seed     uint32
}

// newBody selects the most probable token at temperature 0, otherwise samples from the whole distribution. It
// overrides the server's defaults and the model's own (repetition penalty, top-k, top-p …), which other engines do not
// have.
func (s *session) newBody(r engine.Request) *body {
	k := s.server.kind
	b := &body{fields: map[string]any{"model": s.model.ID, "max_tokens": r.MaxTokens, "temperature": r.Temperature,
		"stream": true}, seed: r.NewSeed()}
	b.fields["seed"] = b.seed
	if s.config.api() == Chat {
		b.fields["messages"] = []map[string]string{{"role": "user", "content": r.Prompt}}
	} else {
		b.fields["prompt"] = r.Prompt
	}
	if r.IgnoreEOS && k.ignoresEOS() {
		b.fields["ignore_eos"] = true
	}
	options := map[string]bool{"include_usage": true}
	if (k == vllm || k == sglang) && !s.tellsIDs() {
		options[perChunk] = true // token counts with each chunk, which ids make needless: each costs the server time
		b.optional = append(b.optional, perChunk)
	}
	b.fields["stream_options"] = options
	if k == llamaServer {
		b.fields["cache_prompt"] = false
	}
	if s.server.salts() {
		b.add(salt, rand.Text())
	}
	if s.tellsIDs() {
		b.fields["return_token_ids"] = true
		if r.IDs != nil {
			b.fields["prompt"] = r.IDs
		}
	}
	for field, v := range k.sampling(r.Temperature) {
		b.add(field, v)
	}
	for field := range s.refused.Range {
		b.drop(field.(string))
	}
	return b
}

const (
	perChunk = "continuous_usage_stats" // requests token counts with each chunk
	salt     = "cache_salt"             // makes a prompt one that no cache has
)

// sampling returns the fields that disable a server's own defaults.
func (k kind) sampling(temperature float64) map[string]any {
	f := map[string]any{"top_p": 1}
	switch k {
	case llamaServer:
		f["samplers"], f["top_k"] = []string{"top_k", "temperature"}, 1
		if temperature > 0 {
			f["samplers"], f["top_k"] = []string{"temperature"}, 0
		}
		f["mirostat"] = 0             // it would precede the samplers
		f["timings_per_token"] = true // token counts with each chunk
	case vllm, sglang:
		f["top_k"], f["min_p"], f["repetition_penalty"], f["presence_penalty"], f["frequency_penalty"] = -1, 0, 1, 0, 0
	case lmStudio:
		f["repeat_penalty"], f["presence_penalty"], f["frequency_penalty"] = 1, 0, 0
	case tgi:
		delete(f, "top_p") // there is no default, and 1 is refused
	}
	return f
}

func (b *body) add(field string, v any) {
	b.fields[field] = v
	b.optional = append(b.optional, field)
}

// drop omits an optional field.
func (b *body) drop(field string) {
	i := slices.Index(b.optional, field)
	if i < 0 {
		return
	}
	b.optional = slices.Delete(b.optional, i, i+1)
	delete(b.fields, field)
	if field == perChunk {
		b.fields["stream_options"] = map[string]bool{"include_usage": true}
	}
}

// refuses returns the optional field that a refusal mentions; empty if there is none.
func (b *body) refuses(r *wire.Refusal) string {
	if r.Status != 400 && r.Status != 422 {
		return ""
	}
	for _, field := range b.optional {
		if strings.Contains(r.Message, field) {
			return field
		}
	}
	return ""
}

// saltless matches the versions of vLLM without cache_salt, and an unknown one.
var saltless = regexp.MustCompile(`^(0\.[0-8](\.|$)|$)`)

// idless matches the versions of vLLM that return no token ids, and an unknown one.
var idless = regexp.MustCompile(`^(0\.[0-9](\.|$)|0\.10\.[01](\D|$)|$)`)

// tellsIDs reports whether the server returns the ids of prompts and tokens, and log-probabilities of a given text.
func (s *found) tellsIDs() bool {
	return s.kind == vllm && s.api == Completions && !idless.MatchString(s.version)
}

// salts reports whether the server finds nothing in its cache if each request has a salt of its own.
func (s server) salts() bool { return s.kind == vllm && !saltless.MatchString(s.version) }
