package ollama

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/child/childtest"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
)

func TestMain(m *testing.M) { childtest.Main(m) }

// opened is a session that is closed at the test's end.
func opened(t testing.TB, o *Ollama) (*session, *enginetest.Probe) {
	t.Helper()
	p := &enginetest.Probe{}
	s, err := o.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*session), p
}

func load(t testing.TB, s *session, m engine.Model) {
	t.Helper()
	if err := s.Load(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func loadedSession(t testing.TB, m engine.Model) (*session, *enginetest.Probe) {
	t.Helper()
	s, p := opened(t, newEngine(t))
	load(t, s, m)
	return s, p
}

// now is the model that a session has.
func now(s *session) *loaded {
	l, _ := s.model.Now() // there is one
	return l
}

// say generates and gives the text with all that was told of it.
func say(t testing.TB, s *session, prompt string, n int) record.Usage {
	t.Helper()
	u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: n}, func(record.Token) {})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// sampled gives the processes that are sampled in a role.
func sampled(p *enginetest.Probe, role string) (pids []int) {
	for _, s := range p.Attached() {
		if d := s.Describe(); d.Role == role && d.PID != 0 && !slices.Contains(pids, d.PID) {
			pids = append(pids, d.PID)
		}
	}
	return pids
}

func warned(p *enginetest.Probe, code string) (texts []string) {
	for _, w := range p.Warnings() {
		if w.Code == code {
			texts = append(texts, w.Text)
		}
	}
	return texts
}

// TestReference holds every prompt against an implementation that shares nothing with Ollama.
func TestReference(t *testing.T) {
	cases := enginetest.Tiny(t, 16)
	s, p := loadedSession(t, cases[0].Model)
	for _, c := range cases {
		u := say(t, s, c.Prompt, 16)
		if u.Text != c.Text || u.PromptTokens != len(c.PromptIDs) || u.Generated != 16 || u.CachedTokens != 0 ||
			u.Finish != "length" {
			t.Errorf("%q: %q after %d tokens, %d of them cached, %d generated, %s; want %q after %d", c.Prompt, u.Text,
				u.PromptTokens, u.CachedTokens,
				u.Generated, u.Finish, c.Text, len(c.PromptIDs))
		}
	}
	// Tokens of this model come faster than Ollama passes them on.
	if w := slices.DeleteFunc(p.Warnings(), func(w record.Warning) bool { return w.Code == "times-differ" }); len(
		w) != 0 {
		t.Errorf("warnings: %v", w)
	}
	info := p.Engine()
	for name, want := range map[string]string{"threads": "1", "context": "1024", "parallel": "1", "kv_dtype": "f16",
		"flash_attention": "off", "mmap": "off"} {
		if info.Policy[name] != want {
			t.Errorf("policy %s is %q, want %q", name, info.Policy[name], want)
		}
	}
	if info.Version == "" || len(info.SHA256) != 64 || info.Parts["model_digest"] != cases[0].Model.SHA256 ||
		strings.Contains(strings.Join(info.Args, " "), os.TempDir()) {
		t.Errorf("%+v", info)
	}
}

// Ollama counts cached tokens as evaluated; its log does not, and ours don't come from the cache.
func TestTokensFromTheCacheAreFound(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, _ := loadedSession(t, c.Model)
	say(t, s, c.Prompt, 8)
	now(s).fresh = true // as if nothing lay in the cache: no other text comes before the next one
	u := say(t, s, c.Prompt, 8)
	if all := len(c.PromptIDs); u.CachedTokens != all-1 || u.PromptTokens != all ||
		u.Reported["prompt_eval_count"] != float64(all) {
		t.Errorf("of %d tokens %d were cached, and Ollama evaluated %g; want all but one, and all", all, u.CachedTokens,
			u.Reported["prompt_eval_count"])
	}
	if u := say(t, s, c.Prompt, 8); u.CachedTokens != 0 {
		t.Errorf("%d tokens came from the cache though another text was generated before", u.CachedTokens)
	}
}

// A model whose prompts all begin with the same token keeps that one in the cache.
func TestABOSStaysInTheCacheAndIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bos.gguf")
	spec := tiny.Spec{Name: "bos", Tokenizer: gguf.PreLlama3}
	if err := writeRandom(path, spec); err != nil {
		t.Fatal(err)
	}
	s, _ := loadedSession(t, engine.Model{Path: path, Model: record.Model{Name: "bos", Format: "gguf", Context: 256}})
	for i := range 2 {
		u := say(t, s, "The third clock had stopped.", 4)
		if u.CachedTokens != i {
			t.Errorf("generation %d took %d tokens from the cache, want %d", i, u.CachedTokens, i)
		}
	}
}

