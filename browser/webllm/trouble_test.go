package webllm

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/record"
)

const troublePrompt = "How long does it take to walk from the house to the station?"

// trouble is a failure in one launch and its record.
type trouble struct {
	name   string
	class  record.Class // empty: success
	say    string
	config Config
	server answers                    // for shards of weights
	token  func(*testing.T, *session) // at the third token
}

// Each failure of a launch is recorded with its class, and later launches succeed.
func TestFailuresAreRecordedWithTheirClass(t *testing.T) {
	list := []trouble{
		{name: "renderer killed", class: record.Crash, say: "renderer process ended (killed)", token: kill("renderer")},
		{name: "GPU process killed", class: record.DeviceLost, say: "device was lost", token: kill("gpu-process")},
		{name: "wrong bytes on the way", class: record.BadOutput, say: "instead of", server: changed(scrambled)},
		{name: "nothing"},
	}
	if err := provoke(t, list, launchLimit, len(list)); engine.ClassOf(err) != list[0].class {
		t.Errorf("the run returned %v instead of the first launch's error", err)
	}
	still := trouble{name: "a download that stands still", class: record.Timeout, say: "time limit of 4s",
		server: func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }}
	provoke(t, []trouble{still}, 4*time.Second, 1)
	none := trouble{name: "no WebGPU", class: record.SetUp, say: "no WebGPU adapter", config: Config{
		Settings: browser.Settings{Adapter: "swiftshader",
			Launch: browser.Launch{Flags: []string{"disable-software-rasterizer"}}}}}
	// a second launch would not find one either
	if err := provoke(t, []trouble{none, none}, launchLimit, 1); fault.Of(err) != fault.NoAdapter {
		t.Errorf("class %s of %v", fault.Of(err), err)
	}
}

// launchLimit is longer than a launch takes on a busy machine.
const launchLimit = 5 * time.Minute

// provoke runs a launch for each trouble, up to launches, and returns the run's error.
func provoke(t *testing.T, list []trouble, timeout time.Duration, launches int) error {
	t.Helper()
	m := tinyModel(t)
	w := &troubled{WebLLM: packed(t, Config{}), t: t, list: list}
	// each launch has its own timeout
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(list)+1)*launchLimit)
	defer cancel()
	// A score check would be a launch of its own, without a trouble.
	cells, err := plan.Plan{Name: "trouble", Engines: []string{w.Name()}, Prompts: plan.Texts(troublePrompt),
		MaxTokens: 24, Context: window, Repetitions: len(list), Check: new(false),
		Warmup: plan.Warmup{Tokens: 1}, Timeout: plan.Duration(timeout)}.Expand()
	check.Err(t, err)
	dir, failed := run.Do(ctx, run.Options{Out: t.TempDir(), Matrix: cells,
		Open: func(context.Context, *plan.Setup) (run.Parts, error) {
			return run.Parts{Engines: []engine.Engine{w}, Model: m, Expected: known(t, m)}, nil
		}})
	r, err := record.Open(dir)
	if err != nil {
		t.Fatalf("%v; the run returned %v", err, failed)
	}
	if len(r.Attempts) != launches {
		t.Fatalf("%d launches, want %d: %v", len(r.Attempts), launches, failed)
	}
	for i, a := range r.Attempts {
		list[i].check(t, a)
	}
	return failed
}

func (x trouble) check(t *testing.T, a *record.Attempt) {
	t.Helper()
	t.Logf("%s: %s: %s", x.name, a.Class, a.Error)
	if a.Class != x.class || !strings.Contains(a.Error, x.say) || strings.Contains(a.Error, "\n") {
		t.Errorf("%s: class %q, error %q, want one line of class %q with %q", x.name, a.Class, a.Error, x.class, x.say)
	}
	if ok := x.class == ""; ok != a.Counted() {
		t.Errorf("%s: counted: %v", x.name, a.Counted())
	}
}

// known is the tiny model's answer to the prompt.
func known(t *testing.T, m models.Model) map[string][]int {
	tokens, model, err := reference.Open(m.Path)
	check.Err(t, err)
	ids, _, err := model.Greedy(tokens.Encode(troublePrompt), 24)
	check.Err(t, err)
	return map[string][]int{troublePrompt: ids}
}

// troubled is WebLLM with another trouble in every launch.
type troubled struct {
	*WebLLM
	t    *testing.T
	list []trouble
}

