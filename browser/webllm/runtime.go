package webllm

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

//go:embed scripts
var embedded embed.FS

// scripts are the engine's: engine.js calls WebLLM, tokens.js wraps its private parts, scoring.js scores texts.
var scripts, _ = fs.Sub(embedded, "scripts") // it exists

// Scripts returns the engine's scripts. tokens.js can be used outside of llmparity's page.
func Scripts() fs.FS { return scripts }

// pageRuntime is WebLLM in a page, which serves one model at a time.
type pageRuntime struct {
	*site
	webllm *WebLLM
	serve  http.Handler // the site, except in tests
}

// runtime makes the runtime of a session.
func (w *WebLLM) runtime(b Bundle) (*pageRuntime, error) {
	s, err := newSite(b)
	if err != nil {
		return nil, err
	}
	return &pageRuntime{s, w, s}, nil
}

// Open starts the browser and opens the page, which has WebLLM's code but no engine yet.
func (w *WebLLM) Open(ctx context.Context, probe engine.Probe) (engine.Session, error) {
	return w.OpenFor(ctx, models.Model{}, probe)
}

// OpenFor is Open, with what the browser's store is to have of a model.
func (w *WebLLM) OpenFor(ctx context.Context, m models.Model, probe engine.Probe) (engine.Session, error) {
	b, err := w.bundle(ctx, quiet)
	if err != nil {
		return nil, err
	}
	r, err := w.runtime(b)
	if err != nil {
		return nil, err
	}
	s, err := w.start(ctx, r, m, probe)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (w *WebLLM) start(ctx context.Context, r *pageRuntime, m models.Model, probe engine.Probe) (*browser.Session,
	error) {
	c := w.browser()
	c.Keeps.Model = m
	r.same = c.Keeps.Fills()
	s, err := browser.Start(ctx, c, r, probe)
	if err == nil {
		device := s.Adapter
		w.device.Store(&device)
	}
	return s, err
}

// stages of a load, as the script marks them.
var stages = []browser.Stage{
	{Name: "fetch", How: "page clock: load called to wasm instantiation called"},
	{Name: "wasm", How: "page clock: wasm instantiation called to adapter requested"},
	{Name: "device", How: "page clock: adapter requested to device received"},
	{Name: "tokenizer", How: "page clock: device received to WebLLM starting on the weights"},
	{Name: "download", How: "page clock, WebLLM's progress: weights downloaded into the browser's cache"},
	{Name: "upload", How: "page clock, WebLLM's progress: weights copied from the browser's cache to the GPU, until the " +
		"GPU is done"},
	{Name: "pipeline", How: "page clock: weights uploaded to first shader compilation called; VM and KV cache"},
	{Name: "shaders", How: "page clock: first shader compilation called to load done"},
}

// Page returns WebLLM's part of the page.
func (r *pageRuntime) Page() browser.Served {
	info := record.EngineInfo{Name: Name, Computes: "tvm", Version: r.bundle.version(), Origin: r.bundle.origin(),
		Parts: map[string]string{record.BundlePart: r.sha256}, Policy: map[string]string{"prompt_cache": "off"}}
	return browser.Served{Info: info, Scripts: scripts, Stages: stages, Site: browser.Site{Handler: r.serve,
		Title: Memory.Title, Imports: r.bundle.String(), Classify: classify,
		Do: "run make setup and build again, or use another --webllm-version or --webllm-bundle"}}
}

// fetchFailed matches errors of WebLLM's downloads into the browser's cache.
var fetchFailed = regexp.MustCompile(`(?i)cannot fetch|'Cache': Request failed|exceeds shard size`)

func classify(message string) record.Class {
	if fetchFailed.MatchString(message) {
		return record.Download
	}
	return ""
}

// Offer makes the model's package and serves it.
func (r *pageRuntime) Offer(ctx context.Context, m models.Model, device record.Device) (*browser.Offer, error) {
	p, err := r.webllm.packageOf(ctx, m, quiet)
	if err != nil {
		return nil, err
	}
	if p.DType == F16 || p.NeedsF16 {
		if err := needF16(device); err != nil {
			return nil, err
		}
	}
	if err := r.webllm.intact(ctx, p); err != nil {
		return nil, fmt.Errorf("loading %s into %s: %w", m.Name, r.bundle, err)
	}
	at, err := r.offer(p)
	if err != nil {
		return nil, err
	}
	o := &browser.Offer{Backend: browser.WebGPU, Got: r.webllm.got(m, p), Context: p.Context,
		Library: &p.Library.Library, Policy: p.settings(), Weights: p.Weights,
		Warnings: slices.Clone(p.Warnings), Lacks: r.lacks, Options: map[string]any{"model": at + "/model/",
			"library": at + "/library.wasm", "id": p.ID, "window": p.Context, "overrides": p.Overrides,
			"storage": r.webllm.settings.Storage}}
	if l, err := layoutOf(p); err == nil {
		o.Layout = l
	} else {
		o.Warnings = append(o.Warnings, record.Warnf("no-attribution",
			"WebGPU memory is not split into weights, KV cache and workspaces: %s", fault.OneLine(err.Error())))
	}
	if k := p.Library.Kernels; k != "" && (k == SoftwareKernels) != (kernelsFor(device) == SoftwareKernels) {
		o.Warnings = append(o.Warnings, record.Warnf("library-for-another-adapter", "the model library has %s "+
			"kernels, but the adapter is %s (%s): a library made for it would be faster or slower", k, device.Name, device.Class))
	}
	return o, nil
}

// got compares a package with what the plan asks for. One that it names has dtypes of its own.
func (w *WebLLM) got(m models.Model, p Package) []ran.Row {
	if isPackage(m) {
		return nil
	}
	asked := cmp.Or(w.settings.DType, F32)
	const library = "the package's library"
	return []ran.Row{ran.As(ran.DType, asked, p.DType, library),
		ran.As(ran.KV, cmp.Or(w.settings.KVDType, asked), cmp.Or(p.KVDType, p.DType), library)}
}

// Close closes the model's files.
func (r *pageRuntime) Close() error { return r.site.close() }
