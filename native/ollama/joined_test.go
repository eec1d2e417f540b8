package ollama

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// scripted returns a server that is the child of a script, as in some packages.
func scripted(t *testing.T, settings string) *session {
	t.Helper()
	real, err := Find(newEngine(t).config)
	check.Err(t, err)
	path := check.Script(t, settings+" "+real+" \"$@\"\nexit $?", t.TempDir(), "ollama")
	s, p := opened(t, newEngine(t, func(c *Config) { c.Path = path }))
	if pids := p.PIDs(roleServer); len(pids) != 1 || pids[0] == s.own.PID() {
		t.Errorf("sampled as the server: %v; the script is process %d", pids, s.own.PID())
	}
	return s
}

// random returns another model, with its own context.
func random(t *testing.T, name string) models.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".gguf")
	check.Err(t, tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Name: name, Tokenizer: gguf.PreLlama3}))
	return models.Model{Path: path, Model: record.Model{Name: name, Format: "gguf"}}
}

// A runner of another client is not sampled as ours, whether it is younger or older. A prompt in the server's cache is
// noticed.
func TestServerWithOtherModelsAndCache(t *testing.T) {
	theirs := scripted(t, "OLLAMA_MAX_LOADED_MODELS=2 OLLAMA_MULTIUSER_CACHE=1 OLLAMA_NUM_PARALLEL=2")
	join := newEngine(t, func(c *Config) { c.URL = theirs.client.Base })
	c := enginetest.Tiny(t, 8)[1]
	s, p := opened(t, join)
	enginetest.Load(t, s, c.Model)
	ours := int(now(s).runner.Load())
	other, p2 := opened(t, join)
	m := random(t, "other")
	m.Context = 128
	enginetest.Load(t, other, m)
	if second := int(now(other).runner.Load()); ours == 0 || second == 0 || second == ours {
		t.Fatalf("runners %d and %d", ours, second)
	}
	if got := p.Engine().Policy["context"]; got != "1024" {
		t.Errorf("context %s, want 1024", got)
	}
	s.family.tree.Look(t.Context())
	if a, b := p.PIDs(roleRunner), p2.PIDs(roleRunner); len(a) != 1 || a[0] != ours || len(b) != 1 ||
		b[0] != int(now(other).runner.Load()) {
		t.Errorf("sampled runners %v and %v, want %d and %d", a, b, ours,
			now(other).runner.Load())
	}
	long := strings.Repeat("The third clock had stopped. ", 100)
	for range 2 {
		say(t, s, long, 4)
	}
	if now := s.family.runner(now(s).blobs).pid; now != ours || len(p.Warned("runner-restarted")) != 0 {
		t.Errorf("the runner is %d, then %d: %q", ours, now, p.Warnings())
	}
	if len(p.Warned("cache-suspected")) != 1 {
		t.Errorf("a prompt came from the cache; warnings %q", p.Warnings())
	}
	check.Also(t, s.Unload(t.Context())) // while another runner is running
}

// Without --context, the context is still known.
func TestContextDefault(t *testing.T) {
	theirs, _ := opened(t, newEngine(t))
	m := random(t, "unsaid")
	s, p := opened(t, newEngine(t, func(c *Config) { c.URL = theirs.client.Base }))
	enginetest.Load(t, s, m)
	f, err := gguf.Open(m.Path)
	check.Err(t, err)
	defer f.Close()
	arch, err := f.Architecture()
	check.Err(t, err)
	if want := min(arch.ContextLength, maxUnasked); now(s).context != want ||
		p.Engine().Policy["context"] != fmt.Sprint(want) {
		t.Errorf("context %d, policy %s; want %d", now(s).context, p.Engine().Policy["context"], want)
	}
	_, err = s.Generate(t.Context(), engine.Request{Prompt: strings.Repeat("The third clock ", 3000), MaxTokens: 4},
		func(record.Token) {})
	if fault.Of(err) != fault.PromptTooLong {
		t.Errorf("a prompt that does not fit: %v", err)
	}
	t.Run("unknown to the server", func(t *testing.T) {
		s, _ := opened(t, serve(t, fake{}))
		enginetest.OneLine(t, s.Load(t.Context(), models.Model{Model: record.Model{Name: "m", Format: record.Served}}),
			fault.Usage, record.SetUp, "--context")
	})
}

// Only the figures of a server on another machine show a load during a generation.
func TestLoadDuringGeneration(t *testing.T) {
	for ns, want := range map[string]int{"260e6": 1, "12e6": 0} {
		s, p := opened(t, serve(t, fake{lines: line("a") +
			`{"done":true,"done_reason":"length","prompt_eval_count":4,"eval_count":1,"load_duration":` + ns + "}\n"}))
		enginetest.Load(t, s, served("m"))
		say(t, s, "abcd", 1)
		if w := p.Warned("runner-restarted"); len(w) != want {
			t.Errorf("load_duration %s: %q", ns, p.Warnings())
		}
	}
}

// A file is uploaded once, outside of loads, and removed when the engine is closed.
func TestFileIsUploadedOnce(t *testing.T) {
	theirs, _ := opened(t, newEngine(t))
	target, err := url.Parse(theirs.client.Base)
	check.Err(t, err)
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.FlushInterval, pass.Transport = -1, &http.Transport{DisableKeepAlives: true}
	var uploads, creates atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/blobs/") && r.Method == http.MethodPost {
			uploads.Add(1)
		}
		if r.URL.Path == "/api/create" {
			creates.Add(1)
		}
		pass.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	folder := t.TempDir()
	o := newEngine(t, func(c *Config) { c.URL, c.Cache = proxy.URL, folder })
	c := enginetest.Tiny(t, 8)[1]
	check.Err(t, o.Prepare(t.Context(), c.Model, func(s string) { t.Log(s) }))
	for range 2 {
		s, p := opened(t, o)
		enginetest.Load(t, s, c.Model)
		if u := say(t, s, c.Prompt, 8); u.Text != c.Text {
			t.Errorf("%q, want %q", u.Text, c.Text)
		}
		if slices.ContainsFunc(p.Spans(), func(s record.Span) bool { return s.Name == "create" }) {
			t.Errorf("the load includes the upload: %v", p.Spans())
		}
		check.Err(t, s.Close())
	}
	if uploads.Load() != 1 || creates.Load() != 1 {
		t.Errorf("%d uploads, %d models created; want one of each", uploads.Load(), creates.Load())
	}
	left := func() []listed {
		tags, err := theirs.client.tags(t.Context())
		check.Err(t, err)
		return tags
	}
	if len(left()) != 1 {
		t.Errorf("the model did not stay: %v", left())
	}
	// A killed run leaves the model and its note; the next run removes both.
	gone := exec.Command("true")
	check.Err(t, gone.Run())
	note := []byte(strconv.Itoa(gone.Process.Pid))
	d := o.depot
	check.Err(t, os.WriteFile(d.place(own(c.Model.SHA256)), note, 0o600))
	next := newEngine(t, func(c *Config) { c.URL, c.Cache = proxy.URL, folder })
	check.Err(t, next.Prepare(t.Context(), c.Model, func(string) {}))
	if err := next.Close(); err != nil || len(left()) != 0 || uploads.Load() != 1 {
		t.Errorf("left: %v, %d uploads, %v", left(), uploads.Load(), err)
	}
	if notes, err := os.ReadDir(d.notes); err != nil || len(notes) != 0 {
		t.Errorf("notes: %v, %v", notes, err)
	}
	check.Also(t, o.Close())
}