// Other options make Ollama start its runner anew: the new one is sampled, and a generation that waited for it says so.
func TestTheRunnerIsFoundAgain(t *testing.T) {
	m := enginetest.TinyModel(t)
	s, p := loadedSession(t, m)
	before := sampled(p, roleRunner)
	if len(before) != 1 || len(sampled(p, roleServer)) != 1 {
		t.Fatalf("sampled: runners %v, servers %v", before, sampled(p, roleServer))
	}
	want := say(t, s, "The clock", 8).Text
	other := generate{Model: now(s).name, Prompt: "x", Raw: true,
		Options: map[string]any{"num_ctx": 256, "num_gpu": 0, "num_predict": 1}}
	if _, err := s.client.whole(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.family.look(t.Context())
	middle := sampled(p, roleRunner)
	if len(middle) != 1 || middle[0] == before[0] {
		t.Errorf("runner %v, then %v", before, middle)
	}
	u := say(t, s, "The clock", 8)
	after := sampled(p, roleRunner)
	if len(after) != 1 || slices.Contains(append(before, middle...), after[0]) || u.Text != want {
		t.Errorf("runner %v, %v, then %v; %q, want %q", before, middle, after, u.Text, want)
	}
	if w := warned(p, "runner-restarted"); len(w) != 1 {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

func TestAnotherContextAfterAnUnload(t *testing.T) {
	m := enginetest.TinyModel(t)
	s, p := loadedSession(t, m)
	old := sampled(p, roleRunner)
	if err := s.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := sampled(p, roleRunner); len(now) != 0 || child.Alive(old[0]) || len(sampled(p, roleServer)) != 1 {
		t.Errorf("after the unload: runners %v, servers %v", now, sampled(p, roleServer))
	}
	m.Context = 128
	load(t, s, m)
	if now := sampled(p, roleRunner); len(now) != 1 || now[0] == old[0] || p.Engine().Policy["context"] != "128" {
		t.Errorf("runner %v after %v, context %s", now, old, p.Engine().Policy["context"])
	}
	_, err := s.Generate(t.Context(), engine.Request{Prompt: strings.Repeat("The third clock ", 50), MaxTokens: 4},
		func(record.Token) {})
	if fault.Of(err) != fault.PromptTooLong {
		t.Errorf("a prompt too long for the shorter context: %v", err)
	}
}

func TestACrashOfTheRunnerAlone(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	var pieces int
	u, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 500}, func(record.Token) {
		if pieces++; pieces == 3 {
			_ = syscall.Kill(sampled(p, roleRunner)[0], syscall.SIGKILL) // it is there
		}
	})
	if err == nil || engine.ClassOf(err) != record.Crash || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "runner crashed") {
		t.Errorf("class %s: %v", engine.ClassOf(err), err)
	}
	if u.Generated < 3 || len(u.Spans) != 2 {
		t.Errorf("what there was: %+v", u)
	}
	if _, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 1},
		func(record.Token) {}); err == nil {
		t.Error("the next generation gives no error: Ollama would load the model again, unasked and untold")
	}
	if err := s.Unload(t.Context()); err != nil {
		t.Errorf("Unload: %v", err)
	}
	load(t, s, c.Model)
	if u := say(t, s, c.Prompt, 8); u.Text != c.Text {
		t.Errorf("after another load: %q, want %q", u.Text, c.Text)
	}
}

