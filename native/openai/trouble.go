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
	// errSilent is the end of our own patience.
	errSilent = errors.New("no answer in time")
	// errClosed is returned if the session was closed during a call or before it.
	errClosed = engine.Fail(record.Cancelled, "the session with the server is closed")
)

// refusal is an answer with another status than 200, or an error in a stream.
type refusal struct {
	status  int    // 0: in a stream
	message string // the server's
	kind    string // type or code
	after   string // when to try again
	place   string // target of a redirect
}

func (r *refusal) Error() string {
	words := r.message
	if words == "" {
		words = "no reason given"
	}
	if r.status == 0 {
		return words
	}
	return fmt.Sprintf("%d %s: %s", r.status, http.StatusText(r.status), words)
}

// malformed is an answer that is not JSON or has the wrong fields.
type malformed struct {
	what, text string
	err        error
}

func (m *malformed) Error() string {
	return fmt.Sprintf("%s is invalid: %v in %q", m.what, m.err, m.text)
}

// snippet returns the begin of a text. The key is hidden before the text is cut, because a cut might leave a part of
// it.
func (c *client) snippet(text []byte) string {
	out := []byte(c.hide(string(text[:min(len(text), 4<<10)])))
	if len(out) > 120 {
		out = out[:120]
	}
	return strings.ToValidUTF8(string(out), "?")
}

// telling is how many bytes of a key's begin reveal something.
const telling = 4

// hide removes the key from a server's text: as it is, as escaped in JSON and URLs, and prefixes of it.
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

// escaped returns the ways in which a server may escape the key.
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

// refused reads an answer with another status than 200.
func (c *client) refused(resp *http.Response) *refusal {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // as much as can be read
	r := c.complaint(text)
	r.status, r.after = resp.StatusCode, resp.Header.Get("Retry-After")
	if at, err := resp.Location(); err == nil {
		at.User, at.RawQuery = nil, ""
		r.place = c.hide(at.String())
	}
	return r
}

// complaint finds the message in an error's body. Servers agree on little more than JSON.
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

// tooLong reports whether a server refuses a prompt for its length, which has no status of its own.
func (r *refusal) tooLong() bool {
	if r.status != http.StatusBadRequest && r.status != http.StatusRequestEntityTooLarge &&
		r.status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(r.kind + " " + r.message)
	return slices.ContainsFunc([]string{
		"context_length_exceeded", "exceed_context_size", // by OpenAI and llama-server
		// vLLM, SGLang and others, in words
		"maximum context length", "context size", "context length", "context window",
		"max_total_tokens", "`max_new_tokens` must be", // by TGI
	}, func(words string) bool { return strings.Contains(text, words) })
}

// explain turns an error into one that a user can act on.
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
		return c.unreachable("check what it is doing, or check --openai-url",
			"the server at %s accepts connections, but does not answer within %v", c.at.host, c.patience)
	}
	if reported := c.secured(err); reported != nil {
		return reported
	}
	if at := c.through(); at != "" {
		return c.unreachable("check the proxy, or add the server's host to $NO_PROXY",
			"the proxy %s cannot reach the server at %s (%s)", at, c.at.host, c.hide(fault.OneLine(err.Error())))
	}
	if errors.As(err, &dial) && dial.Op == "dial" {
		what := dial.Err.Error()
		if dial.Timeout() {
			what = fmt.Sprintf("no connection within %v", connectPatience)
		}
		return c.unreachable("start it, or check --openai-url", "no server at %s (%s)", c.at.host, what)
	}
	return engine.Fail(engine.ClassOf(err), "asking the server at %s: %w", c.at.host, err)
}

// secured explains TLS errors; nil for others.
func (c *client) secured(err error) error {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		remote      *net.OpError
	)
	switch text := err.Error(); {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"), errors.As(err, &record):
		return c.unreachable("use http:// in --openai-url", "the server at %s does not use HTTPS", c.at.host)
	case strings.Contains(text, "malformed HTTP"):
		return c.unreachable("try https://, or check --openai-url", "the server at %s does not use HTTP", c.at.host)
	case errors.As(err, &certificate):
		return c.unreachable("use the host name of the certificate, or make this machine trust its issuer (SSL_CERT_FILE)",
			"the certificate of the server at %s is not trusted (%s)", c.at.host,
			fault.OneLine(certificate.Err.Error()))
	case errors.As(err, &alert), errors.As(err, &remote) && remote.Op == "remote error",
		strings.Contains(text, "TLS handshake timeout"):
		return c.unreachable("check what it requires of clients, or check --openai-url",
			"the server at %s refuses the TLS connection (%s)", c.at.host, fault.OneLine(text))
	}
	return nil
}

// through returns the proxy of our requests without any secret in its address; empty: none.
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

// unreachable is an error that a person must fix before the server can be used.
func (c *client) unreachable(do, format string, args ...any) error {
	return engine.SetUp(fault.New(fault.ServerUnreachable, do, format, args...))
}

func (c *client) refusal(r *refusal) error {
	switch {
	case r.status == http.StatusBadRequest && strings.Contains(strings.ToLower(r.message), "plain http request") ||
		strings.Contains(r.message, "HTTP request to an HTTPS server"):
		return c.unreachable("use https:// in --openai-url", "the server at %s requires HTTPS", c.at.host)
	case r.status == http.StatusProxyAuthRequired:
		return c.unreachable("check the proxy, or add the server's host to $NO_PROXY",
			"the proxy %s denies access to %s (%v)", c.through(), c.at.host, r)
	case r.tooLong():
		return engine.SetUp(fault.New(fault.PromptTooLong, larger, "the server refuses the prompt as too long: %s",
			r.message))
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		do := "name the environment variable that holds its key with --openai-key-env"
		if c.key != "" {
			do = "check the key in $" + c.keyFrom
		}
		return c.unreachable(do, "access to the server at %s is denied (%v)", c.at.host, r)
	case r.status >= 300 && r.status < 400:
		return c.unreachable("use that address in --openai-url", "the server at %s redirects (%d, %s)",
			c.at.host, r.status, r.place)
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed:
		return c.unreachable("check --openai-url, or try another --openai-api",
			"the server at %s lacks this API (%v)", c.at.host, r)
	case r.status == http.StatusTooManyRequests:
		again := ""
		if r.after != "" {
			again = "; it says to try again in " + r.after + " s"
		}
		return engine.Fail(record.Other,
			"the server at %s has too many requests (%w)%s: send fewer at a time, or try later", c.at.host, r, again)
	case r.status == 0, r.status >= 500:
		return engine.Fail(record.Other, "the server at %s failed (%w); check its log", c.at.host, r)
	}
	return c.unreachable("see docs/howto/measure-a-server.md for what is sent, or try another --openai-api",
		"the server at %s refuses the request (%v)", c.at.host, r)
}

// noModel is the error for a model that the server does not have. It lists those that it has.
func noModel(at address, name string, have []string) error {
	have = slices.DeleteFunc(have, func(other string) bool { return other == name }) // listed, but refused
	do := "name one of its models with --openai-model"
	switch {
	case len(have) > 0 && name != "":
		do = fmt.Sprintf("did you mean %q? Its models: %s", nearest.Of(name, have, 1)[0], list(have))
	case len(have) > 0:
		do += ": " + list(have)
	}
	what := fmt.Sprintf("the server at %s does not have model %q", at.host, name)
	switch {
	case name == "" && len(have) > 0:
		what = fmt.Sprintf("the server at %s has %d models", at.host, len(have))
	case name == "":
		what = fmt.Sprintf("the server at %s lists no model", at.host)
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
