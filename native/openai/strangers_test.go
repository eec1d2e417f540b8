package openai_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
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
	other := at(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"status":"ok"}`) })
	gateway := at(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
	})
	loading := at(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
	})
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	for name, c := range map[string]struct {
		config openai.Config
		code   fault.Kind
		words  []string
	}{
		"an unknown path": {openai.Config{URL: plain.URL + "/foo"}, fault.ServerUnreachable,
			[]string{"no list of models", "/foo"}},
		"files":      {openai.Config{URL: files}, fault.ServerUnreachable, []string{"no list of models"}},
		"other JSON": {openai.Config{URL: other}, fault.ServerUnreachable, []string{"no list of models"}},
		"a gateway":  {openai.Config{URL: gateway}, fault.Run, []string{"503", "no healthy upstream"}},
		"loading": {openai.Config{URL: loading}, fault.ServerUnreachable,
			[]string{"has not loaded its model within"}},
		"HTTP to HTTPS": {openai.Config{URL: strings.Replace(secure.URL, "https", "http", 1)},
			fault.ServerUnreachable, []string{"requires HTTPS", "https://"}},
		"HTTPS to HTTP": {openai.Config{URL: strings.Replace(plain.URL, "http", "https", 1)}, fault.ServerUnreachable,
			[]string{"does not use HTTPS", "http://"}},
		"an unknown signature": {openai.Config{URL: secure.URL}, fault.ServerUnreachable,
			[]string{"certificate", "SSL_CERT_FILE"}},
		"a key of two lines": {openai.Config{URL: plain.URL, Key: "sk-very\nsecret", KeyFrom: "MY_KEY"}, fault.Usage,
			[]string{"MY_KEY"}},
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
		"a wrong key": {openai.Config{URL: echo, Key: "sk-very-secret", KeyFrom: "MY_KEY"},
			fault.ServerUnreachable, []string{"what is Bearer [key]); check the key in $MY_KEY"}},
		"no key": {openai.Config{URL: echo, KeyFrom: "MY_KEY"}, fault.Usage, []string{"MY_KEY is empty or not set"}},
		"500":    {openai.Config{URL: answer(500, `{"error":"boom"}`)}, fault.Run, []string{"boom"}},
		"two models": {openai.Config{URL: broken(t, says()).URL, Model: "mous"}, fault.ServerUnreachable,
			[]string{`does not have model "mous"; did you mean "mouse"? Its models: mouse, moose`}},
		"no URL":     {openai.Config{}, fault.Usage, []string{"--openai-url: missing"}},
		"a password": {openai.Config{URL: "http://me:secret@127.0.0.1:1"}, fault.Usage, []string{"--openai-key-env"}},
		"a query": {openai.Config{URL: "http://127.0.0.1:1/v1?key=secret"}, fault.Usage,
			[]string{"would be recorded"}},
		"a file":  {openai.Config{URL: "file:///etc/passwd"}, fault.Usage, []string{"must begin with http:// or https:// and a host"}},
		"no host": {openai.Config{URL: "http://"}, fault.Usage, []string{"must begin with http:// or https:// and a host"}},
		"a secret without host": {openai.Config{URL: "http:me:very-secret@h?key=very-secret"}, fault.Usage,
			[]string{"--openai-url"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := openai.New(c.config)
			if name == "mute" || name == "loading" {
				openai.Impatient(e, 300*time.Millisecond)
			}
			err := e.Check(t.Context(), served)
			if err == nil || fault.Of(err) != c.code || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), "very") || strings.Contains(err.Error(), "secret") {
				t.Fatalf("%v (class %s), want %s", err, fault.Of(err), c.code)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
		})
	}
	// With a model file, the server's model is chosen only if there is just one.
	two := openai.New(openai.Config{URL: broken(t, says()).URL})
	err = two.Check(t.Context(), enginetest.TinyModel(t))
	enginetest.OneLine(t, err, fault.ServerUnreachable, record.SetUp,
		"has 2 models; name one of its models with --openai-model: mouse, moose")
	err = two.Check(t.Context(), engine.Model{Model: record.Model{Name: "p", Format: "webllm"}})
	if err == nil || fault.Of(err) != fault.BadModel {
		t.Errorf("a package: %v", err)
	}
	for _, model := range []string{"x", ""} {
		none := openai.Config{URL: answer(200, `{"data":[]}`), Model: model}
		if err := openai.New(none).Check(t.Context(), served); err != nil {
			t.Errorf("an empty list of models: %v", err)
		}
	}
	// URLs copied from a manual end in an API path.
	for _, end := range []string{"/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/"} {
		if err := openai.New(openai.Config{URL: plain.URL + end}).Check(t.Context(), served); err != nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}

// Check waits for a server that is loading, because its capabilities are part of the cell.
func TestCheckWaitsForLoadingServer(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case asked.Add(1) < 4:
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
		case r.URL.Path == "/v1/models":
			io.WriteString(w, `{"data":[{"id":"mouse","owned_by":"llamacpp"}]}`)
		case r.URL.Path == "/props":
			io.WriteString(w, `{"build_info":"b1","default_generation_settings":{"n_ctx":64}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	e := openai.New(openai.Config{URL: s.URL})
	if err := e.Check(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	if c := e.Caps(); !c.IgnoreEOS || c.PromptCache {
		t.Errorf("%+v, want those of llama-server", c)
	}
}

// No part of the key is in an error, however the server repeats it and wherever the text is cut.
func TestKeyIsHidden(t *testing.T) {
	const key = `sk-Zq7"/&<93xYw\aB`
	forms := map[string]string{
		"as it is": key, "in JSON": `sk-Zq7\"/&<93xYw\\aB`, "in HTML's JSON": `sk-Zq7\"/\u0026\u003c93xYw\\aB`,
		"with slashes":  `sk-Zq7"\/&<93xYw\aB`,
		"in an address": url.QueryEscape(key),
		"in units":      `\u0073\u006b\u002d\u005a\u0071\u0037\u0022\u002f\u0026\u003c\u0039\u0033\u0078\u0059\u0077\u005c\u0061\u0042`,
	}
	for name, form := range forms {
		for pad := 95; pad < 121; pad++ {
			for _, body := range []string{"<p>" + strings.Repeat("x", pad) + form,
				`{"error":[` + strings.Repeat(" ", pad) + `"` + strings.ReplaceAll(form, `"`, `\"`) + `"]}`} {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusUnauthorized)
					io.WriteString(w, body)
				}))
				err := openai.New(openai.Config{URL: s.URL, Key: key, KeyFrom: "MY_KEY"}).Check(t.Context(), served)
				s.Close()
				if err == nil || strings.Contains(err.Error(), "sk-Z") ||
					strings.Contains(err.Error(), `\u0073\u006b\u002d\u005a`) {
					t.Fatalf("%s after %d bytes: %v", name, pad, err)
				}
			}
		}
	}
}