// Who ended when all was measured has crashed all the same.
func TestCrashBetweenRequestsIsReported(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	for _, victim := range []struct {
		pid  func() int
		want string
	}{
		{func() int { return sampled(p, roleRunner)[0] }, "runner crashed while nothing was asked of it"},
		{func() int { return s.own.PID() }, "Ollama crashed (signal: killed) while nothing was asked of it"},
	} {
		pid := victim.pid()
		_ = syscall.Kill(pid, syscall.SIGKILL) // it is there
		for begin := time.Now(); child.Alive(pid) &&
			time.Since(begin) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
		}
		if pid == s.own.PID() {
			<-s.own.Done()
		}
		if err := s.Unload(t.Context()); engine.ClassOf(err) != record.Crash ||
			!strings.Contains(err.Error(), victim.want) {
			t.Errorf("Unload: %v, want %s", err, victim.want)
		}
		if err := s.Unload(t.Context()); err != nil {
			t.Errorf("told twice: %v", err)
		}
		if !s.own.Ended(0) {
			load(t, s, c.Model)
		}
	}
}

func TestAModelThatOllamaCantLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.gguf")
	whole, err := os.ReadFile(enginetest.TinyModel(t).Path)
	if err != nil {
		t.Fatal(err)
	}
	// Of an architecture that nobody knows, in as many letters.
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(whole), "llama", "lhama")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := opened(t, newEngine(t))
	err = s.Load(t.Context(), engine.Model{Path: path, Model: record.Model{Name: "bad", Format: "gguf", Context: 64}})
	if fault.Of(err) != fault.BadModel || engine.ClassOf(err) != record.BadModel ||
		strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "lhama") {
		t.Errorf("class %s, class %s: %v", engine.ClassOf(err), fault.Of(err), err)
	}
	load(t, s, enginetest.TinyModel(t)) // the server is as good as it was
}

func TestAContextThatNoMachineHasRoomFor(t *testing.T) {
	m := enginetest.TinyModel(t)
	m.Context = 1 << 30 // half a TiB of keys and values
	s, _ := opened(t, newEngine(t))
	err := s.Load(t.Context(), m)
	if engine.ClassOf(err) != record.OOM || strings.Contains(err.Error(), "\n") {
		t.Errorf("class %s: %v", engine.ClassOf(err), err)
	}
}

// A server that runs already is left as it was found.
func TestAServerThatRunsAlready(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	theirs, _ := opened(t, newEngine(t))
	o := newEngine(t, func(c *Config) { c.URL = theirs.client.Base })
	if caps := o.Caps(); caps.Isolation != record.OfServer || !caps.Served {
		t.Errorf("%+v", caps)
	}
	if err := o.Check(t.Context(), c.Model); err != nil {
		t.Fatal(err)
	}
	s, p := opened(t, o)
	if w := warned(p, "already-running"); len(w) != 1 || len(sampled(p, roleServer)) != 1 {
		t.Errorf("warnings %q, servers %v", p.Warnings(), sampled(p, roleServer))
	}
	load(t, s, c.Model)
	if u := say(t, s, c.Prompt, 8); u.Text != c.Text || u.CachedTokens != record.CacheUnknown {
		t.Errorf("%q with %d tokens from a cache, want %q and that nobody tells", u.Text, u.CachedTokens, c.Text)
	}
	if d := p.Device(); d == nil || d.Class != record.CPU {
		t.Errorf("device %+v", d)
	}
	if info := p.Engine(); len(info.SHA256) != 64 || info.Policy["context"] != "1024" ||
		info.Policy["threads"] != "1" || len(info.Args) != 0 {
		t.Errorf("%+v", info)
	}
	if len(sampled(p, roleRunner)) != 1 || len(warned(p, "cache-untold")) != 1 {
		t.Errorf("runners %v, warnings %q", sampled(p, roleRunner), p.Warnings())
	}
	name := now(s).name
	t.Run("its own models", func(t *testing.T) {
		served := engine.Model{Model: record.Model{Name: name, Format: record.Served}}
		if err := o.Check(t.Context(), served); err != nil {
			t.Errorf("Check: %v", err)
		}
		served.Name = "nobodys:7b"
		err := o.Check(t.Context(), served)
		if fault.Of(err) != fault.ServerUnreachable || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("a model that it has not: %v", err)
		}
		other, p := opened(t, o)
		if pids := sampled(p, roleRunner); len(pids) != 0 {
			t.Errorf("runners %v are sampled before it is known whose model they hold", pids)
		}
		load(t, other, engine.Model{Model: record.Model{Name: name, Format: record.Served, Context: 1024}})
		if pids := sampled(p, roleRunner); len(warned(p, "already-loaded")) != 1 || len(pids) != 1 ||
			pids[0] != int(now(other).runner.Load()) {
			t.Errorf("warnings: %q; runners %v, ours is %d", p.Warnings(), pids, now(other).runner.Load())
		}
		if u := say(t, other, c.Prompt, 8); u.Text != c.Text {
			t.Errorf("%q, want %q", u.Text, c.Text)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if held, err := theirs.client.loaded(t.Context()); err != nil || len(held) != 1 {
			t.Errorf("a model that was in memory before is there no more: %v, %v", held, err)
		}
	})
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	tags, err := theirs.client.tags(soon)
	held, err2 := theirs.client.loaded(soon)
	if err != nil || err2 != nil || len(tags) != 0 || len(held) != 0 {
		t.Errorf("left behind in the server: models %v, in memory %v; %v %v", tags, held, err, err2)
	}
}

