package transformersjs

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/onnx"
	"llmparity/internal/models/onnx/convert"
	"llmparity/internal/record"

	assets "llmparity/assets/transformersjs"
)

// Engine is transformers.js with its settings.
type Engine struct {
	config   Config
	settings engine.Settings

	mu    sync.Mutex
	ready map[modelKey]prepared
}

// modelKey identifies a prepared model: tables of its rotation are as long as the context.
type modelKey struct {
	path, sha256 string
	context      int
}

func keyOf(m models.Model) modelKey { return modelKey{m.Path, m.SHA256, m.Context} }

// prepared is a model as ONNX.
type prepared struct {
	onnx.Model
	same record.Sameness // with the GGUF that it was made from; empty: none
}

var (
	_ engine.Preparer = (*Engine)(nil)
	_ engine.Reader   = (*Engine)(nil)
	_ engine.Settled  = (*Engine)(nil)
	_ engine.Loader   = (*Engine)(nil)
	_ engine.Opener   = (*Engine)(nil)
)

// New makes the engine without starting anything.
func New(c Config, s engine.Settings) *Engine {
	return &Engine{config: c, settings: s, ready: map[modelKey]prepared{}}
}

// Name returns Name.
func (*Engine) Name() string { return Name }

// Caps returns what the engine can do.
func (e *Engine) Caps() engine.Caps {
	caps := e.browser().Caps()
	caps.TakesIDs, caps.Scores = true, true
	return caps
}

func (e *Engine) browser() browser.Config {
	c := e.config.Browser(e.settings.Watchdog)
	c.Keeps = browser.Keeps{In: e.settings.Storage, Before: e.settings.Stored}
	return c
}

// Check finds the browser and transformers.js, and refuses what it cannot compute.
func (e *Engine) Check(_ context.Context, m models.Model) error {
	c := e.browser()
	if _, err := c.Find(); err != nil {
		return err
	}
	if err := c.CheckKeeps(title, record.CacheAPI, record.NoStorage); err != nil {
		return err
	}
	if _, err := assets.Files(); err != nil {
		return err
	}
	if m.Format == models.ONNX {
		o, err := onnx.Open(m.Path)
		if err != nil {
			return err
		}
		return e.room(o.Bytes)
	}
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := convert.Describe(f, e.options(m))
	if err != nil {
		return err
	}
	return e.room(d.Bytes)
}

func (e *Engine) options(m models.Model) convert.Options {
	return convert.Options{Context: m.Context, DType: e.settings.DType, SHA256: m.SHA256}
}

// Prepare converts a GGUF, or opens a model that is ONNX already.
func (e *Engine) Prepare(ctx context.Context, m models.Model, say func(string)) error {
	_, err := e.prepare(ctx, m, say)
	return err
}

func (e *Engine) prepare(ctx context.Context, m models.Model, say func(string)) (prepared, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.ready[keyOf(m)]; ok {
		return p, nil
	}
	p, err := e.made(ctx, m, say)
	if err != nil {
		return p, fmt.Errorf("preparing %s for %s: %w", m.Name, title, err)
	}
	e.ready[keyOf(m)] = p
	return p, nil
}

func (e *Engine) made(ctx context.Context, m models.Model, say func(string)) (p prepared, err error) {
	if m.Format == models.ONNX {
		p.Model, err = onnx.Open(m.Path)
		return p, err
	}
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	o := e.options(m)
	d, err := convert.Describe(f, o)
	if err != nil {
		return p, err
	}
	dir := filepath.Join(e.settings.Cache, "packages",
		fmt.Sprintf("onnx-%.12s-v%d-c%d-%s", m.SHA256, convert.Version, m.Context, e.dtype()))
	err = cache.Once(ctx, e.settings.Cache, dir, d.Bytes, say, func() error {
		say(fmt.Sprintf("converting %s to ONNX for a context of %d tokens", m.Name, m.Context))
		_, err := convert.Write(ctx, m.Path, dir, o)
		return err
	})
	if err != nil {
		return p, err
	}
	p.same = d.Same
	p.Model, err = onnx.Open(filepath.Join(dir, filepath.FromSlash(d.File)))
	return p, err
}

func (e *Engine) dtype() string {
	if e.settings.DType == F16 {
		return F16
	}
	return F32
}

// known returns a prepared model.
func (e *Engine) known(m models.Model) (prepared, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.ready[keyOf(m)]
	return p, ok
}

// Files returns the folder that the page's server serves.
func (e *Engine) Files(m models.Model) []string {
	if p, ok := e.known(m); ok {
		return []string{p.Dir}
	}
	return nil
}

// Settings returns those that are known before the launch.
func (e *Engine) Settings(m models.Model) map[string]string {
	out := map[string]string{"backend": e.config.backend(), "context": strconv.Itoa(m.Context)}
	if p, ok := e.known(m); ok {
		out["weights_dtype"], out["kv_dtype"] = p.DType, p.KVDType
	}
	return out
}

// Open opens the page.
func (e *Engine) Open(ctx context.Context, probe engine.Probe) (engine.Session, error) {
	return e.OpenFor(ctx, models.Model{}, probe)
}

// OpenFor is Open, with what the browser's store is to have of a model.
func (e *Engine) OpenFor(ctx context.Context, m models.Model, probe engine.Probe) (engine.Session, error) {
	r, err := newRuntime(e)
	if err != nil {
		return nil, err
	}
	c := e.browser()
	c.Keeps.Model = m
	r.same = c.Keeps.Fills()
	s, err := browser.Start(ctx, c, r, probe)
	if err != nil {
		return nil, err // not a nil *Session in an interface
	}
	return s, nil
}