// A server on this machine is contacted directly, by any name; others through the environment's proxy.
func TestProxies(t *testing.T) {
	var through atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		through.Add(1)
		http.Error(w, "who are you", http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	for at, c := range map[string]struct {
		local bool
		words string
	}{
		"http://127.0.0.1:1": {true, "no server at"}, "http://0.0.0.0:1": {true, "no server at"},
		"http://[::1]:1":           {true, "no server at"},
		"http://server.invalid:1":  {false, "denies access"},
		"https://server.invalid:1": {false, "cannot reach"},
	} {
		before := through.Load()
		err := openai.CheckThrough(t.Context(), openai.New(openai.Config{URL: at}), proxy.URL, served)
		enginetest.OneLine(t, err, fault.ServerUnreachable, record.SetUp, c.words)
		if went := through.Load() > before; went == c.local {
			t.Errorf("%s: through the proxy: %v", at, went)
		}
	}
}

// A path on another machine is not looked up here.
func TestRemoteFileIsNotVerified(t *testing.T) {
	m := enginetest.TinyModel(t)
	for local, want := range map[bool]bool{true: true, false: false} {
		if got := openai.Verified(local, m.Path, engine.Model{Path: m.Path}); got != want {
			t.Errorf("local %v: verified %v", local, got)
		}
	}
}
