package transformersjs

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	assets "llmparity/assets/transformersjs"
	"llmparity/browser"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

//go:embed scripts
var embedded embed.FS

var scripts, _ = fs.Sub(embedded, "scripts") // it exists

// pageRuntime is transformers.js in a page, which serves one model at a time.
type pageRuntime struct {
	http.Handler
	engine *Engine
	sha256 string // of transformers.js and ONNX Runtime

	mu     sync.Mutex
	offers int      // number so far, part of URLs
	same   bool     // all have the URL of the first, which the browser's store has
	folder *os.Root // of the model
	missed []string // requested files of the model that do not exist
}

func newRuntime(e *Engine) (*pageRuntime, error) {
	files, err := assets.Files()
	if err != nil {
		return nil, err
	}
	sum, err := hashOf(files)
	if err != nil {
		return nil, err
	}
	r := &pageRuntime{engine: e, sha256: sum}
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.Files(scripts))
	for _, name := range []string{assets.Module, assets.Runtime, assets.Wasm} {
		plain, packed := strings.CutSuffix(name, ".gz")
		mux.HandleFunc("GET /engine/"+plain, func(w http.ResponseWriter, q *http.Request) {
			if packed {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "application/wasm")
			}
			http.ServeFileFS(w, q, files, name)
		})
	}
	mux.HandleFunc("GET /{offer}/model/{file...}", r.serveModel)
	r.Handler = mux
	return r, nil
}

// serveModel serves the files of the offered model.
func (r *pageRuntime) serveModel(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	folder := r.folder
	if q.PathValue("offer") != strconv.Itoa(r.offers) {
		folder = nil
	}
	r.mu.Unlock()
	if folder == nil {
		http.NotFound(w, q)
		return
	}
	file := q.PathValue("file")
	if _, err := folder.Stat(path.Clean(file)); err != nil {
		r.mu.Lock()
		r.missed = append(r.missed, file)
		r.mu.Unlock()
	}
	http.StripPrefix(strings.TrimSuffix(q.URL.Path, file), serve.Folder(folder.FS())).ServeHTTP(w, q)
}

// lacks lists missing files of the model, which errors of transformers.js do not always name.
func (r *pageRuntime) lacks() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.missed) == 0 {
		return ""
	}
	return " (the model's folder lacks " + strings.Join(r.missed, ", ") + ")"
}

// stages of a load, as the script marks them.
var stages = []browser.Stage{
	{Name: "fetch", How: "page clock: load called to all files of the model received"},
	{Name: "wasm", How: "page clock: files received to ONNX Runtime's WebAssembly instantiated; only in the first load"},
	{Name: "session", How: "page clock: WebAssembly ready to ONNX Runtime's session ready, weights on the device"},
}

// Page returns transformers.js's part of the page.
func (r *pageRuntime) Page() browser.Served {
	c := r.engine.config
	info := record.EngineInfo{Name: Name, Version: assets.Version, Origin: record.BuiltIn, Computes: "onnxruntime",
		Parts:  map[string]string{record.BundlePart: r.sha256},
		Policy: map[string]string{"backend": c.backend(), "prompt_cache": "off"}}
	return browser.Served{Info: info, Scripts: scripts, Stages: stages, OnCPU: c.backend() == Wasm,
		Site: browser.Site{Handler: r, Title: title, Imports: title + " " + assets.Version, Classify: classify,
			Elsewhere: c.backend() == Wasm, Do: "run make setup and build again"}}
}

// Messages of errors of the script, transformers.js and ONNX Runtime.
var (
	fellBack  = regexp.MustCompile(`was to compute on WebGPU`)
	notLoaded = regexp.MustCompile(`(?i)could not locate file|file was not found locally|failed to load external data`)
	noRoom    = regexp.MustCompile(`(?i)bad_alloc|memory access out of bounds|cannot enlarge memory|failed to allocate|` +
		`maximum memory size exceeded`)
	noSetUp = regexp.MustCompile(`has no WebGPU adapter for|no threads: |does not support fp16|` +
		`(?i)not a registered function/op|no opset import|could not find an implementation|unsupported model type|` +
		`Error in Node|INVALID_GRAPH|Unsupported model IR`)
)

func classify(message string) record.Class {
	for _, c := range []struct {
		re    *regexp.Regexp
		class record.Class
	}{{fellBack, record.Fallback}, {noRoom, record.OOM}, {noSetUp, record.SetUp}, {notLoaded, record.Download}} {
		if c.re.MatchString(message) {
			return c.class
		}
	}
	return ""
}

// Offer serves the model in the form that the page needs.
func (r *pageRuntime) Offer(ctx context.Context, m models.Model, device record.Device) (*browser.Offer, error) {
	p, err := r.engine.prepare(ctx, m, func(string) {})
	if err != nil {
		return nil, err
	}
	if err := r.engine.runs(p, device); err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the model's folder: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folder != nil {
		_ = r.folder.Close() // it was only read
	}
	r.folder, r.missed = folder, nil
	if r.offers == 0 || !r.same {
		r.offers++
	}
	e := r.engine
	o := &browser.Offer{Backend: e.config.backend(), Context: m.Context,
		Weights: p.same, Lacks: r.lacks, Ran: e.ran(device),
		Policy: map[string]string{"weights_dtype": p.DType, "kv_dtype": p.KVDType, "activations_dtype": p.KVDType,
			"context": strconv.Itoa(m.Context)},
		Options: map[string]any{"path": strconv.Itoa(r.offers) + "/model", "context": m.Context,
			"storage": e.settings.Storage, "backend": e.config.backend(), "threads": e.settings.Threads,
			"dtype": p.Form, "files": append([]string{p.File}, p.Data...), "externalFiles": len(p.Data)}}
	if e.config.backend() == WebGPU {
		o.Layout = layoutOf(m, p)
	}
	if text := differs(m, p); text != "" {
		o.Warnings = append(o.Warnings, record.Warning{Code: "weights-differ", Text: text})
	}
	return o, nil
}

// ran describes the device that computed, as the script found it.
func (e *Engine) ran(adapter record.Device) func(*browser.Page, json.RawMessage) (*browser.Ran, error) {
	return func(p *browser.Page, told json.RawMessage) (*browser.Ran, error) {
		var said struct {
			Backend   string
			Threads   int
			Onnx      string
			Isolated  bool
			Subgroups *bool // nil: no shaders
		}
		if err := json.Unmarshal(told, &said); err != nil {
			return nil, engine.Fail(record.BadOutput, "the page's description of what ran: %w", err)
		}
		d := &adapter
		if said.Backend == Wasm {
			d = &record.Device{Class: record.CPU, Name: "WebAssembly",
				Detail: map[string]string{"isolated": strconv.FormatBool(said.Isolated), "arch": runtime.GOARCH}}
		}
		if said.Backend == Wasm {
			p.Got(ran.With(ran.Threads, e.settings.Threads, said.Threads, "ONNX Runtime's setting"))
		}
		policy := map[string]string{"threads": strconv.Itoa(said.Threads), "onnxruntime": said.Onnx}
		if said.Subgroups != nil {
			policy["subgroups"] = map[bool]string{true: "on", false: "off"}[*said.Subgroups]
		}
		return &browser.Ran{Device: d, Policy: policy}, nil
	}
}

// Close closes the model's folder.
func (r *pageRuntime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folder == nil {
		return nil
	}
	err := r.folder.Close()
	r.folder = nil
	return err
}
