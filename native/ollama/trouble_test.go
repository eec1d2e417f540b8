package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// fake is a server that answers like Ollama unless a test says otherwise. It can send broken answers, which are the
// input here.
type fake struct {
	answers map[string]string // by path, with an optional status, as in "401 no"
	lines   string            // of a stream
	status  int               // of the stream
}

func (f fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := f.answers[r.URL.Path]
	if !ok {
		text = map[string]string{"/api/version": `{"version":"0.6.5"}`,
			"/api/tags": `{"models":[{"name":"m:latest","digest":"d"},{"name":"other:1b"}]}`,
			"/api/ps":   `{"models":[]}`}[r.URL.Path]
	}
	var body generate
	if r.URL.Path == "/api/generate" && json.NewDecoder(r.Body).Decode(&body) == nil {
		switch {
		case body.Stream:
			text = f.lines
			if f.status != 0 {
				w.WriteHeader(f.status)
			}
		case !ok:
			text = `{"done":true,"prompt_eval_count":4,"eval_count":1}`
		}
	}
	if code, rest, found := strings.Cut(text, " "); found && len(code) == 3 && code[0] >= '1' && code[0] <= '9' {
		var status int
		if _, err := fmt.Sscan(code, &status); err == nil {
			w.WriteHeader(status)
			text = rest
		}
	}
	if cut, whole := strings.CutSuffix(text, "<cut>"); whole {
		w.Header().Set("Content-Length", fmt.Sprint(len(cut)+100))
		text = cut
	}
	_, _ = io.WriteString(w, text) // the client may have gone
}

func serve(t *testing.T, h http.Handler) *Ollama {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return New(Config{URL: s.URL})
}

func served(name string) models.Model {
	return models.Model{Model: record.Model{Name: name, Format: record.Served, Context: 64}}
}

func TestUnusableServers(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		words   []string
	}{
		"guarded": {map[string]string{"/api/version": "401 no"}, []string{"401", "takes no key"}},
		"not Ollama": {map[string]string{"/api/version": "<html>"},
			[]string{"/api/version is invalid", "use the address of an Ollama server"}},
		"no such model":   {nil, []string{`does not have model "missing"`, "it has m:latest, other:1b", "ollama pull"}},
		"no model at all": {map[string]string{"/api/tags": `{"models":[]}`}, []string{"it has none"}},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.OneLine(t, serve(t, fake{answers: c.answers}).Check(t.Context(), served("missing")),
				fault.ServerUnreachable, record.SetUp, c.words...)
		})
	}
	t.Run("down", func(t *testing.T) {
		o := New(Config{URL: "127.0.0.1:9"})
		enginetest.OneLine(t, o.Check(t.Context(), served("m")), fault.ServerUnreachable, record.SetUp,
			"http://127.0.0.1:9",
			"connection refused", "ollama serve")
		_, err := o.Open(t.Context(), &enginetest.Probe{})
		enginetest.OneLine(t, err, fault.ServerUnreachable, record.SetUp, "connection refused")
	})
	t.Run("slow", func(t *testing.T) {
		o := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		enginetest.OneLine(t, o.Check(ctx, served("m")), fault.Run, record.Timeout, "deadline")
	})
}

func TestFailedLoads(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		code   fault.Kind
		class  record.Class
		words  string
	}{
		"too large": {`500 {"error":"model requires more system memory (9 GiB) than is available (1 GiB)"}`,
			fault.Run, record.OOM, "9 GiB"},
		"crash": {`500 {"error":"llama runner process has terminated: signal: segmentation fault"}`, fault.Run,
			record.Crash, "segmentation fault"},
		"bad model": {`500 {"error":"unable to load model: /x"}`, fault.BadModel, record.BadModel,
			"use a newer Ollama"},
		"half": {`{"done":<cut>`, fault.Run, record.Other, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := opened(t, serve(t, fake{answers: map[string]string{"/api/generate": c.answer}}))
			enginetest.OneLine(t, s.Load(t.Context(), served("m")), c.code, c.class, c.words)
		})
	}
}

// line is a piece of text; last is the last line of a stream.
func line(text string) string {
	b, _ := json.Marshal(map[string]any{"response": text})
	return string(b) + "\n"
}

func last(reason string, prompted, counted any) string {
	b, _ := json.Marshal(map[string]any{"done": true, "done_reason": reason, "prompt_eval_count": prompted,
		"eval_count": counted, "eval_duration": 5})
	return string(b) + "\n"
}

