package webllm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Name is the engine's name in plans and records.
const Name = "webllm"

// WebLLM is the engine.
type WebLLM struct {
	config   Config
	settings engine.Settings
	pack     func(context.Context, engine.Model, Target, func(string)) (Package, error) // make, but for tests

	fetching sync.Mutex
	found    *Bundle // the one that runs; nil: it was not looked for yet

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

func keyOf(m engine.Model) modelKey { return modelKey{m.Path, m.SHA256, m.Context} }

var (
	_ engine.Preparer = (*WebLLM)(nil)
	_ engine.Fetcher  = (*WebLLM)(nil)
	_ engine.Settled  = (*WebLLM)(nil)
	_ engine.Holder   = (*WebLLM)(nil)
)

// New makes the engine. It starts and fetches nothing.
func New(c Config, s engine.Settings) *WebLLM {
	w := &WebLLM{config: c, settings: s, packages: map[modelKey]Package{}, read: map[string]stamp{}}
	w.pack = w.make
	return w
}

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

func (w *WebLLM) browser() browser.Config {
	return browser.Config{Chrome: w.config.Chrome, Launch: w.config.Launch, Adapter: browser.Adapter(w.config.Adapter),
		Thread: browser.Thread(w.config.Thread), Watchdog: w.settings.Watchdog}
}

// Lacks names a WebLLM that must be fetched.
func (w *WebLLM) Lacks() string {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	if w.found != nil {
		return ""
	}
	return lacks(w.config, w.settings)
}

// Fetch finds the WebLLM that is to run, once.
func (w *WebLLM) Fetch(ctx context.Context, say func(string)) error {
	_, err := w.bundle(ctx, say)
	return err
}

func (w *WebLLM) bundle(ctx context.Context, say func(string)) (Bundle, error) {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	if w.found == nil {
		b, err := findBundle(ctx, w.config, w.settings, say)
		if err != nil {
			return b, err
		}
		w.found = &b
	}
	return *w.found, nil
}

func quiet(string) {}

// Check looks for the browser, the bundle and the model file.
func (w *WebLLM) Check(ctx context.Context, m engine.Model) error {
	if _, err := w.browser().Find(); err != nil {
		return err
	}
	if w.Lacks() == "" {
		b, err := w.bundle(ctx, quiet)
		if err != nil {
			return err
		}
		if _, err := b.read(); err != nil {
			return err
		}
	}
	if _, err := os.Stat(m.Path); err != nil {
		return fault.Wrap(fault.BadModel, err, "", "the model can't be read")
	}
	return nil
}

// Accepts leaves float16 to the adapter, which only a running browser knows.
func (w *WebLLM) Accepts(ctx context.Context, m engine.Model) engine.Verdict {
	packaged := m.Format != "" && m.Format != "gguf"
	if w.settings.KVDType != "" && packaged {
		return engine.Refuse(fault.New(fault.NotSupported, "leave it out",
			"kv_cache_dtype: %s: the KV cache of %s has the numbers of its package", w.settings.KVDType, Name))
	}
	if m.Unsupported != nil {
		return engine.Refuse(m.Unsupported)
	}
	if err := w.Check(ctx, m); err != nil {
		return engine.Refuse(err)
	}
	if w.settings.DType == F16 && !packaged {
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
	if p, ok := w.packages[keyOf(m)]; ok {
		return p, nil
	}
	t, err := w.target(ctx, say)
	if err != nil {
		return Package{}, err
	}
	p, err := w.pack(ctx, m, t, say)
	if err != nil {
		return Package{}, fmt.Errorf("packaging %s for WebLLM: %w", m.Name, err)
	}
	if p.DType == F16 && t.DType != F16 { // as the package has it, which nobody asked the adapter about
		device, err := w.deviceHere(ctx, say)
		if err != nil {
			return Package{}, err
		}
		if !hasF16(device) {
			return Package{}, fault.New(fault.NoF16,
				"take a package with float32 weights (q0f32, q4f32_1 …), or an adapter that has it (--adapter gpu)",
				"the model %s computes in float16 (%s), and the WebGPU adapter %s has no %s", m.Name, m.DType,
				device.Name, shaderF16)
		}
	}
	w.packages[keyOf(m)] = p
	return p, nil
}

// Prepared is the package that was prepared for a model; ok tells whether there is one.
func (w *WebLLM) Prepared(m engine.Model) (p Package, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok = w.packages[keyOf(m)]
	return p, ok
}

// Settings are those of the package that was prepared for the model; nothing before.
func (w *WebLLM) Settings(m engine.Model) map[string]string {
	p, ok := w.Prepared(m)
	if !ok {
		return nil
	}
	return p.settings()
}

// settings are what a reader must know of how a package was made.
func (p Package) settings() map[string]string {
	s := map[string]string{"context": strconv.Itoa(p.Context), "prefill_chunk": strconv.Itoa(p.PrefillChunk)}
	maps.Copy(s, p.Policy)
	return s
}

// Files are the package that was prepared for a model, and its library, which the page's server hands out.
func (w *WebLLM) Files(m engine.Model) []string {
	if p, ok := w.Prepared(m); ok {
		return []string{p.Dir, p.Library.Path}
	}
	return nil
}

// Memory is how WebLLM has models in memory. A browser with its page was seen to hold from 190 to 370 MiB before a
// model is in it.
var Memory = &engine.Memory{Name: Name, Title: "WebLLM", Runtime: engine.MLC, Before: 370 << 20, FourBits: "q4f32_1"}

// Held goes by the package that was prepared, and before that by what would be made of a GGUF.
func (w *WebLLM) Held(m engine.Model) engine.Held {
	out := engine.Held{As: Memory, Path: m.Path, OnGPU: !w.software(),
		Device: func(ctx context.Context) (record.Device, error) { return w.Device(ctx, quiet) }}
	if p, ok := w.Prepared(m); ok {
		out.Path, out.Library = p.Dir, p.Library.Path
	} else if m.Format == "gguf" {
		out.DType, out.PrefillChunk = w.settings.DType, min(prefillChunk, m.Context)
	}
	return out
}

// software tells whether the adapter computes on the CPU: as the browser told it, or, where it was not asked yet, as
// it is expected.
func (w *WebLLM) software() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.device != nil {
		return w.device.Class == record.SoftwareAdapter
	}
	return w.softwareForSure()
}

func (w *WebLLM) softwareForSure() bool {
	return w.config.Launch.Attach == "" && browser.Adapter(w.config.Adapter).Software()
}

// Target says what packages are made for here. Where that hangs on the adapter and the adapter is not certain, the
// browser is started for a moment to ask, once.
func (w *WebLLM) Target(ctx context.Context, say func(string)) (Target, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target(ctx, say)
}

func (w *WebLLM) target(ctx context.Context, say func(string)) (Target, error) {
	t := Target{Kernels: cmp.Or(w.config.Kernels, AutoKernels), DType: cmp.Or(w.settings.DType, F32)}
	auto := t.Kernels == AutoKernels
	if auto && w.softwareForSure() {
		t.Kernels, auto = SoftwareKernels, false
	}
	if !auto && t.DType != F16 {
		return t, nil
	}
	device, err := w.deviceHere(ctx, say)
	if err != nil {
		return Target{}, err
	}
	if auto {
		t.Kernels = kernelsFor(device)
	}
	if t.DType == F16 {
		return t, needF16(device)
	}
	return t, nil
}

func kernelsFor(d record.Device) string {
	if d.Class == record.SoftwareAdapter {
		return SoftwareKernels
	}
	return GPUKernels
}

// Device is the adapter that the browser hands out; it is started for a moment to ask, unless that is known already.
func (w *WebLLM) Device(ctx context.Context, say func(string)) (record.Device, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deviceHere(ctx, say)
}

// deviceHere is the adapter that a session had, or one that is opened to ask.
func (w *WebLLM) deviceHere(ctx context.Context, say func(string)) (record.Device, error) {
	if w.device != nil {
		return *w.device, nil
	}
	b, err := w.bundle(ctx, say) // the page wants one
	if err != nil {
		return record.Device{}, err
	}
	say("asking the browser for its WebGPU adapter")
	s, err := newSite(b)
	if err != nil {
		return record.Device{}, err
	}
	p, err := browser.Open(ctx, w.browser(), s.page(), engine.Unmeasured{})
	if err != nil {
		return record.Device{}, err
	}
	d, err := p.Device(ctx)
	if err = errors.Join(err, p.Close()); err == nil {
		w.device = &d
	}
	return d, err
}

// met remembers an adapter that a session has.
func (w *WebLLM) met(d record.Device) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.device = &d
}

// shaderF16 is the WebGPU feature without which shaders have no float16.
const shaderF16 = "shader-f16"

func hasF16(d record.Device) bool { return slices.Contains(browser.Features(d), shaderF16) }

func needF16(d record.Device) error {
	if hasF16(d) {
		return nil
	}
	return fault.New(fault.NoF16, "use --dtype f32", "the WebGPU adapter %s has no %s, which a model in float16 needs",
		d.Name, shaderF16)
}
