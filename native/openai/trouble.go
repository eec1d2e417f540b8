package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/internal/record"
)

var (
	// errSilent is a question that a server should have answered at once.
	errSilent = errors.New("no answer in time")
	// errClosed is a call whose session was ended under it, or long before it.
	errClosed = engine.Fail(record.Cancelled, "the session with the server is closed")
)

// refusal is an answer that is not 200, or an error that a stream carries.
type refusal struct {
	status  int    // 0: within a stream
	message string // the server's own
	kind    string // type or code, as far as it says
	after   string // when to try again
	place   string // where a redirect points to
}

func (r *refusal) Error() string {
	words := r.message
	if words == "" {
		words = "it does not say why"
	}
	if r.status == 0 {
		return words
	}
	return fmt.Sprintf("%d %s: %s", r.status, http.StatusText(r.status), words)
}

// malformed is what is no JSON, or not as it should be.
type malformed struct {
	what, text string
	err        error
}

func (m *malformed) Error() string {
	return fmt.Sprintf("%s is not what it should be: %v in %q", m.what, m.err, m.text)
}

// snippet is the beginning of a text, enough to recognise it by. The key is taken out before the cut, which might
// leave a part of it.
func (c *client) snippet(text []byte) string {
	out := []byte(c.hide(string(text[:min(len(text), 4<<10)])))
	if len(out) > 120 {
		out = out[:120]
	}
	return strings.ToValidUTF8(string(out), "?")
}

// telling is how many of a key's first bytes tell something of it.
const telling = 4

// hide keeps the key out of what a server says: as it is, as it stands in JSON and in addresses, and the beginning of
// one that was cut.
func (c *client) hide(text string) string {
	key := string(c.key)
	if len(key) < telling {
		return text
	}
	for _, form := range append(escaped(key), key) {
		for n := len(form); n >= telling*len(form)/len(key); n-- {
			text = strings.ReplaceAll(text, form[:n], c.key.String())
		}
	}
	return text
}

// escaped gives the key as others may write it.
func escaped(key string) []string {
	var out []string
	for _, html := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(key) == nil {
			out = append(out, strings.Trim(b.String(), "\"\n"))
		}
	}
	units := utf16.Encode([]rune(key))
	all := make([]string, len(units))
	for i, u := range units {
		all[i] = fmt.Sprintf("\\u%04x", u)
	}
	out = append(out, strings.ReplaceAll(key, "/", `\/`), url.QueryEscape(key), url.PathEscape(key),
		strings.Trim(strconv.Quote(key), `"`), strings.Join(all, ""))
	return slices.DeleteFunc(out, func(form string) bool { return form == key })
}

// refused reads an answer that is not 200.
func (c *client) refused(resp *http.Response) *refusal {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what could be read of it is said
	r := c.complaint(text)
	r.status, r.after = resp.StatusCode, resp.Header.Get("Retry-After")
	if at, err := resp.Location(); err == nil {
		at.User, at.RawQuery = nil, ""
		r.place = c.hide(at.String())
	}
	return r
}

// complaint finds the message in an error's body; servers agree on little more than that it is JSON.
func (c *client) complaint(text []byte) *refusal {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    any             `json:"code"`
	}
	r := &refusal{}
	defer func() { r.message = c.hide(fault.OneLine(r.message)) }()
	if json.Unmarshal(text, &e) != nil {
		r.message = c.snippet(text)
		return r
	}
	inner := e.Error
	if len(inner) == 0 {
		inner = e.Detail
	}
	switch {
	case len(inner) > 0 && inner[0] == '{':
		return c.complaint(inner)
	case len(inner) > 0 && json.Unmarshal(inner, &r.message) == nil:
	case len(inner) > 0:
		r.message = c.snippet(inner)
	default:
		r.message = e.Message
	}
	r.kind = e.Type
	if code, ok := e.Code.(string); ok {
		r.kind += " " + code
	}
	return r
}

// tooLong tells whether a server refuses a prompt for its length. There is no status of its own for that.
func (r *refusal) tooLong() bool {
	if r.status != http.StatusBadRequest && r.status != http.StatusRequestEntityTooLarge &&
		r.status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(r.kind + " " + r.message)
	return slices.ContainsFunc([]string{
		"context_length_exceeded", "exceed_context_size", // by OpenAI and llama-server
		// in words, by vLLM, SGLang and others
		"maximum context length", "context size", "context length", "context window",
		"max_total_tokens", "`max_new_tokens` must be", // by TGI
	}, func(words string) bool { return strings.Contains(text, words) })
}

