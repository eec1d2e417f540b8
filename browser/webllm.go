// Package browser runs WebLLM in Chrome and lets it be measured: it launches the browser, serves the page and the model
// on loopback, finds out which process is which, compares the page's clock with ours, and tells how a page or a GPU was
// lost.
//
// What it counts are tokens where WebLLM samples them. Memory is read from outside, process by process, and from
// inside: heaps, and what WebGPU was asked for by a ledger in the page. What a GPU's driver makes of that it does not
// see. The browser is started afresh for every launch, with an empty profile: a load always fetches.
package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync"
	"time"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Config is what WebLLM needs to know of its surroundings.
type Config struct {
	Chrome  string  // path or name; empty: see FindChrome
	Launch  Launch  // how the browser comes to run
	Adapter Adapter // empty: Auto
	Bundle  Bundle  // which WebLLM; the one that Find gives, where that is set
	// Find finds the bundle, and fetches it where it must: Lacks says then what it will fetch. say is told.
	Find         func(ctx context.Context, say func(string)) (Bundle, error)
	Lacks        string
	KVDType      string // that is asked for; a package has its own
	PrefillChunk int    // of packages that are made of a GGUF
	Kernels      string // AutoKernels (or empty), SoftwareKernels, GPUKernels
	DType        string // F32 (or empty), F16
	Thread       Thread // PageThread (or empty), WorkerThread
	// Watchdog is how long the event loop of the thread that WebLLM runs on may stand still; 0: engine.Watchdog. WebLLM
	// waits for the GPU without blocking it; what does block it is short: a large tokenizer takes some seconds on a
	// slow machine.
	Watchdog time.Duration
	limits   limits // of the stages of a browser's start
	page     string // the address of the page, below the server's; empty: WebLLM's
	// Package gives a model as WebLLM wants it, made for a target. It is asked once a model, and may take minutes: say
	// is told.
	Package func(ctx context.Context, m engine.Model, t Target, say func(string)) (Package, error)
}

// WebLLM is the engine.
type WebLLM struct {
	config Config

	fetching sync.Mutex

	mu       sync.Mutex
	packages map[modelKey]Package
	device   *record.Device   // as the browser told it; nil: it was not asked yet
	read     map[string]stamp // files of weights that have been found right, by path
}

// modelKey tells packages apart: the window is compiled into a library.
type modelKey struct {
	path, sha256 string
	context      int
}

var (
	_ engine.Engine   = (*WebLLM)(nil)
	_ engine.Preparer = (*WebLLM)(nil)
	_ engine.Fetcher  = (*WebLLM)(nil)
)

// New makes the engine. It starts nothing.
func New(c Config) *WebLLM {
	return &WebLLM{config: c, packages: map[modelKey]Package{}, read: map[string]stamp{}}
}

// Name is the engine's name in plans and records.
const Name = "webllm"

// Name is Name.
func (*WebLLM) Name() string { return Name }

// Caps says what the engine can do.
func (w *WebLLM) Caps() engine.Caps {
	isolation := record.OfLaunch
	if w.config.Launch.Attach != "" {
		isolation = record.OfTab
	}
	return engine.Caps{IgnoreEOS: true, Resident: true, TokenIDs: true, Exact: true, Requests: 1, Isolation: isolation,
		Scores: true}
}

// Lacks names a WebLLM that must be fetched.
func (w *WebLLM) Lacks() string {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	return w.config.Lacks
}

// Fetch finds the WebLLM that is to run, once.
func (w *WebLLM) Fetch(ctx context.Context, say func(string)) error {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	if w.config.Find == nil {
		return nil
	}
	b, err := w.config.Find(ctx, say)
	if err == nil {
		w.config.Bundle, w.config.Find, w.config.Lacks = b, nil, ""
	}
	return err
}

func quiet(string) {}

// Check looks for the browser, the bundle and the model file.
func (w *WebLLM) Check(ctx context.Context, m engine.Model) error {
	if w.Lacks() == "" {
		if err := w.Fetch(ctx, quiet); err != nil {
			return err
		}
	}
	if _, err := w.config.find(); err != nil {
		return err
	}
	if err := w.config.Bundle.Readable(); err != nil {
		return err
	}
	if _, err := os.Stat(m.Path); err != nil {
		return fault.Wrap(fault.BadModel, err, "", "the model can't be read")
	}
	return nil
}

// Accepts leaves float16 to the adapter, which only a running browser knows.
func (w *WebLLM) Accepts(ctx context.Context, m engine.Model) engine.Verdict {
	packaged := m.Format != "" && m.Format != "gguf"
	if w.config.KVDType != "" && packaged {
		return engine.Refuse(fault.New(fault.NotSupported, "leave it out",
			"kv_cache_dtype: %s: the KV cache of %s has the numbers of its package", w.config.KVDType, Name))
	}
	if m.Unsupported != nil {
		return engine.Refuse(m.Unsupported)
	}
	if err := w.Check(ctx, m); err != nil {
		return engine.Refuse(err)
	}
	if w.config.DType == F16 && !packaged {
		return engine.Undecided("the browser says whether its WebGPU adapter has float16 when it has started")
	}
	return engine.Verdict{}
}

