package ollama

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

func TestMain(m *testing.M) { childtest.Main(m) }

func opened(t testing.TB, o *Ollama) (*session, *enginetest.Probe) {
	t.Helper()
	s, p := enginetest.Open(t, o)
	return s.(*session), p
}

func loadedSession(t testing.TB, m models.Model) (*session, *enginetest.Probe) {
	t.Helper()
	s, p := opened(t, newEngine(t))
	enginetest.Load(t, s, m)
	return s, p
}

// now returns the model that a session has loaded.
func now(s *session) *loaded {
	l, _ := s.model.Now() // a model is loaded
	return l
}

// say generates a text.
func say(t testing.TB, s *session, prompt string, n int) record.Usage {
	t.Helper()
	u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: n}, func(record.Token) {})
	check.Err(t, err)
	return u
}

// TestReference compares every prompt with an implementation that shares no code with Ollama.
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
	// Ollama generates tokens of this model faster than it delivers them.
	if w := p.Warnings(); len(w) != len(p.Warned("times-differ")) {
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

// Ollama counts cached tokens as evaluated; its log does not. By default no token comes from the cache.
func TestCachedTokensAreReported(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, _ := loadedSession(t, c.Model)
	say(t, s, c.Prompt, 8)
	s.config.PromptCache = true // no other text is generated first
	u := say(t, s, c.Prompt, 8)
	s.config.PromptCache = false
	if all := len(c.PromptIDs); u.CachedTokens != all-1 || u.PromptTokens != all ||
		u.Reported["prompt_eval_count"] != float64(all) {
		t.Errorf("of %d tokens %d were cached, and Ollama counts %g evaluated; want all but one, and all", all, u.CachedTokens,
			u.Reported["prompt_eval_count"])
	}
	if u := say(t, s, c.Prompt, 8); u.CachedTokens != 0 {
		t.Errorf("%d tokens came from the cache although another text was generated first", u.CachedTokens)
	}
}

// A BOS, with which all prompts of a model begin, stays in the cache.
func TestBOSStaysInCache(t *testing.T) {
	m := random(t, "bos")
	m.Context = 256
	s, _ := loadedSession(t, m)
	for i := range 2 {
		u := say(t, s, "The third clock had stopped.", 4)
		if u.CachedTokens != 1 {
			t.Errorf("generation %d took %d tokens from the cache, want 1", i, u.CachedTokens)
		}
	}
}

// Other options make Ollama restart its runner. The new one is sampled, and there is a warning.
func TestRestartedRunnerIsSampled(t *testing.T) {
	m := enginetest.TinyModel(t)
	s, p := loadedSession(t, m)
	before := p.PIDs(roleRunner)
	if len(before) != 1 || len(p.PIDs(roleServer)) != 1 {
		t.Fatalf("sampled: runners %v, servers %v", before, p.PIDs(roleServer))
	}
	want := say(t, s, "The clock", 8).Text
	other := generate{Model: now(s).name, Prompt: "x", Raw: true,
		Options: map[string]any{"num_ctx": 256, "num_gpu": 0, "num_predict": 1}}
	_, err := s.client.whole(t.Context(), other)
	check.Err(t, err)
	s.family.tree.Look(t.Context())
	middle := p.PIDs(roleRunner)
	if len(middle) != 1 || middle[0] == before[0] {
		t.Errorf("runner %v, then %v", before, middle)
	}
	u := say(t, s, "The clock", 8)
	after := p.PIDs(roleRunner)
	if len(after) != 1 || slices.Contains(append(before, middle...), after[0]) || u.Text != want {
		t.Errorf("runner %v, %v, then %v; %q, want %q", before, middle, after, u.Text, want)
	}
	if w := p.Warned("runner-restarted"); len(w) != 1 {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

func TestRunnerCrash(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	var pieces int
	u, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 500}, func(record.Token) {
		if pieces++; pieces == 3 {
			_ = check.Kill(p.PIDs(roleRunner)[0])
		}
	})
	enginetest.OneLine(t, err, fault.Run, record.Crash, "runner crashed")
	if u.Generated < 3 || len(u.Spans) != 2 {
		t.Errorf("usage %+v", u)
	}
	if _, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 1},
		func(record.Token) {}); err == nil {
		t.Error("the next generation returns no error: Ollama would silently reload the model")
	}
	check.Also(t, s.Unload(t.Context()))
	enginetest.Load(t, s, c.Model)
	if u := say(t, s, c.Prompt, 8); u.Text != c.Text {
		t.Errorf("after another load: %q, want %q", u.Text, c.Text)
	}
}