func TestBrokenStreams(t *testing.T) {
	for name, c := range map[string]struct {
		lines  string
		status int
		class  record.Class
		pieces int
		words  string
	}{
		"500 at once":         {`{"error":"no"}`, 500, record.Other, 0, "Ollama: 500 Internal Server Error: no"},
		"error in mid-stream": {line("a") + `{"error":"something odd"}` + "\n", 0, record.Other, 1, "something odd"},
		"crash in mid-stream": {line("a") +
			`{"error":"an error was encountered while running the model: unexpected EOF"}` + "\n", 0, record.Crash,
			1, "runner crashed"},
		"out of memory in mid-stream": {line("a") +
			`{"error":"an error was encountered while running the model: cudaMalloc failed: out of memory"}` + "\n",
			0, record.OOM, 1, "out of memory"},
		"no JSON":           {line("a") + "rubbish\n", 0, record.BadOutput, 1, "rubbish"},
		"no last line":      {line("a") + line("b"), 0, record.Other, 2, "after 2 pieces, before its last line"},
		"connection closed": {line("a") + "<cut>", 0, record.Other, 1, "unexpected EOF"},
		"no token":          {last("stop", 4, 1), 0, record.BadOutput, 0, "no token (stop)"},
		"repetition": {strings.Repeat(line(" x"), 31), 0, record.BadOutput,
			31, "after 31 pieces because the last 31 were the same"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := opened(t, serve(t, fake{lines: c.lines, status: c.status}))
			enginetest.Load(t, s, served("m"))
			pieces := 0
			u, err := s.Generate(t.Context(), engine.Request{Prompt: "abcd", MaxTokens: 40},
				func(record.Token) { pieces++ })
			enginetest.OneLine(t, err, fault.Run, c.class, c.words)
			if pieces != c.pieces || u.Generated != c.pieces || u.Sent.IsZero() ||
				(len(u.Spans) > 0) != (c.pieces > 0) {
				t.Errorf("%d pieces, want %d; %+v", pieces, c.pieces, u)
			}
		})
	}
}

func TestWrongCounts(t *testing.T) {
	two := line("a") + "\n" + line("") + line("b")
	for name, c := range map[string]struct {
		lines     string
		generated int
		prompted  int
		finish    string
		warned    string // prefix of the warning; empty: none
	}{
		"right":                     {two + last("length", 4, 2), 2, 4, "length", ""},
		"more tokens than pieces":   {two + last("length", 4, 5), 5, 4, "length", ""},
		"the end counts as a token": {two + last("stop", 4, 3), 2, 4, "stop", ""},
		"the end does not count":    {two + last("stop", 4, 2), 2, 4, "stop", ""},
		"no reason":                 {two + last("", 4, 2), 2, 4, "stop", ""},
		"fewer than pieces": {two + last("length", 4, 1), 2, 4, "length",
			"Ollama counts 1 tokens, but sent 2 pieces"},
		"negative": {two + last("length", 4, -7), 2, 4, "length", "Ollama counts 0 tokens"},
		"no prompt": {two + last("length", nil, 2), 2, 0, "length",
			"Ollama does not report the number of prompt tokens"},
		"a piece in the last line": {line("a") +
			`{"response":"b","done":true,"done_reason":"length","prompt_eval_count":4,"eval_count":2}` + "\n", 2, 4,
			"length", ""},
		"thirty repetitions": {strings.Repeat(line("x"), 30) + last("length", 4, 30), 30, 4, "length", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := opened(t, serve(t, fake{lines: c.lines}))
			enginetest.Load(t, s, served("m"))
			u := say(t, s, "abcd", 30)
			if u.Generated != c.generated || u.PromptTokens != c.prompted || u.Finish != c.finish || u.Reported == nil {
				t.Errorf("%+v", u)
			}
			if w := strings.Join(p.Warned("counts-differ"), "|"); (w != "") != (c.warned != "") ||
				!strings.HasPrefix(w, c.warned) {
				t.Errorf("warnings %q, want %q", w, c.warned)
			}
		})
	}
}

func TestContradictoryTimes(t *testing.T) {
	for text, want := range map[string]bool{"5": true, "5e9": true, "0": false, "null": false} {
		s, p := opened(t, serve(t, fake{lines: strings.Repeat(line("a"), 9) +
			`{"done":true,"done_reason":"length","prompt_eval_count":4,"eval_count":9,"eval_duration":` + text +
			"}\n"}))
		enginetest.Load(t, s, served("m"))
		for range 2 { // warned once
			say(t, s, "abcd", 9)
		}
		if n := len(p.Warned("times-differ")); n != map[bool]int{true: 1}[want] {
			t.Errorf("eval_duration %s: %q", text, p.Warnings())
		}
	}
}

func TestTooLong(t *testing.T) {
	long := strings.Repeat("a b ", 40)
	for name, c := range map[string]struct {
		counted, tokens int
		words           string
	}{
		"truncated prompt":            {64, 1, "more tokens than fit in a context of 64"},
		"too many tokens to generate": {40, 25, "the prompt of 40 tokens and 25"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fake{lines: line("a") + last("length", c.counted, 1),
				answers: map[string]string{"/api/generate": fmt.Sprintf(
					`{"done":true,"prompt_eval_count":%d,"eval_count":1}`, c.counted)}}
			s, _ := opened(t, serve(t, f))
			enginetest.Load(t, s, served("m"))
			for range 2 { // counted by the server, then known
				_, err := s.Generate(t.Context(), engine.Request{Prompt: long, MaxTokens: c.tokens},
					func(record.Token) { t.Error("a piece") })
				enginetest.OneLine(t, err, fault.PromptTooLong, record.SetUp, c.words)
			}
		})
	}
	t.Run("noticed at the end", func(t *testing.T) {
		s, _ := opened(t, serve(t, fake{lines: line("a") + last("length", 64, 1)}))
		enginetest.Load(t, s, served("m"))
		_, err := s.Generate(t.Context(), engine.Request{Prompt: "short", MaxTokens: 1}, func(record.Token) {})
		enginetest.OneLine(t, err, fault.PromptTooLong, record.SetUp, "it dropped some")
	})
}
