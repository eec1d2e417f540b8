package wllama

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"

	assets "llmparity/assets/wllama"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// Engine is wllama in a browser.
type Engine struct {
	config   Config
	settings engine.Settings
}

var (
	_ engine.Settled = (*Engine)(nil)
	_ engine.Loader  = (*Engine)(nil)
	_ engine.Opener  = (*Engine)(nil)
)

// Name returns Name.
func (*Engine) Name() string { return Name }

// Caps returns what the engine can do.
func (e *Engine) Caps() engine.Caps {
	caps := e.browser().Caps()
	caps.TakesIDs, caps.Scores, caps.Rounds = true, true, e.rounds()
	return caps
}

func (e *Engine) browser() browser.Config {
	c := e.config.Browser(e.settings.Watchdog)
	c.Keeps = browser.Keeps{In: e.settings.Storage, Before: e.settings.Stored}
	return c
}

// rounds reports whether it may compute at less than single precision or sum in another order. A KV cache of --dtype's
// own precision is left to package plan.
func (e *Engine) rounds() bool {
	plain := func(value string) bool { return value == "" || value == "f32" }
	return !plain(e.cacheType(e.config.CacheK, "")) || !plain(e.cacheType(e.config.CacheV, "")) || e.flash() != "off" ||
		e.onGPU()
}

// onGPU predicts whether it computes with WebGPU. SwiftShader lacks shader-f16.
func (e *Engine) onGPU() bool {
	a := browser.Adapter(e.config.Adapter)
	return e.config.backend() == WebGPU || e.config.backend() == Auto && (a == browser.Lavapipe || !a.Software())
}

// cacheType returns a chosen dtype of keys or values, or the default.
func (e *Engine) cacheType(own, none string) string { return cmp.Or(own, e.settings.KVDType, none) }

func (e *Engine) cacheTypes() (k, v string) {
	plain := cmp.Or(e.settings.DType, "f32")
	return e.cacheType(e.config.CacheK, plain), e.cacheType(e.config.CacheV, plain)
}

// flash is on if --kv-cache-dtype needs it.
func (e *Engine) flash() string {
	if quantised(e.settings.KVDType) && e.config.CacheV == "" {
		return "auto"
	}
	return e.config.flash()
}

func (e *Engine) threads() int { return max(1, e.settings.Threads) }

// memoryLimit is the most that wllama's WebAssembly can address.
const memoryLimit = 4 << 30

// Check finds the browser, the module and the model's files, and refuses models that WebAssembly cannot hold.
func (e *Engine) Check(_ context.Context, m models.Model) error {
	c := e.browser()
	if _, err := c.Find(); err != nil {
		return err
	}
	if err := c.CheckKeeps(title, record.OPFS, record.NoStorage); err != nil {
		return err
	}
	if _, err := assets.Files(); err != nil {
		return err
	}
	f, err := gguf.Open(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	defer f.Close()
	if _, err := f.Vocabulary(); err != nil { // prompts are tokenised here
		return engine.SetUp(err)
	}
	var size int64
	for _, path := range m.Files() {
		info, err := os.Stat(path)
		if err != nil {
			return engine.SetUp(fault.Wrap(fault.BadModel, err, "", "the model cannot be read"))
		}
		size += info.Size()
	}
	if size >= memoryLimit && !e.onGPU() {
		return &engine.Failure{Class: record.OOM, Err: fault.New(fault.WontFit,
			"choose a smaller or more quantized model, or --wllama-backend webgpu on a GPU",
			"%s takes %.1f GiB, but wllama's WebAssembly memory ends at 4 GiB", m.Name, float64(size)/(1<<30))}
	}
	return nil
}

// Open starts the browser and opens the page, which has wllama's code but no model yet.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	return e.OpenFor(ctx, models.Model{}, p)
}

// OpenFor is Open, with what the browser's store is to have of a model.
func (e *Engine) OpenFor(ctx context.Context, m models.Model, p engine.Probe) (engine.Session, error) {
	r, err := e.runtime()
	if err != nil {
		return nil, err
	}
	c := e.browser()
	c.Keeps.Model = m
	r.same = c.Keeps.Fills()
	s, err := browser.Start(ctx, c, r, p)
	if err != nil {
		return nil, err // not a nil *Session in an interface
	}
	return s, nil
}

// Settings returns the configured settings; what llama.cpp chooses is not known yet.
func (e *Engine) Settings(m models.Model) map[string]string {
	c := e.config
	s := e.policy(m, logs.Load{Offloaded: -1, Batch: c.Batch, UBatch: c.UBatch})
	if c.Batch > 0 || c.UBatch > 0 { // cannot compute more at a time than is submitted
		s["ubatch"] = strconv.Itoa(min(cmp.Or(c.Batch, 2048), cmp.Or(c.UBatch, 512))) // llama.cpp's defaults
	}
	if m.Context > 0 {
		s["context"] = strconv.Itoa(m.Context)
	}
	return s
}

// Loaded describes the model in memory.
func (e *Engine) Loaded(m models.Model) engine.Loaded {
	return engine.Loaded{As: e.config.Held(Memory), Path: m.Path}
}

// policy lists the settings that affect figures or ids, and what the log says was actually used.
func (e *Engine) policy(m models.Model, said logs.Load) map[string]string {
	k, v := e.cacheTypes()
	kv := k
	if v != k {
		kv = fmt.Sprintf("K %s, V %s", k, v)
	}
	flash := e.flash()
	if said.Flash != "" && flash == "auto" {
		flash = "auto: " + said.Flash
	}
	p := map[string]string{
		"weights_dtype":   m.DType,
		"kv_dtype":        kv,
		"flash_attention": flash,
		"threads":         strconv.Itoa(e.threads()),
		"prompt_cache":    "off",
		"prompt_states":   "wllama keeps the KV cache of earlier prompts in WebAssembly memory, and has no option against it",
		"mmap":            "off",
		"backend_asked":   e.config.backend(),
		"warmup":          "off",
		"special_tokens":  "special tokens in prompts are recognized; BOS is added if the model's file says so",
	}
	for name, n := range map[string]int{"batch": said.Batch, "ubatch": said.UBatch} {
		if n > 0 {
			p[name] = strconv.Itoa(n)
		}
	}
	return p
}

// params are the options of wllama's loadModel. Its defaults, an f16 KV cache and flash attention (another order of
// sums), flip close greedy choices.
func (e *Engine) params(m models.Model) map[string]any {
	k, v := e.cacheTypes()
	layers := 1 << 16 // all
	if e.config.backend() == WASM {
		layers = 0
	}
	// Info (2) is the lowest level that logs buffer sizes. It logs nothing per token.
	p := map[string]any{"n_ctx": m.Context, "n_gpu_layers": layers, "cache_type_k": k, "cache_type_v": v,
		"flash_attn": e.flash() != "off", "n_parallel": 1, "n_ctx_checkpoints": 0, "warmup": false, "log_level": 2}
	for name, n := range map[string]int{"n_batch": e.config.Batch, "n_ubatch": e.config.UBatch} {
		if n > 0 {
			p[name] = n
		}
	}
	return p
}
