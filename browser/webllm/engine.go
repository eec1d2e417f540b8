package webllm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/record"
)

// Name is the engine's name in plans and records.
const Name = "webllm"

// WebLLM is the engine.
type WebLLM struct {
	config   Config
	settings engine.Settings
	pack     func(context.Context, models.Model, Target, func(string)) (Package, error) // make, except in tests

	asking sync.Mutex
	device atomic.Pointer[record.Device] // as the browser reported it; nil: not asked yet

	mu       sync.Mutex
	packages map[modelKey]Package
	read     map[string]stamp // weight files that have been verified, by path
}

// modelKey identifies a package. The context is compiled into its library.
type modelKey struct {
	path, sha256 string
	context      int
}

func keyOf(m models.Model) modelKey { return modelKey{m.Path, m.SHA256, m.Context} }

var (
	_ engine.Preparer = (*WebLLM)(nil)
	_ engine.Fetcher  = (*WebLLM)(nil)
	_ engine.Settled  = (*WebLLM)(nil)
	_ engine.Loader   = (*WebLLM)(nil)
)

// New makes the engine without starting or downloading anything.
func New(c Config, s engine.Settings) *WebLLM {
	w := &WebLLM{config: c, settings: s, packages: map[modelKey]Package{}, read: map[string]stamp{}}
	w.pack = w.make
	return w
}

// Name returns Name.
func (*WebLLM) Name() string { return Name }

// Caps returns what the engine can do.
func (w *WebLLM) Caps() engine.Caps {
	caps := w.browser().Caps()
	caps.TakesIDs, caps.Scores = true, true
	return caps
}

func (w *WebLLM) browser() browser.Config {
	c := w.config.Browser(w.settings.Watchdog)
	c.Keeps = browser.Keeps{In: w.settings.Storage, Before: w.settings.Stored}
	return c
}

// storages are where WebLLM can keep a model. It always keeps it.
var storages = []string{record.CacheAPI, record.IndexedDB, record.OPFS, record.CrossOrigin}

// Fetch finds the WebLLM to run.
func (w *WebLLM) Fetch(ctx context.Context, say func(string)) error {
	_, err := w.bundle(ctx, say)
	return err
}

func quiet(string) {}

// Check finds the browser, the bundle and the model file.
func (w *WebLLM) Check(ctx context.Context, m models.Model) error {
	if _, err := w.browser().Find(); err != nil {
		return err
	}
	if w.Lacks() == "" {
		b, err := w.bundle(ctx, quiet)
		if err != nil {
			return err
		}
		if err := cmp.Or(b.Keeps(w.settings.Storage), w.fits(b, m)); err != nil {
			return err
		}
	}
	if _, err := os.Stat(m.Path); err != nil {
		return fault.Wrap(fault.BadModel, err, "", "the model cannot be read")
	}
	return nil
}

// fits returns why the model's library cannot run in the bundle, as far as that is known before anything is made.
func (w *WebLLM) fits(b Bundle, m models.Model) error {
	file := w.config.given()
	switch {
	case isPackage(m), isAddress(file):
		return b.Fits(nil)
	case file != "":
		lib, err := mlc.OpenLibrary(file)
		if err != nil {
			return err
		}
		return b.Fits(lib.Imports)
	case w.config.auto():
		if found, _ := w.replacement(b, func(mlc.Library) error { return nil }); found != "" {
			return nil
		}
	}
	return b.Fits(mlc.OwnImports())
}

func isPackage(m models.Model) bool { return m.Format == models.WebLLM }

// Accepts leaves float16 open, because only a running browser knows its adapter.
func (w *WebLLM) Accepts(ctx context.Context, m models.Model) engine.Verdict {
	packaged, weights := isPackage(m), w.config.weights()
	err := w.config.Check()
	switch {
	case packaged && w.settings.KVDType != "":
		err = fault.New(fault.NotSupported, "omit it", "kv_cache_dtype %s: %s uses the KV cache dtype of its package",
			w.settings.KVDType, Name)
	case err != nil:
	case w.browser().CheckKeeps(Memory.Title, storages...) != nil:
		err = w.browser().CheckKeeps(Memory.Title, storages...)
	case packaged && slices.Contains([]string{F32, F16, mlc.Requantized}, weights):
		err = fault.New(fault.NotSupported, "omit it", "weights %s: %s uses the weights of its package", weights, Name)
	case m.Unsupported != nil:
		err = m.Unsupported
	case m.Unreadable != nil:
		err = m.Unreadable
	default:
		err = w.Check(ctx, m)
	}
	switch {
	case err != nil:
		return engine.Refuse(err)
	case slices.Contains([]string{w.settings.DType, w.settings.KVDType}, F16) && !packaged:
		return engine.Undecided("the browser reports whether its WebGPU adapter supports float16 when it starts")
	}
	return engine.Verdict{}
}

