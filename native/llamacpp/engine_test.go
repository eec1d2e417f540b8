package llamacpp

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/record"
	"llmparity/native/wire"
)

func TestMain(m *testing.M) { childtest.Main(m) }

func newEngine(t testing.TB) *Engine {
	t.Helper()
	return New(Config{Cache: cache.Dir(os.Getenv)})
}

func opened(t testing.TB, l *Engine) (*session, *enginetest.Probe) {
	t.Helper()
	s, p := enginetest.Open(t, l)
	return s.(*session), p
}

func loadedSession(t testing.TB, m models.Model) (*session, *enginetest.Probe) {
	t.Helper()
	s, p := opened(t, newEngine(t))
	enginetest.Load(t, s, m)
	return s, p
}

// greedy returns the reference's continuation of a prompt.
func greedy(t *testing.T, m models.Model, prompt []int, n int) []int {
	t.Helper()
	_, model, err := reference.Open(m.Path)
	check.Err(t, err)
	ids, _, err := model.Greedy(prompt, n)
	check.Err(t, err)
	return ids
}

func generate(t *testing.T, s *session, r engine.Request) (enginetest.Generation, error) {
	t.Helper()
	g, err := enginetest.Generate(t.Context(), s, r)
	g.Caps = New(s.config).Caps()
	return g, err
}

// Random bytes are hardly ever whole characters, so llama-server holds most events back.
func TestIDsOfInvalidUTF8(t *testing.T) {
	m := randomModel(t, span(0, 255))
	s, p := loadedSession(t, m)
	// After 68 tokens the reference chooses the end token, which llama-server may not choose.
	const n = 64
	g, err := generate(t, s, engine.Request{Prompt: "once upon a time", MaxTokens: n, IgnoreEOS: true})
	check.Err(t, err)
	for _, f := range g.Faults(0) {
		t.Error(f)
	}
	if want := greedy(t, m, g.Usage.PromptIDs, n); !slices.Equal(g.IDs(), want) {
		t.Errorf("ids  %v\nwant %v", g.IDs(), want)
	}
	if w := p.Warnings(); len(w) != 1 || w[0].Code != "held-back-tokens" {
		t.Errorf("warnings %+v, want one about tokens held back", w)
	}
}

func TestTemperature(t *testing.T) {
	s, _ := loadedSession(t, randomModel(t, ascii()))
	r := engine.Request{Prompt: "once upon a time", MaxTokens: 30, IgnoreEOS: true, Temperature: 1}
	a, err := generate(t, s, r)
	check.Err(t, err)
	b, err := generate(t, s, r)
	check.Err(t, err)
	if slices.Equal(a.IDs(), b.IDs()) || a.Usage.Reported["seed"] == b.Usage.Reported["seed"] {
		t.Errorf("two samples of 30 tokens are equal: %v", a.IDs())
	}
}

// Two servers can listen on one port if both allow it; only ours knows our key.
func TestAnotherServerAnswers(t *testing.T) {
	m := randomModel(t, ascii())
	other, _ := loadedSession(t, m)
	srv, err := other.own.Now()
	check.Err(t, err)
	mine := &server{Program: srv.Program, client: newClient(0, "another key")}
	mine.client.Base = srv.client.Base
	if _, err := mine.ours(t.Context(), m); !errors.Is(err, child.ErrPortTaken) {
		t.Errorf("a server with another key returns %v, want %v", err, child.ErrPortTaken)
	}
}

