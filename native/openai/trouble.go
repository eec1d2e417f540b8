package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

// errClosed is returned if the session was closed during a call or before it.
var errClosed = engine.Fail(record.Cancelled, "the session with the server is closed")

// unreachable is an error that a person must fix before the server can be used.
func (c *client) unreachable(do, format string, args ...any) error {
	return engine.SetUp(fault.New(fault.ServerUnreachable, do, format, args...))
}

// explain turns an error into one that a user can act on.
func (c *client) explain(err error) error {
	_, failed := errors.AsType[*engine.Failure](err)
	r := wire.RefusalOf(err)
	switch {
	case failed, fault.Of(err) != fault.Run, errors.Is(err, context.Canceled):
		return err
	case r != nil:
		return c.refused(r)
	case errors.Is(err, errSilent):
		return c.unreachable("check what it is doing, or check --openai-url",
			"the server at %s accepts connections, but does not answer within %v", c.at.host, c.patience)
	}
	return c.unreachable("start it, or check --openai-url (http or https) and the proxy settings",
		"no server at %s (%s)", c.at.host, c.Hide(fault.OneLine(err.Error())))
}

// tooLong lists what servers say of a prompt that is too long, which has no status of its own: OpenAI, llama-server,
// vLLM and SGLang and others in words, and TGI.
var tooLong = []string{"context_length_exceeded", "exceed_context_size", "maximum context length", "context size",
	"context length", "context window", "max_total_tokens", "`max_new_tokens` must be"}

// refused explains a server's refusal.
func (c *client) refused(r *wire.Refusal) error {
	text := strings.ToLower(r.Kind + " " + r.Message)
	switch {
	case slices.Contains([]int{400, 413, 422}, r.Status) &&
		slices.ContainsFunc(tooLong, func(words string) bool { return strings.Contains(text, words) }):
		return engine.SetUp(fault.New(fault.PromptTooLong, larger, "the server refuses the prompt as too long: %s",
			r.Message))
	case r.Denied() && c.Key != "":
		return c.unreachable("check the key in $"+c.keyFrom, "access to the server at %s is denied (%v)", c.at.host, r)
	case r.Denied():
		return c.unreachable("name the environment variable that holds its key with --openai-key-env",
			"access to the server at %s is denied (%v)", c.at.host, r)
	case r.Place != "":
		return c.unreachable("use that address in --openai-url", "the server at %s redirects (%d, %s)",
			c.at.host, r.Status, r.Place)
	case r.Status == http.StatusNotFound, r.Status == http.StatusMethodNotAllowed:
		return c.unreachable("check --openai-url, or try another --openai-api",
			"the server at %s lacks this API (%v)", c.at.host, r)
	case r.Status == http.StatusTooManyRequests:
		return engine.Fail(record.Other,
			"the server at %s has too many requests (%w): send fewer at a time, or try later", c.at.host, r)
	case strings.Contains(text, "enginecore"), strings.Contains(text, "enginedead"): // vLLM's, whose worker has ended
		return engine.Fail(record.Crash, "the server at %s lost its engine (%w); check its log", c.at.host, r)
	case r.Status == 0, r.Status >= 500:
		return engine.Fail(record.Other, "the server at %s failed (%w); check its log", c.at.host, r)
	}
	return c.unreachable("see docs/howto/measure-a-server.md for what is sent, or try another --openai-api",
		"the server at %s refuses the request (%v)", c.at.host, r)
}

// noModel is the error for a model that the server does not have. It lists those that it has.
func noModel(at address, name string, have []string) error {
	have = slices.DeleteFunc(have, func(other string) bool { return other == name }) // listed, but refused
	what := fmt.Sprintf("the server at %s does not have model %q", at.host, name)
	do := "name one of its models with --openai-model"
	switch {
	case name == "":
		what = fmt.Sprintf("the server at %s has %d models", at.host, len(have))
	case len(have) > 0:
		do = strings.TrimSpace(nearest.Question(name, have) + " Its models")
	}
	if len(have) > 0 {
		do += ": " + list(have)
	}
	return engine.SetUp(fault.New(fault.ServerUnreachable, do, "%s", what))
}

// list joins names, at most twelve.
func list(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