// Confirm asks the browser for float16, if that is wanted. Other errors are left to the launch.
func (w *WebLLM) Confirm(ctx context.Context, _ models.Model, say func(string)) error {
	_, err := w.Target(ctx, say)
	if fault.Of(err) == fault.NoF16 {
		return err
	}
	return nil
}

// Prepare makes or finds the model's package.
func (w *WebLLM) Prepare(ctx context.Context, m models.Model, say func(string)) error {
	p, err := w.packageOf(ctx, m, say)
	if err != nil {
		return err
	}
	if err := w.intact(ctx, p); err != nil {
		return fault.Wrap(fault.BadModel, err, "make or download it again", "%s cannot be loaded", m.Name)
	}
	return nil
}

func (w *WebLLM) packageOf(ctx context.Context, m models.Model, say func(string)) (Package, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.packages[keyOf(m)]; ok {
		return p, nil
	}
	t, err := w.Target(ctx, say)
	if err != nil {
		return Package{}, err
	}
	p, err := w.pack(ctx, m, t, say)
	if err != nil {
		return Package{}, fmt.Errorf("packaging %s for WebLLM: %w", m.Name, err)
	}
	if p.NeedsF16 && !t.f16() { // not checked against the adapter yet
		device, err := w.Device(ctx, say)
		if err != nil {
			return Package{}, err
		}
		if !hasF16(device) {
			use, what := "a package with float32 weights (q0f32, q4f32_1 …)", fmt.Sprintf("computes in float16 (%s)", m.DType)
			if w.config.Weights == F16 {
				use, what = "--weights f32", "would have float16 weights"
			}
			return Package{}, fault.New(fault.NoF16,
				"use "+use+", or an adapter with float16 (--adapter gpu or lavapipe)",
				"model %s %s, but the WebGPU adapter %s lacks %s", m.Name, what, device.Name, shaderF16)
		}
	}
	p.held = cache.Use(w.settings.Cache, p.Dir)
	w.packages[keyOf(m)] = p
	return p, nil
}

// Prepared returns the package prepared for a model, if any.
func (w *WebLLM) Prepared(m models.Model) (p Package, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok = w.packages[keyOf(m)]
	return p, ok
}

// Settings returns those of the prepared package; nil before.
func (w *WebLLM) Settings(m models.Model) map[string]string {
	p, ok := w.Prepared(m)
	if !ok {
		return nil
	}
	s := p.settings()
	s["model_library"] = p.Library.String()
	return s
}

// settings returns what affects how a package computes.
func (p Package) settings() map[string]string {
	s := map[string]string{"context": strconv.Itoa(p.Context), "prefill_chunk": strconv.Itoa(p.PrefillChunk)}
	maps.Copy(s, p.Policy)
	return s
}

// Files returns the prepared package and its library, which the page's server serves.
func (w *WebLLM) Files(m models.Model) []string {
	if p, ok := w.Prepared(m); ok {
		return []string{p.Dir, p.Library.Path}
	}
	return nil
}

// Memory describes how WebLLM holds models in memory. A browser with its page was seen to use 190 to 370 MiB before it
// loads a model.
var Memory = &engine.Memory{Name: Name, Title: "WebLLM", Runtime: "mlc", Formats: []string{models.WebLLM},
	Before: 370 << 20, FourBits: "q4f32_1",
	KVTypes: []string{F32, F16}, Adapter: adapter, Cannot: func(path string, context int) error {
		f, err := gguf.Open(path)
		if err != nil {
			return nil // incomplete, which others say
		}
		defer f.Close()
		return Converts(f, context)
	}}