// OpenFor hides that of WebLLM.
func (w *troubled) OpenFor(ctx context.Context, _ models.Model, probe engine.Probe) (engine.Session, error) {
	x := w.list[0]
	w.list = w.list[1:]
	between := answering(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if x.server == nil || !strings.Contains(r.URL.Path, "params_shard_") {
			next.ServeHTTP(w, r)
			return
		}
		x.server(w, r, next)
	})
	s, err := opened(ctx, packed(w.t, x.config), probe, between)
	if err != nil {
		return nil, err
	}
	return &troubledSession{s, w.t, x}, nil
}

// answers replaces the server's answer to a request.
type answers func(w http.ResponseWriter, r *http.Request, next http.Handler)

// answering calls answer before the server.
func answering(with answers) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { with(w, r, next) })
	}
}

// shards answers for weight shards in shared sessions; nil: the server does.
var shards atomic.Pointer[answers]

func asServed(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if with := shards.Load(); with != nil && *with != nil && strings.Contains(r.URL.Path, "params_shard_") {
		(*with)(w, r, next)
		return
	}
	next.ServeHTTP(w, r)
}

type troubledSession struct {
	*session
	t *testing.T
	x trouble
}

func (s *troubledSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	u, err := s.session.Generate(ctx, r, func(tok record.Token) {
		token(tok)
		if tok.Index == 2 && s.x.token != nil {
			s.x.token(s.t, s.session)
		}
	})
	if err != nil { // all further calls fail in the same way, without waiting
		if after := s.session.Unload(ctx); engine.ClassOf(after) != s.x.class {
			s.t.Errorf("%s: Unload: %v, want class %s", s.x.name, after, s.x.class)
		}
	}
	return u, err
}

func kill(role string) func(*testing.T, *session) {
	return func(t *testing.T, s *session) {
		roles, err := s.Roles(t.Context())
		check.Also(t, err)
		for pid, r := range roles {
			if r == role {
				check.Also(t, check.Kill(pid))
			}
		}
	}
}

func replies(status int) answers {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(status) }
}

// served returns the server's answer; its headers are set.
func served(w http.ResponseWriter, r *http.Request, next http.Handler) []byte {
	whole := httptest.NewRecorder()
	next.ServeHTTP(whole, r)
	maps.Copy(w.Header(), whole.Header())
	return whole.Body.Bytes()
}

// cut ends the connection in the middle of a file.
func cut(w http.ResponseWriter, r *http.Request, next http.Handler) {
	whole := served(w, r, next)
	_, _ = w.Write(whole[:len(whole)/2]) // fails if the browser has gone
	panic(http.ErrAbortHandler)
}

// changed sends a modified file, which HTTP cannot detect.
func changed(change func([]byte) []byte) answers {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := change(served(w, r, next))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.Copy(w, bytes.NewReader(body)) // fails if the browser has gone
	}
}

// scrambled rotates the weights: every number is valid, but in the wrong place.
func scrambled(b []byte) []byte {
	out := make([]byte, len(b))
	for i := 0; i+4 <= len(b); i += 4 {
		copy(out[len(b)-i-4:], b[i:i+4])
	}
	return out
}

// Files are verified before they are served, because WebLLM would accept anything.
func TestChangedWeightsAreNotLoaded(t *testing.T) {
	m, w := tinyModel(t), packed(t, Config{})
	p := copyOf(t, files.pack)
	w.pack = packaged(p)
	shard := filepath.Join(p.Dir, "params_shard_0.bin")
	right := check.Read(t, shard)
	check.Err(t, w.Prepare(watched(t), m, quiet))
	for say, b := range map[string][]byte{"is damaged: its MD5 is": scrambled(right),
		"bytes, want": right[:len(right)/2]} {
		check.Err(t, os.WriteFile(shard, b, 0o600))
		err := w.intact(watched(t), p)
		if engine.ClassOf(err) != record.Download || !strings.Contains(err.Error(), say) {
			t.Errorf("error %v of class %s, want %s: %s", err, engine.ClassOf(err), record.Download, say)
		}
		if err := w.Prepare(watched(t), m, quiet); err == nil || !strings.Contains(err.Error(), "again") {
			t.Errorf("Prepare: %v, want advice", err)
		}
	}
}
