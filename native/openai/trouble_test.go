package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/openai"
)

var served = models.Model{Model: record.Model{Name: "mouse", Format: record.Served}}

// broken is a server with given completions; it lists the models mouse and moose.
func broken(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models":
			io.WriteString(w, `{"object":"list","data":[{"id":"mouse","owned_by":"me"},{"id":"moose","owned_by":"me"}]}`)
		case r.Method == http.MethodPost:
			body, err := io.ReadAll(r.Body)
			if err != nil || !json.Valid(body) || r.Header.Get("Content-Type") != "application/json" {
				http.Error(w, "no JSON", http.StatusUnsupportedMediaType)
			} else if strings.Contains(string(body), `"Hello"`) { // the request that makes it load its model
				io.WriteString(w, piece("x")+"\n\n"+finish+"\n\n"+done+"\n\n")
			} else {
				r.Body = io.NopCloser(bytes.NewReader(body))
				answer(w, r)
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// says streams lines, then ends the answer properly.
func says(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			io.WriteString(w, l+"\n\n")
			w.(http.Flusher).Flush()
		}
	}
}

// refuses answers with a status.
func refuses(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

func piece(text string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"text":%q,"finish_reason":null}]}`, text)
}

const (
	finish = `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}`
	done   = "data: [DONE]"
)

func counts(prompt, completion int) string {
	return fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":0}}}`,
		prompt, completion, prompt+completion)
}

// loaded returns a session with a model.
func loaded(t testing.TB, c openai.Config, m models.Model) (engine.Session, *enginetest.Probe) {
	t.Helper()
	s, p := enginetest.Open(t, openai.New(c))
	enginetest.Load(t, s, m)
	return s, p
}

func request(prompt string, n int) engine.Request {
	return engine.Request{Prompt: prompt, MaxTokens: n}
}

// generated generates n tokens.
func generated(ctx context.Context, s engine.Session, n int) (enginetest.Generation, error) {
	return enginetest.Generate(ctx, s, request("Once", n))
}

func codes(p *enginetest.Probe) string {
	var out []string
	for _, w := range p.Warnings() {
		// How many pieces are read at once depends on the machine, unless a test forces it.
		if !slices.Contains([]string{"already-running", "weights-unverified", "server-not-sampled", "burst"}, w.Code) {
			out = append(out, w.Code)
		}
	}
	return strings.Join(out, " ")
}

