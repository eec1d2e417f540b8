package openai_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/openai"
	"llmparity/native/openai/openaitest"
)

// Addresses without a usable server give an error of one line.
func TestUnusableServers(t *testing.T) {
	at := func(f http.HandlerFunc) string {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	plain := broken(t, says())
	files := at(http.FileServer(http.Dir(t.TempDir())).ServeHTTP)
	gateway := at(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
	})
	loading := at(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
	})
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	check.Err(t, err)
	defer mute.Close()
	answer := func(status int, text string) string {
		return at(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); io.WriteString(w, text) })
	}
	elsewhere := at(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com/v1/models?key=1", http.StatusFound)
	})
	echo := at(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "what is "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	down := fmt.Sprintf("http://127.0.0.1:%d", openaitest.FreePort(t))
	t.Setenv("MY_KEY", "sk-very-secret")
	t.Setenv("BAD_KEY", "sk-very\nsecret")
	for name, c := range map[string]struct {
		config openai.Config
		code   fault.Kind
		words  []string
	}{
		"an unknown path": {openai.Config{URL: plain.URL + "/foo"}, fault.ServerUnreachable,
			[]string{"no list of models", "/foo"}},
		"files":     {openai.Config{URL: files}, fault.ServerUnreachable, []string{"no list of models"}},
		"a gateway": {openai.Config{URL: gateway}, fault.Run, []string{"503", "no healthy upstream"}},
		"loading":   {openai.Config{URL: loading}, fault.ServerUnreachable, []string{"has not loaded its model"}},
		"HTTP to HTTPS": {openai.Config{URL: strings.Replace(secure.URL, "https", "http", 1)},
			fault.ServerUnreachable, []string{"HTTP request to an HTTPS server"}},
		"HTTPS to HTTP": {openai.Config{URL: strings.Replace(plain.URL, "http", "https", 1)}, fault.ServerUnreachable,
			[]string{"gave HTTP response to HTTPS client"}},
		"an unknown signature": {openai.Config{URL: secure.URL}, fault.ServerUnreachable,
			[]string{"certificate"}},
		"a key of two lines": {openai.Config{URL: plain.URL, KeyFrom: "BAD_KEY"}, fault.Usage,
			[]string{"BAD_KEY"}},
		"a secret in an invalid URL": {openai.Config{URL: "me:very-secret@host:1"}, fault.Usage,
			[]string{"--openai-url"}},
		"down": {openai.Config{URL: down}, fault.ServerUnreachable, []string{"no server at 127.0.0.1"}},
		"mute": {openai.Config{URL: "http://" + mute.Addr().String()}, fault.ServerUnreachable,
			[]string{"does not answer within 300ms"}},
		"no such": {openai.Config{URL: "http://llmparity.invalid:1"},
			fault.ServerUnreachable, []string{"no server at llmparity.invalid:1"}},
		"a page": {openai.Config{URL: answer(200, "<html>hello</html>")}, fault.ServerUnreachable,
			[]string{"not a language model server"}},
		"elsewhere": {openai.Config{URL: elsewhere}, fault.ServerUnreachable,
			[]string{"(302, https://example.com/v1/models)"}},
		"401": {openai.Config{URL: answer(401, "")},
			fault.ServerUnreachable, []string{"name the environment variable that holds its key with --openai-key-env"}},
		"a wrong key": {openai.Config{URL: echo, KeyFrom: "MY_KEY"},
			fault.ServerUnreachable, []string{"what is Bearer [key]); check the key in $MY_KEY"}},
		"no key": {openai.Config{URL: echo, KeyFrom: "NO_KEY"}, fault.Usage, []string{"NO_KEY is empty or not set"}},
		"two models": {openai.Config{URL: broken(t, says()).URL, Model: "mous"}, fault.ServerUnreachable,
			[]string{`does not have model "mous"; did you mean "mouse"? Its models: mouse, moose`}},
		"no URL":     {openai.Config{}, fault.Usage, []string{"--openai-url: missing"}},
		"a password": {openai.Config{URL: "http://me:secret@127.0.0.1:1"}, fault.Usage, []string{"would be recorded"}},
		"a query": {openai.Config{URL: "http://127.0.0.1:1/v1?key=secret"}, fault.Usage,
			[]string{"would be recorded"}},
		"a secret without host": {openai.Config{URL: "http:me:very-secret@h?key=very-secret"}, fault.Usage,
			[]string{"--openai-url"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := openai.New(c.config)
			if name == "mute" {
				openai.Impatient(t, 300*time.Millisecond)
			}
			err := e.Check(t.Context(), served)
			enginetest.OneLine(t, err, c.code, engine.ClassOf(err), c.words...)
			if strings.Contains(err.Error(), "very") || strings.Contains(err.Error(), "secret") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
	// With a model file, the server's model is chosen only if there is just one.
	two := openai.New(openai.Config{URL: broken(t, says()).URL})
	err = two.Check(t.Context(), enginetest.TinyModel(t))
	enginetest.OneLine(t, err, fault.ServerUnreachable, record.SetUp,
		"has 2 models; name one of its models with --openai-model: mouse, moose")
	err = two.Check(t.Context(), models.Model{Model: record.Model{Name: "p", Format: "webllm"}})
	if err == nil || fault.Of(err) != fault.BadModel {
		t.Errorf("a package: %v", err)
	}
	for _, model := range []string{"x", ""} {
		none := openai.Config{URL: answer(200, `{"data":[]}`), Model: model}
		check.Also(t, openai.New(none).Check(t.Context(), served)) // an empty list of models
	}
}

// The key is in no error, however the server repeats it and wherever the text is cut.
func TestKeyIsHidden(t *testing.T) {
	const key = "sk-Zq7/&<93xYw+aB"
	t.Setenv("MY_KEY", key)
	for pad := 90; pad < 121; pad += 3 {
		for _, body := range []string{key, url.QueryEscape(key), `{"error":"` + key + `"}`,
			`{"detail":["` + key + `"]}`} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
				io.WriteString(w, strings.Repeat(" ", pad)+body)
			}))
			err := openai.New(openai.Config{URL: s.URL, KeyFrom: "MY_KEY"}).Check(t.Context(), served)
			s.Close()
			if err == nil || strings.Contains(err.Error(), "sk-Z") {
				t.Fatalf("%s after %d bytes: %v", body, pad, err)
			}
		}
	}
}