func TestWhatALoadTellsOfMemory(t *testing.T) {
	s, p := loadedSession(t, enginetest.TinyModel(t))
	held := say(t, s, "The clock", 8).PromptTokens + 8 - 1
	values := map[string]float64{}
	for _, s := range p.Attached() {
		r := record.NewSample()
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Values {
			values[s.Describe().Method+" "+v.Name] = v.Value
		}
	}
	// 1024 places of f16 in two layers of two heads of 32; weights as the file has them, to the log's hundredth of a
	// MiB.
	if kv := values["engine_log kv_reserved_bytes"]; kv != 1024*2*2*2*32*2 {
		t.Errorf("the log tells of a KV cache of %g bytes", kv)
	}
	if kv := values["engine_log kv_used_bytes"]; kv != float64(held*2*2*2*32*2) {
		t.Errorf("%g bytes of the KV cache are in use, want those of %d tokens", kv, held)
	}
	if w := values["engine_log weights_bytes"]; w < 1.6*record.MiB || w > 1.7*record.MiB {
		t.Errorf("the log tells of weights of %g bytes", w)
	}
	if size, vram := values["api_ps size_bytes"], values["api_ps size_vram_bytes"]; size < record.MiB || vram != 0 {
		t.Errorf("/api/ps tells of %g bytes, %g of them on a GPU", size, vram)
	}
}

// A port that another has: the server ends, and a second one is tried.
func TestAPortThatIsTaken(t *testing.T) {
	o := newEngine(t)
	b, err := o.binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, _ := opened(t, o)
	second, err := startServer(o.config, b, &enginetest.Probe{}, first.own.port)
	if err != nil {
		t.Fatal(err)
	}
	defer second.stop()
	if _, err := second.ready(t.Context()); !errors.Is(err, child.ErrPortTaken) {
		t.Errorf("got %v, want %v", err, child.ErrPortTaken)
	}
}

func writeRandom(path string, spec tiny.Spec) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := tiny.WriteRandom(f, spec); err != nil {
		return err
	}
	return f.Close()
}

func TestMemoryThatCantBeSeenIsSaidToBeSo(t *testing.T) {
	s, p := opened(t, newEngine(t))
	for text, want := range map[string]string{"http://192.0.2.1:11434": "another machine",
		"127.0.0.1:9": "nobody listens at 127.0.0.1:9"} {
		u, err := ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		before := len(p.Attached())
		if _, _, seen := s.see(address{u}); seen || len(p.Attached()) != before {
			t.Errorf("%s: its processes are sampled", text)
		}
		w := warned(p, "memory-unseen")
		if last := w[len(w)-1]; !strings.Contains(last, want) || !strings.Contains(last, text) {
			t.Errorf("%s: %q", text, last)
		}
	}
}