// Confirm asks the browser whether its adapter has float16, where that is wanted. Other trouble is the launch's to
// tell.
func (w *WebLLM) Confirm(ctx context.Context, _ engine.Model, say func(string)) error {
	_, err := w.Target(ctx, say)
	if fault.Of(err) == fault.NoF16 {
		return err
	}
	return nil
}

// Prepare makes the model's package, or finds it.
func (w *WebLLM) Prepare(ctx context.Context, m engine.Model, say func(string)) error {
	p, err := w.packageOf(ctx, m, say)
	if err != nil {
		return err
	}
	if err := w.intact(ctx, p); err != nil {
		return fault.Wrap(fault.BadModel, err, "make or fetch it again", "%s can't be loaded", m.Name)
	}
	return nil
}

func (w *WebLLM) packageOf(ctx context.Context, m engine.Model, say func(string)) (Package, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := modelKey{m.Path, m.SHA256, m.Context}
	if p, ok := w.packages[key]; ok {
		return p, nil
	}
	target, err := w.target(ctx, say)
	if err != nil {
		return Package{}, err
	}
	if err := w.Fetch(ctx, say); err != nil {
		return Package{}, err
	}
	target.Bundle = w.config.Bundle
	p, err := w.config.Package(ctx, m, target, say)
	if err != nil {
		return Package{}, fmt.Errorf("packaging %s for WebLLM: %w", m.Name, err)
	}
	if p.DType == F16 && target.DType != F16 { // as the package has it, which nobody asked the adapter about
		device, err := w.deviceHere(ctx, say)
		if err != nil {
			return Package{}, err
		}
		if needF16(device) != nil {
			return Package{}, fault.New(fault.NoF16,
				"take a package with float32 weights (q0f32, q4f32_1 …), or an adapter that has it (--adapter gpu)",
				"the model %s computes in float16 (%s), and the WebGPU adapter %s has no %s", m.Name, m.DType,
				device.Name, shaderF16)
		}
	}
	w.packages[key] = p
	return p, nil
}

// Open starts the browser with the page, which has WebLLM's code but no engine yet.
func (w *WebLLM) Open(ctx context.Context, probe engine.Probe) (engine.Session, error) {
	if err := w.Fetch(ctx, quiet); err != nil {
		return nil, err
	}
	chrome, err := w.config.find()
	if err != nil {
		return nil, err
	}
	code, err := w.config.Bundle.read()
	if err != nil {
		return nil, err
	}
	server, err := serve(page.Files(), code)
	if err != nil {
		return nil, err
	}
	return w.open(ctx, probe, server, chrome, sha256Of(code))
}

// open is Open with a server, which the session closes.
func (w *WebLLM) open(ctx context.Context, probe engine.Probe, server *server, chrome, bundle string) (
	engine.Session, error) {
	p, err := openTab(ctx, chrome, w.config, server, probe)
	if err != nil {
		return nil, errors.Join(err, server.close())
	}
	s := &session{webllm: w, tab: p, probe: probe, bundle: bundle, path: chrome}
	if err := s.introduce(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// info describes the engine; the package is nil before the load.
func (s *session) info(p *Package) *record.EngineInfo {
	v, bundle := s.tab.chrome.version, s.webllm.config.Bundle
	info := &record.EngineInfo{
		Name: s.webllm.Name(), Version: bundle.version(), Path: s.path, Args: s.tab.chrome.args,
		Parts: map[string]string{
			"browser": v.Product, "user_agent": v.UserAgent, "javascript": v.JsVersion,
			"webllm": bundle.version(), "webllm_origin": bundle.origin(), "webllm_sha256": s.bundle,
		},
		Policy: map[string]string{"prompt_cache": "off", "thread": string(s.tab.isolate.thread),
			"garbage": "collected before the baseline and at the unload"},
	}
	identify(info.Parts, s.tab.chrome.pid)
	maps.Copy(info.Policy, s.tab.chrome.policy)
	if p == nil {
		return info
	}
	info.Parts["model_library"] = p.Library.String()
	info.Parts["model_library_sha256"] = p.Library.SHA256
	info.Parts["model_library_bytes"] = strconv.FormatInt(p.Library.Bytes, 10)
	if p.Library.Source != "" {
		info.Parts["model_library_source"] = p.Library.Source
	}
	info.Policy["context"] = strconv.Itoa(p.Context)
	info.Policy["prefill_chunk"] = strconv.Itoa(p.PrefillChunk)
	for name, value := range p.Policy {
		info.Policy[name] = value
	}
	return info
}