// explain makes of an error what a user can act on.
func (c *client) explain(err error) error {
	var (
		r       *refusal
		dial    *net.OpError
		failure *engine.Failure
		known   *fault.Error
	)
	switch {
	case errors.As(err, &failure), errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &r):
		return c.refusal(r)
	case errors.Is(err, errSilent):
		return c.unreachable("see what it is busy with, or check --openai-url",
			"the server at %s takes connections and gives no answer within %v", c.at.host, c.patience)
	}
	if reported := c.secured(err); reported != nil {
		return reported
	}
	if at := c.through(); at != "" {
		return c.unreachable("see to the proxy, or put the server's host into $NO_PROXY",
			"the proxy %s gives no way to the server at %s (%s)",
			at, c.at.host, c.hide(fault.OneLine(err.Error())))
	}
	if errors.As(err, &dial) && dial.Op == "dial" {
		what := dial.Err.Error()
		if dial.Timeout() {
			what = fmt.Sprintf("no connection within %v", connectPatience)
		}
		return c.unreachable("start it, or check --openai-url", "no server answers at %s (%s)", c.at.host, what)
	}
	return engine.Fail(engine.ClassOf(err), "asking the server at %s: %w", c.at.host, err)
}

// secured tells of what is wrong with TLS, or with its being there or not; nil: nothing.
func (c *client) secured(err error) error {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		remote      *net.OpError
	)
	switch text := err.Error(); {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"), errors.As(err, &record):
		return c.unreachable("give it with http:// in --openai-url", "the server at %s does not speak HTTPS", c.at.host)
	case strings.Contains(text, "malformed HTTP"):
		return c.unreachable("give it with https:// if it wants that, or check --openai-url",
			"what answers at %s does not speak HTTP", c.at.host)
	case errors.As(err, &certificate):
		return c.unreachable("name it as its certificate does, or have this machine trust who signed that (SSL_CERT_FILE)",
			"the certificate of the server at %s is not trusted (%s)", c.at.host,
			fault.OneLine(certificate.Err.Error()))
	case errors.As(err, &alert), errors.As(err, &remote) && remote.Op == "remote error",
		strings.Contains(text, "TLS handshake timeout"):
		return c.unreachable("see what it wants of its clients, or check --openai-url",
			"the server at %s refuses the TLS connection (%s)", c.at.host, fault.OneLine(text))
	}
	return nil
}

// through is the proxy that requests go through, without what may be secret in its address; empty: none.
func (c *client) through() string {
	r, err := http.NewRequest(http.MethodGet, c.at.api, nil)
	if err != nil {
		return ""
	}
	at, err := c.proxy(r)
	if err != nil || at == nil {
		return ""
	}
	return at.Host
}

// unreachable is for what a person must mend before anything can be asked.
func (c *client) unreachable(do, format string, args ...any) error {
	return engine.SetUp(fault.New(fault.ServerUnreachable, do, format, args...))
}

func (c *client) refusal(r *refusal) error {
	switch {
	case r.status == http.StatusBadRequest && strings.Contains(strings.ToLower(r.message), "plain http request") ||
		strings.Contains(r.message, "HTTP request to an HTTPS server"):
		return c.unreachable("give it with https:// in --openai-url", "the server at %s speaks HTTPS only", c.at.host)
	case r.status == http.StatusProxyAuthRequired:
		return c.unreachable("see to the proxy, or put the server's host into $NO_PROXY",
			"the proxy %s lets us not through to %s (%v)", c.through(), c.at.host, r)
	case r.tooLong():
		return engine.SetUp(fault.New(fault.PromptTooLong, larger, "the prompt does not fit, says the server: %s",
			r.message))
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		do := "name the variable that its key is in with --openai-key-env"
		if c.key != "" {
			do = "check the key in $" + c.keyFrom
		}
		return c.unreachable(do, "the server at %s lets us not in (%v)", c.at.host, r)
	case r.status >= 300 && r.status < 400:
		return c.unreachable("give that address with --openai-url", "the server at %s sends us elsewhere (%d, %s)",
			c.at.host, r.status, r.place)
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed:
		return c.unreachable("check --openai-url, or try another --openai-api",
			"the server at %s has no such interface (%v)", c.at.host, r)
	case r.status == http.StatusTooManyRequests:
		again := ""
		if r.after != "" {
			again = "; it says to try again in " + r.after + " s"
		}
		return engine.Fail(record.Other,
			"the server at %s has too many requests (%w)%s: ask for fewer at a time, or later", c.at.host, r, again)
	case r.status == 0, r.status >= 500:
		return engine.Fail(record.Other, "the server at %s failed (%w); its own log may say why", c.at.host, r)
	}
	return c.unreachable("see docs/howto/measure-a-server.md for what is sent, or try another --openai-api",
		"the server at %s refuses the request (%v)", c.at.host, r)
}

// noModel says that a server has no such model, and which it has.
func noModel(at address, name string, have []string) error {
	have = slices.DeleteFunc(have, func(other string) bool { return other == name }) // it lists what it doesn't have
	do := "name one of its models with --openai-model"
	switch {
	case len(have) > 0 && name != "":
		do = fmt.Sprintf("did you mean %q? It has: %s", nearest.Of(name, have, 1)[0], list(have))
	case len(have) > 0:
		do += ": " + list(have)
	}
	what := fmt.Sprintf("the server at %s has no model %q", at.host, name)
	switch {
	case name == "" && len(have) > 0:
		what = fmt.Sprintf("the server at %s has %d models", at.host, len(have))
	case name == "":
		what = fmt.Sprintf("the server at %s lists no model", at.host)
	}
	return engine.SetUp(fault.New(fault.ServerUnreachable, do, "%s", what))
}

// list names models, not more than a line holds.
func list(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