// A process that died after the last request has crashed, too.
func TestCrashBetweenRequestsIsReported(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	s, p := loadedSession(t, c.Model)
	for _, victim := range []struct {
		pid  func() int
		want string
	}{
		{func() int { return p.PIDs(roleRunner)[0] }, "runner crashed between requests"},
		{func() int { return s.own.PID() }, "Ollama crashed between requests"},
	} {
		pid := victim.pid()
		_ = check.Kill(pid)
		for begin := time.Now(); child.Alive(pid) &&
			time.Since(begin) < 2*time.Minute; time.Sleep(5 * time.Millisecond) {
		}
		if pid == s.own.PID() {
			<-s.own.Done()
		}
		enginetest.OneLine(t, s.Unload(t.Context()), fault.Run, record.Crash, victim.want)
		check.Also(t, s.Unload(t.Context())) // not reported twice
		if !s.own.Ended(0) {
			enginetest.Load(t, s, c.Model)
		}
	}
}

func TestModelThatOllamaCannotLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.gguf")
	whole := check.Read(t, enginetest.TinyModel(t).Path)
	// an unknown architecture of the same length
	check.Err(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(whole), "llama", "lhama")), 0o600))
	s, _ := opened(t, newEngine(t))
	err := s.Load(t.Context(), models.Model{Path: path, Model: record.Model{Name: "bad", Format: "gguf", Context: 64}})
	enginetest.OneLine(t, err, fault.BadModel, record.BadModel, "lhama")
	enginetest.Load(t, s, enginetest.TinyModel(t)) // the server still works
}

func TestHugeContext(t *testing.T) {
	m := enginetest.TinyModel(t)
	m.Context = 1 << 30 // KV cache of half a TiB
	s, _ := opened(t, newEngine(t))
	enginetest.OneLine(t, s.Load(t.Context(), m), fault.Run, record.OOM)
}

// A running server is left as it was found.
func TestRunningServer(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	theirs, _ := opened(t, newEngine(t))
	o := newEngine(t, func(c *Config) { c.URL = theirs.client.Base })
	if caps := o.Caps(); caps.Isolation != record.OfServer || !caps.Served {
		t.Errorf("%+v", caps)
	}
	check.Err(t, o.Check(t.Context(), c.Model))
	s, p := opened(t, o)
	if w := p.Warned("already-running"); len(w) != 1 || len(p.PIDs(roleServer)) != 1 {
		t.Errorf("warnings %q, servers %v", p.Warnings(), p.PIDs(roleServer))
	}
	enginetest.Load(t, s, c.Model)
	if u := say(t, s, c.Prompt, 8); u.Text != c.Text || u.CachedTokens != record.CacheUnknown {
		t.Errorf("%q with %d cached tokens, want %q with an unknown number", u.Text, u.CachedTokens, c.Text)
	}
	if d := p.Device(); d == nil || d.Class != record.CPU {
		t.Errorf("device %+v", d)
	}
	if info := p.Engine(); len(info.SHA256) != 64 || info.Policy["context"] != "1024" ||
		info.Policy["threads"] != "1" || len(info.Args) != 0 {
		t.Errorf("%+v", info)
	}
	if len(p.PIDs(roleRunner)) != 1 || len(p.Warned("cache-untold")) != 1 {
		t.Errorf("runners %v, warnings %q", p.PIDs(roleRunner), p.Warnings())
	}
	name := now(s).name
	t.Run("model on the server", func(t *testing.T) {
		served := models.Model{Model: record.Model{Name: name, Format: record.Served}}
		check.Also(t, o.Check(t.Context(), served))
		other, p := opened(t, o)
		if pids := p.PIDs(roleRunner); len(pids) != 0 {
			t.Errorf("runners %v are sampled before it is known which model they hold", pids)
		}
		enginetest.Load(t, other, models.Model{Model: record.Model{Name: name, Format: record.Served, Context: 1024}})
		if pids := p.PIDs(roleRunner); len(p.Warned("already-loaded")) != 1 || len(pids) != 1 ||
			pids[0] != int(now(other).runner.Load()) {
			t.Errorf("warnings: %q; runners %v, ours is %d", p.Warnings(), pids, now(other).runner.Load())
		}
		if u := say(t, other, c.Prompt, 8); u.Text != c.Text {
			t.Errorf("%q, want %q", u.Text, c.Text)
		}
		check.Also(t, other.Close())
		if held, err := theirs.client.loaded(t.Context()); err != nil || len(held) != 1 {
			t.Errorf("a model that was loaded before is no longer loaded: %v, %v", held, err)
		}
	})
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	check.Also(t, s.Close())
	tags, err := theirs.client.tags(soon)
	held, err2 := theirs.client.loaded(soon)
	if err != nil || err2 != nil || len(tags) != 0 || len(held) != 0 {
		t.Errorf("left on the server: models %v, loaded %v; %v %v", tags, held, err, err2)
	}
}

