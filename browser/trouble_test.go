package browser

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/tiny/reference"
)

const troublePrompt = "How long does it take to walk from the house to the station?"

// trouble is what goes wrong in one launch, and what the record must say of it.
type trouble struct {
	name   string
	class  record.Class // empty: the launch succeeds
	say    string
	or     string // what it may say as well
	config func(*Config)
	server func(w http.ResponseWriter, r *http.Request, next http.Handler) // what answers for a shard of weights
	load   func(*testing.T, *session)                                      // just before the load
	token  func(*testing.T, *session)                                      // at the third token
	// WebLLM says nothing else of it than of another one
	again bool
}

const fillHeap = "(() => { const a = []; for (;;) a.push(new Array(1e5).fill({})); })()"

// troubles come in runs, each of which goes on to its end.
var troubles = map[string][]trouble{
	"processes and downloads": {
		{name: "renderer killed", class: record.Crash, say: "renderer process ended (killed)", token: kill("renderer")},
		{name: "GPU process killed", class: record.DeviceLost, say: "device is lost", token: kill("gpu-process")},
		{name: "browser killed", class: record.Crash, say: "browser ended unexpectedly", token: kill("browser")},
		{name: "weights are missing", class: record.Download, say: "Request failed",
			server: replies(http.StatusNotFound)},
		{name: "the server fails", class: record.Download, say: "Request failed",
			server: replies(http.StatusInternalServerError), again: true},
		{name: "the download is cut", class: record.Download, say: "network error", server: cut},
		{name: "half a shard", class: record.Download, say: "exceeds shard size",
			server: changed(func(b []byte) []byte { return b[:len(b)/2] })},
		{name: "wrong bytes on the way", class: record.BadOutput, say: "the model says", server: changed(scrambled)},
		{name: "nothing"},
	},
	"threads": {
		{name: "heap full", class: record.OOM, say: "memory ran out", load: says(fillHeap),
			config: with(PageThread, "js-flags=--max-old-space-size=60")},
		// of its process, where the worker is not ended in time
		{name: "worker's heap full", class: record.OOM, say: "worker ended unexpectedly", or: "memory ran out",
			load: says(fillHeap), config: with(WorkerThread, "js-flags=--max-old-space-size=60")},
		{name: "page hung", class: record.Hung, say: "the page hangs", load: hang, config: impatient(PageThread)},
		{name: "worker hung", class: record.Hung, say: "the worker hangs", load: hang, config: impatient(WorkerThread)},
	},
}

// Whatever goes wrong in a launch is in the record with its class, and the launches after it are as good as any.
func TestTroubleIsRecordedWithItsClass(t *testing.T) {
	for name, list := range troubles {
		t.Run(name, func(t *testing.T) {
			list := slices.DeleteFunc(slices.Clone(list), func(x trouble) bool { return x.again && !thorough })
			r, err := provoke(t, list, time.Minute)
			if engine.ClassOf(err) != list[0].class {
				t.Errorf("the run says %v, want the first launch's error", err)
			}
			if len(r.Attempts) != len(list) {
				t.Fatalf("%d launches, want %d", len(r.Attempts), len(list))
			}
			for i, x := range list {
				x.check(t, r.Attempts[i])
			}
		})
	}
	t.Run("a download that stands still", func(t *testing.T) {
		x := trouble{class: record.Timeout, say: "took longer than 4s",
			server: func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }}
		r, _ := provoke(t, []trouble{x}, 4*time.Second)
		x.check(t, r.Attempts[0])
	})
	t.Run("no WebGPU", func(t *testing.T) {
		x := trouble{class: record.SetUp, say: "no WebGPU adapter",
			config: func(c *Config) {
				c.Adapter, c.Launch.Flags = SwiftShader,
					[]string{"disable-software-rasterizer"}
			}}
		r, err := provoke(t, []trouble{x, x}, time.Minute)
		if fault.Of(err) != fault.NoAdapter || len(r.Attempts) != 1 { // no second launch would find one either
			t.Errorf("%d launches, class %s of %v", len(r.Attempts), fault.Of(err), err)
		}
		x.check(t, r.Attempts[0])
	})
}

func with(thread Thread, flags ...string) func(*Config) {
	return func(c *Config) { c.Thread, c.Launch.Flags = thread, flags }
}

// impatient is a configuration with a short-tempered watchdog.
func impatient(thread Thread) func(*Config) {
	return func(c *Config) { c.Thread, c.Watchdog = thread, time.Second }
}

// provoke runs a launch for each trouble.
func provoke(t *testing.T, list []trouble, timeout time.Duration) (*record.Run, error) {
	t.Helper()
	c, m := tinyModel(t)
	w := &troubled{WebLLM: New(c), t: t, list: list}
	// each launch has a time-out of its own
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(list)+1)*time.Minute)
	defer cancel()
	dir, failed := run.Do(ctx, run.Options{Out: t.TempDir(),
		Parts: run.Parts{Engines: []engine.Engine{w}, Model: m, Expected: known(t, m)},
		Plan: plan.Plan{Name: "trouble", Engines: []string{w.Name()}, Prompts: []string{troublePrompt}, MaxTokens: 24,
			Context: window, Repetitions: len(list),
			Warmup: plan.Warmup{Tokens: 1}, Timeout: plan.Duration(timeout)}})
	r, err := record.Open(dir)
	if err != nil {
		t.Fatalf("%v; the run says %v", err, failed)
	}
	return r, failed
}