func TestStreams(t *testing.T) {
	lie := counts(3, 1)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		class  record.Class // empty: no error
		code   fault.Kind
		words  string
		pieces int
		tokens int // according to usage; 0: no plausible count
		warned string
	}{
		{name: "sound", answer: says(piece("a"), ": ping", piece("b"), finish, counts(3, 2), done), pieces: 2,
			tokens: 2},
		{name: "fewer pieces than tokens", answer: says(piece("ab"), finish, counts(3, 4), done), pieces: 1, tokens: 4,
			warned: "several-per-piece"},
		{name: "no usage", answer: says(piece("a"), piece("b"), finish, done), pieces: 2,
			warned: "no-usage cache-unknown"},
		{name: "usage below the pieces", answer: says(piece("a"), piece("b"), finish, lie, done), pieces: 2,
			warned: "counts-differ"},
		{name: "usage above the request", answer: says(piece("a"), finish, counts(3, 99), done), pieces: 1,
			warned: "counts-differ"},
		{name: "more pieces than requested",
			answer: says(piece("a"), piece("b"), piece("c"), piece("d"), piece("e"), finish, done), pieces: 5,
			warned: "counts-differ no-usage cache-unknown"},
		{name: "cut after its reason", answer: says(piece("a"), finish), pieces: 1,
			warned: "no-usage cut-stream cache-unknown"},
		{name: "cut before its reason", answer: says(piece("a"), piece("b")), class: record.Other, code: fault.Run,
			words: "ended the stream after 2 pieces", pieces: 2},
		{name: "no cached tokens reported", answer: says(
			piece("a"), finish, `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, done),
			pieces: 1, tokens: 1,
			warned: "cache-unknown"},
		{name: "from a cache", answer: says(
			piece("a"), finish, strings.Replace(counts(3, 1), `"cached_tokens":0`, `"cached_tokens":2`, 1), done),
			pieces: 1, tokens: 1,
			warned: "cached-prompt"},
		{name: "done without a reason", answer: says(piece("a"), done), pieces: 1,
			warned: "no-usage no-reason cache-unknown"},
		{name: "nothing", answer: says(), class: record.Other, code: fault.Run,
			words: "ended the stream after 0 pieces"},
		{name: "no text", answer: says(finish, counts(3, 0), done), class: record.BadOutput, code: fault.Run,
			words: "without any text"},
		{name: "tokens without text", answer: says(finish, counts(3, 2), done),
			class: record.BadOutput, code: fault.Run, words: "counts 2 tokens", tokens: 2},
		{name: "error in mid-stream", answer: says(
			piece("a"), `data: {"error":{"message":"out of\nblocks","type":"server_error","code":500}}`, done),
			class: record.Other, code: fault.Run, words: "out of blocks", pieces: 1},
		{name: "error event", answer: says(piece("a"), `error: {"message":"slot lost","code":500}`),
			class: record.Other, code: fault.Run, words: "slot lost", pieces: 1},
		{name: "error as an object", answer: says(
			piece("a"), `data: {"object":"error","message":"EngineDeadError","code":500}`), class: record.Crash,
			code: fault.Run, words: "EngineDeadError", pieces: 1},
		{name: "half a JSON", answer: says(piece("a"), `data: {"choices":[{"te`),
			class: record.BadOutput, code: fault.Run, words: `{\"choices\":[{\"te`, pieces: 1},
		{name: "other JSON", answer: says(`data: {"choices":"many"}`), class: record.BadOutput, code: fault.Run,
			words: "a chunk of the stream is invalid"},
		{name: "role and empty deltas",
			answer: says(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`,
				`data: {"choices":[{"index":0,"delta":{"content":""}}]}`,
				`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`data: {"choices":[{"index":0,"delta":{"reasoning_content":"b"}},{"index":1,"delta":{"content":"another's"}}]}`,
				finish, counts(3, 2), done), pieces: 2, tokens: 2},
		{name: "401", answer: refuses(401, `{"error":{"message":"no key"}}`),
			class: record.SetUp, code: fault.ServerUnreachable, words: "--openai-key-env"},
		{name: "404 of a model", answer: refuses(
			404, `{"error":{"message":"The model mouse does not exist.","type":"NotFoundError","code":404}}`),
			class: record.SetUp, code: fault.ServerUnreachable, words: `does not have model "mouse"; did you mean "moose"`},
		{name: "404 of a path", answer: refuses(404, `{"detail":"Not Found"}`),
			class: record.SetUp, code: fault.ServerUnreachable, words: "--openai-api"},
		{name: "400", answer: refuses(400, `{"detail":[{"loc":["body","seed"],"msg":"extra fields not permitted"}]}`),
			class: record.SetUp, code: fault.ServerUnreachable, words: "extra fields"},
		{name: "429", answer: refuses(429, `{"error":{"message":"slow down"}}`), class: record.Other, code: fault.Run,
			words: "send fewer at a time"},
		{name: "500", answer: refuses(500, `{"error":{"message":"boom"}}`), class: record.Other, code: fault.Run,
			words: "boom"},
		{name: "too long for OpenAI", answer: refuses(
			400, `{"error":{"message":"too much","type":"invalid_request_error","code":"context_length_exceeded"}}`),
			class: record.SetUp, code: fault.PromptTooLong},
		{name: "too long for vLLM", answer: refuses(
			400, `{"object":"error","message":"This model's maximum context length is 16 tokens.","type":"BadRequestError","code":400}`),
			class: record.SetUp, code: fault.PromptTooLong, words: "16 tokens"},
		{name: "too long for TGI", answer: refuses(
			422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048\",\"error_type\":\"validation\"}"),
			class: record.SetUp, code: fault.PromptTooLong, words: "2048"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // a broken stream waits for its server to end
			s, p := loaded(t, openai.Config{URL: broken(t, c.answer).URL}, served)
			known := len(p.Warnings())
			g, err := generated(t.Context(), s, 4)
			for _, f := range g.BrokenFaults(0) {
				t.Error(f)
			}
			if c.class != "" {
				enginetest.OneLine(t, err, c.code, c.class, c.words)
			} else if err != nil {
				t.Fatal(err)
			}
			if len(g.Tokens) != c.pieces || g.Usage.Generated != c.tokens {
				t.Errorf("%d pieces and %d tokens, want %d and %d", len(g.Tokens), g.Usage.Generated, c.pieces,
					c.tokens)
			}
			if unreported := g.Usage.CachedTokens == record.CacheUnknown; c.class == "" && c.warned != "" &&
				unreported != strings.Contains(c.warned, "cache-unknown") {
				t.Errorf("%d cached tokens, warnings %q", g.Usage.CachedTokens, c.warned)
			}
			for _, w := range p.Warnings()[known:] {
				if strings.Contains(w.Text, "\n") {
					t.Errorf("more than a line: %q", w.Text)
				}
			}
			if got := codes(p); c.class == "" && got != c.warned {
				t.Errorf("warnings %q, want %q", got, c.warned)
			}
		})
	}
	// A wrong count is recorded beside ours.
	s, _ := loaded(t, openai.Config{URL: broken(t, says(piece("a"), piece("b"), finish, lie, done)).URL}, served)
	if g, err := generated(t.Context(), s, 4); err != nil || g.Usage.Reported["completion_tokens"] != 1 ||
		len(g.Tokens) != 2 {
		t.Errorf("%v: %+v", err, g)
	}
}

func TestBrokenConnection(t *testing.T) {
	server := broken(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n"+piece("a")+"\n\ndata: {\"cho")
		conn.Close()
	})
	s, _ := loaded(t, openai.Config{URL: server.URL}, served)
	g, err := generated(t.Context(), s, 4)
	enginetest.OneLine(t, err, fault.Run, record.Other, "ended the stream after 1 pieces")
	if len(g.Tokens) != 1 || g.Usage.Text != "a" {
		t.Errorf("%+v", g)
	}
	server.CloseClientConnections()
	server.Listener.Close()
	_, err = generated(t.Context(), s, 4)
	enginetest.OneLine(t, err, fault.Run, record.Crash, "ended after 0 pieces")
}

func TestSilentServer(t *testing.T) {
	release := make(chan struct{})
	server := broken(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"max_tokens":4`) {
			io.WriteString(w, piece("a")+"\n\n")
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	s, _ := loaded(t, openai.Config{URL: server.URL}, served)
	for n, words := range map[int]string{3: "waiting for text after 0 pieces",
		4: "waiting for text after 1 pieces"} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // enough for a first piece on a busy machine
		g, err := generated(ctx, s, n)
		cancel()
		enginetest.OneLine(t, err, fault.Run, record.Timeout, words)
		if g.Usage.Finish != "cancelled" || len(g.Tokens) != n-3 {
			t.Errorf("%+v", g)
		}
	}
}
