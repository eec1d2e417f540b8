// Package pagekind is an example of an engine in a browser. It is complete: one line in package kinds adds it to
// llmparity, and it passes the suite that every engine passes. Its test does both.
//
// Its script computes in plain JavaScript, from weights that it also puts into WebGPU buffers, where the page's ledger
// counts them: GGUF files of a plain llama with F32 weights, greedily. To be short, it asks this package to tokenise.
package pagekind

import (
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"llmparity/browser"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

// Kind is what llmparity knows about the engine.
var Kind = &engine.Kind{
	Name: "page-example", Title: "the page's example", Section: "page_example", Browser: true,
	Config: func() engine.Config { return &Config{browser.Defaults()} },
	New: func(_ string, c engine.Config, s engine.Settings) engine.Engine {
		return &Engine{c.(*Config).Browser(s.Watchdog)}
	},
	Shared:  []string{"watchdog"},
	DTypes:  []string{"f32"},
	KVTypes: []string{"f32"},
	Runs:    func(dtype string) string { return "computes it in f32 from " + dtype + ", slowly" },
	Found: func(engine.Here) engine.Finding {
		return engine.Finding{Name: "page-example", Ready: true, Version: version, Can: "run small F32 models"}
	},
}

const version = "1"

// Config has only the settings of the browser and the page.
type Config struct{ browser.Settings }

// CheckPlan accepts everything.
func (*Config) CheckPlan(engine.Settings) error { return nil }

// Engine is the script in a browser.
type Engine struct{ config browser.Config }

// Name returns the engine's name in records.
func (*Engine) Name() string { return Kind.Name }

// Caps returns what the engine can do.
func (e *Engine) Caps() engine.Caps {
	caps := e.config.Caps()
	caps.Scores = true
	return caps
}

// Check finds the browser and refuses what the script cannot compute.
func (e *Engine) Check(_ context.Context, m models.Model) error {
	if _, err := e.config.Find(); err != nil {
		return err
	}
	f, _, err := open(m.Path)
	if err != nil {
		return err
	}
	return f.Close()
}

// Open opens the page.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	s, err := browser.Start(ctx, e.config, &runtime{}, p)
	if err != nil {
		return nil, err // not a nil *Session in an interface
	}
	return s, nil
}

// open opens a model that the script can compute.
func open(path string) (*gguf.File, gguf.Architecture, error) {
	f, err := gguf.OpenReadable(path)
	if err != nil {
		return nil, gguf.Architecture{}, engine.SetUp(err)
	}
	a, err := f.Architecture()
	if err == nil {
		// What is not in this list must be absent.
		plain := gguf.Architecture{Name: gguf.Llama, ContextLength: a.ContextLength, EmbeddingLength: a.EmbeddingLength,
			BlockCount: a.BlockCount, FeedForwardLength: a.FeedForwardLength, HeadCount: a.HeadCount,
			HeadCountKV: a.HeadCountKV, HeadDim: a.HeadDim, VocabSize: a.VocabSize, RMSEpsilon: a.RMSEpsilon,
			RopeBase: a.RopeBase, Tied: a.Tied}
		if plain.RotaryDim = a.RotaryDim; a.Rotated() != a.HeadDim || !reflect.DeepEqual(a, plain) {
			err = fault.New(fault.UnknownArch, "choose a plain llama", "the example does not compute this model")
		}
	}
	if err != nil {
		return nil, a, errors.Join(engine.SetUp(err), f.Close())
	}
	return f, a, nil
}

//go:embed scripts
var embedded embed.FS

// runtime serves the page, with one model.
type runtime struct {
	mu        sync.Mutex
	file      *gguf.File // nil: none is offered
	weights   []gguf.Tensor
	tokenizer *tokenizer.Tokenizer
}