func (x trouble) check(t *testing.T, a *record.Attempt) {
	t.Helper()
	t.Logf("%s: %s: %s", x.name, a.Class, a.Error)
	said := strings.Contains(a.Error, x.say) || x.or != "" && strings.Contains(a.Error, x.or)
	if a.Class != x.class || !said || strings.Contains(a.Error, "\n") {
		t.Errorf("%s: class %q, error %q, want one line of class %q with %q", x.name, a.Class, a.Error, x.class, x.say)
	}
	if ok := x.class == ""; ok != a.Counted() {
		t.Errorf("%s: counted: %v", x.name, a.Counted())
	}
}

// known is what the tiny model says to the prompt.
func known(t *testing.T, m engine.Model) map[string][]int {
	tokens, model, err := reference.Open(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	ids, _, err := model.Greedy(tokens.Encode(troublePrompt), 24)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]int{troublePrompt: ids}
}

// troubled is WebLLM that has another trouble in every launch.
type troubled struct {
	*WebLLM
	t    *testing.T
	list []trouble
}

func (w *troubled) Open(ctx context.Context, probe engine.Probe) (engine.Session, error) {
	x := w.list[0]
	w.list = w.list[1:]
	config := w.config
	if x.config != nil {
		x.config(&config)
	}
	one := New(config)
	chrome, err := FindChrome("")
	if err != nil {
		return nil, err
	}
	bundle, err := page.Bundle()
	if err != nil {
		return nil, err
	}
	server, err := serve(page.Files(), bundle)
	if err != nil {
		return nil, err
	}
	end := func() {}
	if x.server != nil {
		end = interpose(w.t, server, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.Contains(r.URL.Path, "params_shard_") {
				x.server(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	s, err := one.open(ctx, probe, server, chrome, sha256Of(bundle))
	if err != nil {
		end()
		return nil, err
	}
	return &troubledSession{s.(*session), w.t, x, end}, nil
}

// interpose puts another server before ours, which answers in its own way.
func interpose(t *testing.T, s *server, answers func(http.ResponseWriter, *http.Request, http.Handler)) (end func()) {
	ours, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	token := ours.Path
	ours.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(ours)
	transport := &http.Transport{}
	proxy.Transport = transport
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers(w, r, proxy)
	}))
	s.base = front.URL + token
	return func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	}
}

type troubledSession struct {
	*session
	t   *testing.T
	x   trouble
	end func()
}

func (s *troubledSession) Load(ctx context.Context, m engine.Model) error {
	if s.x.load != nil {
		s.x.load(s.t, s.session)
	}
	return s.session.Load(ctx, m)
}

func (s *troubledSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	u, err := s.session.Generate(ctx, r, func(tok record.Token) {
		token(tok)
		if tok.Index == 2 && s.x.token != nil {
			s.x.token(s.t, s.session)
		}
	})
	if err != nil { // from here on every call fails in the same way, and none waits for an answer
		if after := s.session.Unload(ctx); engine.ClassOf(after) != s.x.class {
			s.t.Errorf("%s: Unload: %v, want class %s", s.x.name, after, s.x.class)
		}
	}
	return u, err
}

func (s *troubledSession) Close() error {
	err := s.session.Close()
	s.end()
	return err
}

func kill(role string) func(*testing.T, *session) {
	return func(t *testing.T, s *session) {
		roles, err := s.tab.roles(t.Context())
		if err != nil {
			t.Error(err)
		}
		for pid, r := range roles {
			if r == role {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// says has something evaluated where the engine runs, which must not succeed.
func says(expression string) func(*testing.T, *session) {
	return func(t *testing.T, s *session) {
		if _, err := call[any](t.Context(), s.tab, expression); err == nil {
			t.Errorf("%s came to an end", expression)
		}
	}
}

// hang lets the event loop of the engine's thread stand still.
func hang(t *testing.T, s *session) {
	go func() { _, _ = call[any](t.Context(), s.tab, "for (;;);") }() // fails with the session
}

func replies(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(status) }
}

// cut ends the connection in the middle of a file.
func cut(w http.ResponseWriter, r *http.Request, next http.Handler) {
	whole := httptest.NewRecorder()
	next.ServeHTTP(whole, r)
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2]) // fails if the browser has gone
	panic(http.ErrAbortHandler)
}

// changed sends a file that is not the one on disk, and is whole as far as HTTP knows.
func changed(change func([]byte) []byte) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, r)
		for name, values := range whole.Header() {
			w.Header()[name] = values
		}
		body := change(whole.Body.Bytes())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.Copy(w, bytes.NewReader(body)) // fails if the browser has gone
	}
}

// scrambled turns the weights round: every number is sound, and none is where it was.
func scrambled(b []byte) []byte {
	out := make([]byte, len(b))
	for i := 0; i+4 <= len(b); i += 4 {
		copy(out[len(b)-i-4:], b[i:i+4])
	}
	return out
}

// What is on disk is looked at before it is sent: WebLLM itself would take anything.
func TestWeightsThatHaveChangedOnDiskAreNotLoaded(t *testing.T) {
	c, m := tinyModel(t)
	p := copyOf(t, files.pack)
	c.Package = packaged(p)
	w := New(c)
	shard := filepath.Join(p.Dir, "params_shard_0.bin")
	right, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Prepare(watched(t), m, func(string) {}); err != nil {
		t.Fatal(err)
	}
	for say, b := range map[string][]byte{"has other bytes than its list says": scrambled(right),
		"bytes, and its list says": right[:len(right)/2]} {
		if err := os.WriteFile(shard, b, 0o600); err != nil {
			t.Fatal(err)
		}
		err := w.intact(watched(t), p)
		if engine.ClassOf(err) != record.Download || !strings.Contains(err.Error(), say) {
			t.Errorf("error %v of class %s, want %s: %s", err, engine.ClassOf(err), record.Download, say)
		}
		if err := w.Prepare(watched(t), m, func(string) {}); err == nil || !strings.Contains(err.Error(), "again") {
			t.Errorf("Prepare: %v, want what to do", err)
		}
	}
}