// The key must not be visible to other users, and the user's own LLAMA_ variables must not reach our server.
func TestEnvironmentAndArguments(t *testing.T) {
	t.Setenv("LLAMA_ARG_CTX_SIZE", "1024")
	t.Setenv("LLAMA_ARG_N_PARALLEL", "3")
	s, p := loadedSession(t, randomModel(t, ascii()))
	srv, err := s.own.Now()
	check.Err(t, err)
	line := check.Read(t, filepath.Join("/proc", strconv.Itoa(srv.PID()), "cmdline"))
	if strings.Contains(string(line), srv.client.Key) ||
		strings.Contains(strings.Join(p.Engine().Args, " "), srv.client.Key) {
		t.Error("the key is in the arguments")
	}
	stranger := newClient(0, "")
	stranger.Base = srv.client.Base
	if _, err := stranger.tokenize(t.Context(), "x"); wire.RefusalOf(err) == nil {
		t.Errorf("without the key: %v, want a refusal", err)
	}
	if got := p.Engine().Policy["context"]; got != "256" {
		t.Errorf("the context is %s, want the model's 256", got)
	}
	check.Err(t, s.Unload(t.Context())) // a server that ends by itself flushes its log
	if text, closed := p.Logged("llama-server"); !closed || !strings.Contains(text, "model loaded") {
		t.Errorf("the log (closed: %v): %q", closed, text)
	}
}

func TestRoundedContextIsReported(t *testing.T) {
	m := randomModel(t, ascii())
	m.Context = 100
	s, p := loadedSession(t, m)
	if w := p.Warnings(); len(w) != 1 || w[0].Code != "context-differs" {
		t.Errorf("warnings %+v, want one about the context", w)
	}
	_, err := generate(t, s, engine.Request{Prompt: strings.Repeat("x", 90), MaxTokens: 11})
	if fault.Of(err) != fault.PromptTooLong {
		t.Errorf("90 and 11 tokens in a context of 100: %v", err)
	}
	if _, err := generate(t, s, engine.Request{Prompt: strings.Repeat("x", 90), MaxTokens: 10,
		IgnoreEOS: true}); err != nil {
		t.Errorf("90 and 10 tokens in a context of 100: %v", err)
	}
}

func TestOutOfMemory(t *testing.T) {
	m := randomModel(t, ascii())
	l := newEngine(t)
	b, err := l.identify(t.Context())
	check.Err(t, err)
	// The real server, with an address space limit that has room for the program but not for a large KV cache.
	text := "ulimit -v 600000\nexec '" + b.path + "' \"$@\" --override-kv llama.context_length=int:16000000"
	m.Context = 8 << 20
	s, p := opened(t, New(Config{Path: check.Script(t, text, t.TempDir(), "llama-server")}))
	enginetest.OneLine(t, s.Load(t.Context(), m), fault.Run, record.OOM)
	if n := len(p.Attached()); n != 0 {
		t.Errorf("%d sources are still attached after a failed load", n)
	}
}

// A server that died after the last request has crashed, too.
func TestCrashBetweenRequestsIsReported(t *testing.T) {
	m := randomModel(t, ascii())
	s, _ := opened(t, newEngine(t))
	check.Err(t, s.Load(t.Context(), m))
	p, err := s.own.Now()
	check.Err(t, err)
	_ = check.Kill(p.PID())
	<-p.Done()
	enginetest.OneLine(t, s.Unload(t.Context()), fault.Run, record.Crash, "signal: killed")
	if err := errors.Join(s.Unload(t.Context()), s.Load(t.Context(), m), s.Unload(t.Context())); err != nil {
		t.Errorf("reported twice, or cannot be loaded again: %v", err)
	}
}

// A server that read another file than the one that was hashed must not be measured.
func TestReplacedModelIsRefused(t *testing.T) {
	m := randomModel(t, ascii())
	file, err := os.Stat(m.Path)
	check.Err(t, err)
	m.Was = []os.FileInfo{file}
	text := check.Read(t, m.Path)
	check.Err(t, errors.Join(os.WriteFile(m.Path+".new", text, 0o600), os.Rename(m.Path+".new", m.Path)))
	s, _ := opened(t, newEngine(t))
	enginetest.OneLine(t, s.Load(t.Context(), m), fault.BadModel, record.Other, "was replaced")
}

func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return newEngine(t) }
	enginetest.Run(t, c)
}

func TestSlotsConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.Slots = 4
	c.New = func(t *testing.T) engine.Engine { return New(Config{Cache: cache.Dir(os.Getenv), Slots: c.Slots}) }
	enginetest.Run(t, c)
}

func TestOneShotConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return newOneShot() }
	enginetest.Run(t, c)
}
