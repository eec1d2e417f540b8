package webllm

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

func TestMain(m *testing.M) {
	childtest.Browsers(m, func() error {
		return errors.Join(shared.close(), sharedIdle.close(), os.RemoveAll(files.dir))
	})
}

// window is the context of the tests' model.
const window = 512

// files is the tests' packaged model, in a folder that TestMain removes.
var files struct {
	dir  string
	pack Package
}

// tinyModel returns the tiny model, packaged once for all tests. Its library is cached or compiled.
func tinyModel(t testing.TB) models.Model {
	t.Helper()
	if files.pack.Dir == "" {
		var err error
		files.dir, err = os.MkdirTemp("", "browser-test-*")
		check.Err(t, err)
		files.pack, err = pack(files.dir, window, func(s string) { t.Log(s) })
		check.Err(t, err)
	}
	return models.Model{Path: filepath.Join(files.dir, "tiny.gguf"),
		Model: record.Model{Name: tiny.Name, Context: window}}
}

// packed returns the engine with the tests' model.
func packed(t testing.TB, c Config) *WebLLM {
	t.Helper()
	tinyModel(t)
	w := New(c, engine.Settings{})
	w.pack = packaged(files.pack)
	return w
}

// packaged uses an existing package.
func packaged(p Package) func(context.Context, models.Model, Target, func(string)) (Package, error) {
	return func(context.Context, models.Model, Target, func(string)) (Package, error) { return p, nil }
}

func pack(dir string, window int, say func(string)) (Package, error) {
	path := filepath.Join(dir, "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		return Package{}, err
	}
	return packFile(path, filepath.Join(dir, "package"), tiny.Name, window, say)
}

// packFile packages a GGUF with a library for the software adapter.
func packFile(path, dir, name string, window int, say func(string)) (Package, error) {
	ctx := context.Background()
	p, err := mlc.Write(ctx, path, dir, mlc.Options{ContextWindow: window})
	if err != nil {
		return Package{}, err
	}
	lib, err := modellib.Build(ctx, modellib.FindTools(cache.Dir(os.Getenv), os.Getenv), p.Shape,
		modellib.Variant{Kernels: SoftwareKernels, Sort: "partial"}, say)
	if err != nil {
		return Package{}, err
	}
	return Package{Dir: p.Dir,
		Library: Library{Path: lib.Path, Library: record.Library{Maker: record.Llmparity, SHA256: lib.SHA256,
			Kernels: SoftwareKernels}},
		ID: name, DType: F32,
		Context: p.Shape.ContextWindowSize, PrefillChunk: p.Shape.PrefillChunkSize}, nil
}

// session is a session with the engine and the server behind it.
type session struct {
	*browser.Session
	webllm *WebLLM
	site   *site
	has    bool // the tiny model was loaded
}

// opened opens a session with a filter between the page and its server.
func opened(ctx context.Context, w *WebLLM, probe engine.Probe, between func(http.Handler) http.Handler) (*session,
	error) {
	b, err := w.bundle(ctx, quiet)
	if err != nil {
		return nil, err
	}
	r, err := w.runtime(b)
	if err != nil {
		return nil, err
	}
	r.serve = between(r.site)
	s, err := w.start(ctx, r, models.Model{Path: filepath.Join(files.dir, "tiny.gguf")}, probe)
	if err != nil {
		return nil, err
	}
	return &session{Session: s, webllm: w, site: r.site}, nil
}

// lasting is a browser that tests share and that outlives them.
type lasting struct {
	session *session
	probe   *keeping
}

func (l *lasting) open(t *testing.T, c Config) *session {
	t.Helper()
	w := packed(t, c)
	if l.session == nil {
		l.probe = &keeping{}
		s, err := opened(context.Background(), w, l.probe, answering(asServed))
		check.Err(t, err)
		l.session = s
	}
	return l.session
}

func (l *lasting) close() error {
	if l.session == nil {
		return nil
	}
	return l.session.Close()
}

// shared is for tests that do not harm it, with the tiny model loaded; sharedIdle for tests that load models.
var shared, sharedIdle lasting

func loaded(t *testing.T) *session {
	t.Helper()
	s, m := shared.open(t, Config{}), tinyModel(t)
	if !s.has {
		check.Err(t, s.Load(watched(t), m))
		s.has = true
	}
	return s
}

// idle returns a session without a model in the shared browser. Its engine packages the tiny model again.
func idle(t *testing.T) (*session, *keeping) {
	t.Helper()
	s := sharedIdle.open(t, Config{Settings: browser.Settings{Adapter: string(browser.SwiftShader)}})
	s.webllm.pack = packaged(files.pack)
	clear(s.webllm.packages)
	check.Err(t, s.Unload(watched(t))) // also what a failed test left
	return s, sharedIdle.probe
}

// fresh opens a new browser.
func fresh(t *testing.T, c Config) (*session, *keeping) {
	t.Helper()
	var l lasting
	s := l.open(t, c)
	t.Cleanup(func() {
		check.Also(t, l.close())
	})
	return s, l.probe
}

// watched returns a context with a watchdog.
func watched(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func loads(t *testing.T, s *session, m models.Model) {
	t.Helper()
	check.Err(t, s.Load(watched(t), m))
}

// says generates n tokens and returns their ids.
func says(t *testing.T, s *session, tokens int) (ids []int, u record.Usage) {
	t.Helper()
	u, err := s.Generate(watched(t), engine.Request{Prompt: prompt, MaxTokens: tokens, IgnoreEOS: true},
		func(tok record.Token) { ids = append(ids, tok.ID) })
	check.Err(t, err)
	return ids, u
}

const prompt = "the quick brown fox"