func TestMemorySources(t *testing.T) {
	s, p := loadedSession(t, enginetest.TinyModel(t))
	held := say(t, s, "The clock", 8).PromptTokens + 8 - 1
	log, api := p.Values(t, "engine_log"), p.Values(t, "api_ps")
	// 1,024 cells × 2 layers × 2 (K and V) × 2 heads × 32 × 2 bytes; weights as in the file, to 0.01 MiB
	if kv := log["kv_reserved_bytes"]; kv != 1024*2*2*2*32*2 {
		t.Errorf("KV cache of %g bytes", kv)
	}
	if kv := log["kv_used_bytes"]; kv != float64(held*2*2*2*32*2) {
		t.Errorf("%g bytes of the KV cache are used, want those of %d tokens", kv, held)
	}
	if w := log["weights_bytes"]; w < 1.6*record.MiB || w > 1.7*record.MiB {
		t.Errorf("weights of %g bytes", w)
	}
	if size, vram := api["size_bytes"], api["size_vram_bytes"]; size < record.MiB || vram != 0 {
		t.Errorf("/api/ps reports %g bytes, %g of them on a GPU", size, vram)
	}
}

func TestPortTaken(t *testing.T) {
	o := newEngine(t)
	b, err := o.binary(t.Context())
	check.Err(t, err)
	first, _ := opened(t, o)
	_, at, _ := strings.Cut(first.own.address, ":")
	port, err := strconv.Atoi(at)
	check.Err(t, err)
	second, err := startServer(o.config, b, &enginetest.Probe{}, port)
	check.Err(t, err)
	defer second.stop()
	if _, err := second.ready(t.Context()); !errors.Is(err, child.ErrPortTaken) {
		t.Errorf("%v, want %v", err, child.ErrPortTaken)
	}
}

func newEngine(t testing.TB, change ...func(*Config)) *Ollama {
	t.Helper()
	c := Config{Cache: cache.Dir(os.Getenv), Threads: 1}
	for _, f := range change {
		f(&c)
	}
	if c.URL != "" && c.Cache == cache.Dir(os.Getenv) {
		c.Cache = t.TempDir() // for notes about models on that server
	}
	return New(c)
}

// The reference's KV cache is f32, Ollama's f16, so texts differ where two tokens are close. The first 16 do not.
func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.New = func(t *testing.T) engine.Engine { return newEngine(t) }
	enginetest.Run(t, c)
}

func TestSlotsConformance(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.Slots = 3
	c.New = func(t *testing.T) engine.Engine { return newEngine(t, func(o *Config) { o.Slots = c.Slots }) }
	enginetest.Run(t, c)
}

// The server is started outside the engine, once per launch.
func TestConformanceOfRunningServer(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.New = func(t *testing.T) engine.Engine {
		theirs, _ := opened(t, newEngine(t))
		return newEngine(t, func(c *Config) { c.URL = theirs.client.Base })
	}
	enginetest.Run(t, c)
}

// With a prompt cache, earlier turns come from the cache, and the log says how many tokens. Without, they do not.
func TestPromptCache(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, c := range []struct {
		keeps bool
		slots int
	}{{false, 1}, {true, 1}, {true, 2}} {
		s, _ := opened(t, newEngine(t, func(o *Config) { o.PromptCache, o.Slots = c.keeps, c.slots }))
		check.Err(t, s.Load(t.Context(), m))
		said, asked := "", 0
		for turn := range 3 {
			prompt := said + "Tell me more of the small model. "
			u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: 12}, func(record.Token) {})
			check.Err(t, err)
			if c.keeps && u.CachedTokens < asked-1 || !c.keeps && (u.CachedTokens < 0 || u.CachedTokens > 1) {
				t.Errorf("%+v: turn %d: %d of %d tokens cached; the previous turn had %d", c, turn+1,
					u.CachedTokens, u.PromptTokens, asked)
			}
			said, asked = prompt+u.Text, u.PromptTokens
		}
		check.Also(t, s.Close())
	}
}
