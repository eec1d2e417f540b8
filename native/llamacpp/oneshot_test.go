package llamacpp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

func newOneShot() *Engine { return NewOneShot(Config{Cache: cache.Dir(os.Getenv)}) }

// Both programs of llama.cpp generate the same text. The one-shot program reports its own counts and times.
func TestOneShotAgreesWithServer(t *testing.T) {
	m := randomModel(t, ascii())
	server, _ := loadedSession(t, m)
	r := engine.Request{Prompt: "once upon\n a time\n", MaxTokens: 20}
	want, err := generate(t, server, r)
	check.Err(t, err)
	s, _ := loadedOneShot(t, m)
	for range 2 {
		u, err := s.Generate(t.Context(), r, func(record.Token) {})
		check.Err(t, err)
		if u.Text != want.Usage.Text || u.Generated != len(want.Tokens) ||
			u.PromptTokens != len(want.Usage.PromptIDs) || u.Finish != want.Usage.Finish {
			t.Errorf("%d tokens behind %d, %s: %q\nwant %d behind %d, %s: %q", u.Generated, u.PromptTokens, u.Finish,
				u.Text,
				len(want.Tokens), len(want.Usage.PromptIDs), want.Usage.Finish, want.Usage.Text)
		}
		if u.Reported["eval_runs"] != 19 || u.Reported["prompt_tokens"] != float64(u.PromptTokens) ||
			u.Reported["eval_ms"] <= 0 {
			t.Errorf("its own figures are %v", u.Reported)
		}
	}
}

func loadedOneShot(t *testing.T, m models.Model) (engine.Session, *enginetest.Probe) {
	t.Helper()
	s, p := enginetest.Open(t, newOneShot())
	enginetest.Load(t, s, m)
	return s, p
}

// The end of a text is distinguished from the length limit, and the newline that the program then prints is dropped.
func TestOneShotStopsAtEndOfText(t *testing.T) {
	m := randomModel(t, span(0, 255)) // its 68th token ends the text
	s, _ := loadedOneShot(t, m)
	ends := engine.Request{Prompt: "once upon a time", MaxTokens: 100}
	u, err := s.Generate(t.Context(), ends, func(record.Token) {})
	check.Err(t, err)
	server, _ := loadedSession(t, m)
	want, err := generate(t, server, ends)
	check.Err(t, err)
	if n := len(want.Tokens) - 1; u.Finish != "stop" || u.Generated != n || u.Text != want.Usage.Text {
		t.Errorf("finish %s after %d tokens, want %d, text\n%q, want\n%q", u.Finish, u.Generated, n, u.Text,
			want.Usage.Text)
	}
	ends.IgnoreEOS = true
	if u, err = s.Generate(t.Context(), ends, func(record.Token) {}); err != nil || u.Finish != "length" ||
		u.Generated != 100 {
		t.Errorf("ignoring the end: finish %s after %d tokens, %v", u.Finish, u.Generated, err)
	}
}

// The program itself refuses such a prompt, perhaps before its log says why. The reason must be the same each time.
func TestPromptSlightlyOverContext(t *testing.T) {
	m := randomModel(t, ascii())
	s, _ := loadedOneShot(t, m)
	for _, n := range []int{m.Context - 4, m.Context - 3, m.Context - 1, m.Context, m.Context + 1, m.Context + 200} {
		for range 3 {
			if _, err := s.Generate(t.Context(), engine.Request{Prompt: strings.Repeat("a", n), MaxTokens: 8},
				func(record.Token) {}); fault.Of(err) != fault.PromptTooLong {
				t.Errorf("%d tokens: %v", n, err)
			}
		}
	}
}

// If the line in the log is read late, prefill is the program's own time.
func TestSpansIfBeginIsReadLate(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	run := &completionRun{Program: &launch.Program{Begun: start}, begun: at(101),
		figures: map[string]float64{"prompt_eval_ms": 30}}
	spans := run.spans(&engine.Text{First: at(100), Last: at(150), N: 5}, 5)
	if len(spans) != 3 || spans[1].Name != record.Prefill || spans[1].End.Sub(spans[1].Begin) != 30*time.Millisecond ||
		!strings.Contains(spans[1].How, "own prompt evaluation time") {
		t.Errorf("%+v", spans)
	}
	said := &engine.Text{First: at(100), Last: at(110), N: 5}
	if timesDiffer(said, record.Usage{Reported: map[string]float64{"eval_ms": 60}}) == "" ||
		timesDiffer(said, record.Usage{Reported: map[string]float64{"eval_ms": 9}}) != "" {
		t.Error("timesDiffer reports a difference where there is none, or the reverse")
	}
}

func TestOneShotRefusesOtherPrograms(t *testing.T) {
	m := randomModel(t, ascii())
	dir := t.TempDir()
	server, err := Find(Config{Cache: cache.Dir(os.Getenv)})
	check.Err(t, err)
	for path, want := range map[string]string{
		check.Script(t, "echo 'something else 1.0'", dir, "llama-completion"): "something else",
		server:                        "not llama.cpp's one-shot program",
		filepath.Join(dir, "missing"): "cannot be run",
	} {
		err := NewOneShot(Config{CLI: path}).Check(t.Context(), m)
		enginetest.OneLine(t, err, fault.NoLlamaServer, record.SetUp, want, "scripts/setup llamacpp-tools")
	}
}

// The header is valid, but llama.cpp cannot load the model. Its own reason is shown.
func TestModelThatLlamaCppCannotLoad(t *testing.T) {
	m := randomModel(t, ascii())
	text := check.Read(t, m.Path)
	check.Err(t, os.WriteFile(m.Path, bytes.Replace(text, []byte("blk.0.attn_q"), []byte("blk.0.attn_x"), 1),
		0o600))
	s, _ := opened(t, newEngine(t))
	enginetest.OneLine(t, s.Load(t.Context(), m), fault.BadModel, record.BadModel, "attn_q")
}