// Page returns what the page serves, and who the engine is.
func (r *runtime) Page() browser.Served {
	scripts, _ := fs.Sub(embedded, "scripts") // it exists
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.Files(scripts))
	mux.HandleFunc("GET /model/weights", r.offered(r.serveWeights))
	mux.HandleFunc("GET /model/ids", r.offered(func(w http.ResponseWriter, q *http.Request) {
		_ = json.NewEncoder(w).Encode(r.tokenizer.Prompt(q.FormValue("text"))) // fails if the browser has gone
	}))
	mux.HandleFunc("GET /model/text", r.offered(func(w http.ResponseWriter, q *http.Request) {
		var ids []int
		for id := range strings.FieldsSeq(q.FormValue("ids")) {
			n, _ := strconv.Atoi(id) // the script sends numbers
			ids = append(ids, n)
		}
		_ = json.NewEncoder(w).Encode(r.tokenizer.Decode(ids))
	}))
	return browser.Served{
		Site:    browser.Site{Handler: mux, Title: Kind.Title, Imports: "its script", Do: "mend it"},
		Scripts: scripts,
		Info: record.EngineInfo{Name: Kind.Name, Version: version,
			Policy: map[string]string{"weights_dtype": "f32", "kv_dtype": "f32", "prompt_cache": "off"}},
		Stages: []browser.Stage{{Name: "download", How: "page clock: load called to weights received"},
			{Name: "upload", How: "page clock: weights received to GPU done with the copy"}},
	}
}

// offered serves a model, if there is one.
func (r *runtime) offered(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.file == nil {
			http.NotFound(w, q)
			return
		}
		serve(w, q)
	}
}

// serveWeights sends all weights as little-endian float32, in the order of Offer's options.
func (r *runtime) serveWeights(w http.ResponseWriter, _ *http.Request) {
	for _, t := range r.weights {
		values, err := r.file.Floats(t)
		if err == nil {
			err = binary.Write(w, binary.LittleEndian, values)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the page sees a broken download
		}
	}
}

// Offer opens a model to be served, and describes it to the script.
func (r *runtime) Offer(_ context.Context, m models.Model, _ record.Device) (*browser.Offer, error) {
	f, a, err := open(m.Path)
	if err != nil {
		return nil, err
	}
	v, err := f.Vocabulary()
	if err != nil {
		return nil, errors.Join(engine.SetUp(err), f.Close())
	}
	if err := r.Close(); err != nil { // of an earlier one
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file, r.tokenizer, r.weights = f, tokenizer.New(v), nil
	type tensor struct {
		Name   string `json:"name"`
		Values uint64 `json:"values"`
	}
	var tensors []tensor
	for _, want := range a.Tensors() {
		t, _ := f.Tensor(want.Name) // checked by Architecture
		n := uint64(1)
		for _, size := range t.Shape {
			n *= size
		}
		r.weights, tensors = append(r.weights, t), append(tensors, tensor{t.Name, n})
	}
	return &browser.Offer{Context: m.Context, Layout: layout{}, Options: map[string]any{"context": m.Context,
		"tensors": tensors, "layers": a.BlockCount, "heads": a.HeadCount, "kvHeads": a.HeadCountKV,
		"headDim": a.HeadDim,
		"epsilon": a.RMSEpsilon, "ropeBase": a.RopeBase, "eos": v.EOS}}, nil
}

// Close closes the model.
func (r *runtime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// layout knows that buffers that were made during the upload are the weights.
type layout struct{}

// Parts splits a reading of the ledger.
func (layout) Parts(groups []browser.LedgerGroup, _ int64) []record.Value {
	parts := map[string]int64{"weights_bytes": 0, "unattributed_bytes": 0}
	for _, g := range groups {
		if g.Stage == "upload" {
			parts["weights_bytes"] += g.Bytes * g.Count
		} else {
			parts["unattributed_bytes"] += g.Bytes * g.Count
		}
	}
	return sample.Values(parts)
}

// Used knows nothing: the script keeps its cache in JavaScript.
func (layout) Used(int64) (int64, bool) { return 0, false }