// adapter describes an adapter before a browser runs. Lavapipe's buffers may have 4 GiB, and its bindings the size that
// every adapter has.
func adapter(name string) (engine.Adapter, error) {
	a, err := browser.ParseAdapter(name)
	out := engine.Adapter{Name: string(a), Any: a == browser.Auto, Software: a.Software(),
		CPU: a == browser.SwiftShader || a == browser.Lavapipe}
	if a == browser.Lavapipe {
		out.F16, out.Buffer, out.Binding = true, 4<<30, 1<<27
	}
	return out, err
}

// Loaded describes the prepared package, or before that the one that would be made from a GGUF.
func (w *WebLLM) Loaded(m models.Model) engine.Loaded {
	out := engine.Loaded{As: w.config.Held(Memory), Path: m.Path, OnGPU: !w.software(),
		Device: func(ctx context.Context) (record.Device, error) { return w.Device(ctx, quiet) }}
	if p, ok := w.Prepared(m); ok {
		out.Path, out.Library = p.Dir, p.Library.Path
	} else if m.Format == models.GGUF {
		out.DType, out.KVDType, out.Weights = w.settings.DType, w.settings.KVDType, w.config.weights()
		out.PrefillChunk = min(prefillChunk, m.Context)
	}
	return out
}

// software reports whether the adapter computes on the CPU: as the browser reported, or as predicted.
func (w *WebLLM) software() bool {
	if d := w.device.Load(); d != nil {
		return d.Class == record.SoftwareAdapter
	}
	return w.softwareForSure()
}

func (w *WebLLM) softwareForSure() bool {
	return !w.config.Launch.Running() && browser.Adapter(w.config.Adapter).Software()
}

// Target says what packages are made for here. If that depends on an uncertain adapter, the browser is started once to
// ask.
func (w *WebLLM) Target(ctx context.Context, say func(string)) (Target, error) {
	t := Target{Kernels: cmp.Or(w.config.Kernels, AutoKernels), DType: cmp.Or(w.settings.DType, F32)}
	t.KVDType = cmp.Or(w.settings.KVDType, t.DType)
	auto := t.Kernels == AutoKernels
	if auto && w.softwareForSure() && w.browser().Foreseen() {
		t.Kernels, auto = SoftwareKernels, false
	}
	if !auto && !t.f16() {
		return t, nil
	}
	device, err := w.Device(ctx, say)
	if err != nil {
		return Target{}, err
	}
	if auto {
		t.Kernels = kernelsFor(device)
	}
	if t.f16() {
		return t, needF16(device)
	}
	return t, nil
}

func (t Target) f16() bool { return t.DType == F16 || t.KVDType == F16 }

// kernelsFor chooses kernels for an adapter. Those for the CPU need subgroups, which Firefox lacks.
func kernelsFor(d record.Device) string {
	features := browser.Features(d)
	if d.Class == record.SoftwareAdapter && (len(features) == 0 || slices.Contains(features, "subgroups")) {
		return SoftwareKernels
	}
	return GPUKernels
}

// Device returns the browser's adapter. It starts the browser to ask, unless the adapter is known.
func (w *WebLLM) Device(ctx context.Context, say func(string)) (record.Device, error) {
	w.asking.Lock()
	defer w.asking.Unlock()
	if d := w.device.Load(); d != nil {
		return *d, nil
	}
	b, err := w.bundle(ctx, say) // the page needs one
	if err != nil {
		return record.Device{}, err
	}
	say("asking the browser for its WebGPU adapter")
	r, err := w.runtime(b)
	if err != nil {
		return record.Device{}, err
	}
	d, err := browser.AdapterOf(ctx, w.browser(), r)
	if err == nil {
		w.device.Store(&d)
	}
	return d, err
}

// shaderF16 is the WebGPU feature for float16 in shaders.
const shaderF16 = "shader-f16"

func hasF16(d record.Device) bool { return slices.Contains(browser.Features(d), shaderF16) }

func needF16(d record.Device) error {
	if hasF16(d) {
		return nil
	}
	return fault.New(fault.NoF16, "use --dtype f32 (--kv-cache-dtype f32), or --adapter lavapipe", "the WebGPU adapter %s lacks %s, which float16 needs",
		d.Name, shaderF16)
}
