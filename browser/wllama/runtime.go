package wllama

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	assets "llmparity/assets/wllama"
	"llmparity/browser"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

//go:embed scripts
var embedded embed.FS

// scripts are the engine's: engine.js loads models, join.js and inner.js see into wllama's worker, requests.js asks it.
var scripts, _ = fs.Sub(embedded, "scripts") // it exists

// runtime is wllama in a page, which serves one model at a time.
type runtime struct {
	engine *Engine
	served browser.Served

	mu        sync.Mutex
	offers    int  // number so far, part of URLs
	same      bool // all have the URL of the first, which the browser's store has
	files     map[string]string
	tokenizer *tokenizer.Tokenizer // nil: no model is offered
}

// policy restricts the page to running what we serve, and workers that it makes of that itself, as wllama does.
const policy = "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src 'self' blob:; connect-src 'self' data:; " +
	"img-src data:; style-src 'self'"

// runtime makes the runtime of a session.
func (e *Engine) runtime() (*runtime, error) {
	npm, err := assets.Files()
	if err != nil {
		return nil, err
	}
	sum, err := hashOf(npm)
	if err != nil {
		return nil, err
	}
	r := &runtime{engine: e}
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.Files(scripts))
	for _, name := range []string{assets.Module, assets.Wasm} {
		mux.Handle("GET /engine/"+name, http.StripPrefix("/engine", serve.Folder(npm)))
	}
	mux.HandleFunc("GET /model/{offer}/{name}", r.serveFile)
	mux.HandleFunc("GET /model/ids", r.answer(func(t *tokenizer.Tokenizer, of string) (any, error) {
		return t.Prompt(of), nil
	}))
	mux.HandleFunc("GET /model/text", r.answer(func(t *tokenizer.Tokenizer, of string) (any, error) {
		var ids []int
		for id := range strings.FieldsSeq(of) {
			n, err := strconv.Atoi(id)
			if err != nil || n < 0 || n >= len(t.Tokens) {
				return nil, fmt.Errorf("%q is no token", id)
			}
			ids = append(ids, n)
		}
		text, exact := textOf(t, ids)
		return map[string]any{"text": text, "exact": exact}, nil
	}))
	r.served = browser.Served{InPlace: true, OnCPU: e.config.backend() == WASM,
		Site: browser.Site{Title: title, Imports: "wllama " + assets.Version, Do: "run make setup and build again",
			Classify: classify, Elsewhere: true,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Content-Security-Policy", policy)
				mux.ServeHTTP(w, q)
			})},
		Scripts: scripts,
		Info: record.EngineInfo{Name: Name, Version: assets.Version, Origin: record.BuiltIn,
			Computes: "ggml", Vector: wasmVector,
			Parts: map[string]string{record.BundlePart: sum}, Policy: map[string]string{"prompt_cache": "off"}},
		Stages: []browser.Stage{
			{Name: "download", How: "page clock: load called to model in the browser's storage (OPFS) or memory"},
			{Name: "wasm", How: "page clock: model in the browser to WebAssembly compiled and started"},
			{Name: "backend", How: "page clock: WebAssembly started to devices found"},
			{Name: "weights", How: "page clock: devices found to weights read, by wllama's log"},
			{Name: "context", How: "page clock: weights read to load done: KV cache, workspaces and shaders"},
		},
	}
	return r, nil
}

// hashOf hashes wllama's module and WebAssembly.
func hashOf(npm fs.FS) (string, error) {
	h := sha256.New()
	for _, name := range []string{assets.Module, assets.Wasm} {
		b, err := fs.ReadFile(npm, name)
		if err != nil {
			return "", fmt.Errorf("reading wllama: %w", err)
		}
		_, _ = h.Write(b) // it never fails
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// Page returns what the page serves, and who the engine is.
func (r *runtime) Page() browser.Served { return r.served }

// textOf returns a text that becomes ids as a prompt, or as many of the first as possible, and their number.
func textOf(t *tokenizer.Tokenizer, ids []int) (text string, exact int) {
	own := 0 // what is put before every text
	if t.AddBOS {
		if len(ids) == 0 || ids[0] != t.BOS {
			return "", 0
		}
		own = 1
	}
	for n := len(ids); n > own; n-- {
		text := t.Decode(ids[own:n])
		if utf8.ValidString(text) && slices.Equal(t.Prompt(text), ids[:n]) {
			return text, n
		}
	}
	return "", own
}

func (r *runtime) serveFile(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	path := r.files[q.PathValue("name")]
	current := q.PathValue("offer") == strconv.Itoa(r.offers)
	r.mu.Unlock()
	if path == "" || !current {
		http.NotFound(w, q)
		return
	}
	http.ServeFile(w, q, path)
}

// answer serves what is asked about the model that is offered.
func (r *runtime) answer(of func(t *tokenizer.Tokenizer, of string) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		t := r.tokenizer
		r.mu.Unlock()
		if t == nil {
			http.NotFound(w, q)
			return
		}
		v, err := of(t, q.FormValue("of"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(v) // fails if the browser has gone
	}
}

// messages of llama.cpp and wllama, by class.
var messages = []struct {
	class record.Class
	of    *regexp.Regexp
}{
	{record.OOM, regexp.MustCompile(`(?i)bad_alloc|(failed|unable) to allocate|enlarge memory|Cannot allocate WebAssembly.Memory|grow memory`)},
	{record.SetUp, regexp.MustCompile(`no threads: `)},
	{record.BadModel, regexp.MustCompile(`(?i)unknown model architecture|invalid ggml type|invalid magic|failed to load model|` +
		`cannot load the model|unknown pre-tokenizer|missing tensor|data is not within the file`)},
	{record.Crash, regexp.MustCompile(`\(ABORT\)|wllama has crashed|wllama's worker failed`)},
	{record.BadOutput, regexp.MustCompile(`has a probability of 0|instead of the forced`)},
}

func classify(message string) record.Class {
	for _, m := range messages {
		if m.of.MatchString(message) {
			return m.class
		}
	}
	return ""
}

// Offer serves the model's files.
func (r *runtime) Offer(_ context.Context, m models.Model, device record.Device) (*browser.Offer, error) {
	if err := m.Same(); err != nil {
		return nil, engine.SetUp(err)
	}
	t, err := tokenizer.Open(m.Path)
	if err != nil {
		return nil, engine.SetUp(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offers == 0 || !r.same {
		r.offers++
	}
	r.tokenizer, r.files = t, map[string]string{}
	paths, offered := m.Files(), []string{}
	for i, path := range paths { // wllama finds the parts by their names
		name := "model.gguf"
		if len(paths) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.gguf", i+1, len(paths))
		}
		r.files[name] = path
		offered = append(offered, fmt.Sprintf("../model/%d/%s", r.offers, name))
	}
	l := &layout{}
	asked := r.engine.config.backend()
	if asked == Auto {
		asked = ""
	}
	return &browser.Offer{Backend: asked, Context: m.Context,
		Layout: l, Policy: r.engine.policy(m, noLog), Ran: r.ran(m, device, l),
		Options: map[string]any{"files": offered, "params": r.engine.params(m), "threads": r.engine.threads(),
			"window": m.Context, "storage": r.engine.settings.Storage, "keep": r.same}}, nil
}

// Close forgets the model.
func (r *runtime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokenizer, r.files = nil, nil
	return nil
}

// wasmVector is the bits of WebAssembly's vectors.
const wasmVector = 128
