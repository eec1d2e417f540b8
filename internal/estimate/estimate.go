// Package estimate predicts how much memory a language model takes in an engine, by arithmetic alone: no engine is
// started.
//
// A Model comes from a GGUF, a WebLLM package, a Hugging Face config.json, or bare numbers; a Setup says in which
// engine it runs and with what. What comes out is a component each for weights, KV cache (reserved; used), activations
// and workspaces, the framework and the cost of several devices, with a range, the way it was got, and how far it can
// be trusted.
//
// Weights and KV caches are exact where their sizes and types are known. Activations are sums of the largest tensors
// that live at one time, as far as an engine's allocator is known. What a framework takes was measured here for the
// engines that run here, and is a rule of thumb for the others; that is said with each figure. It knows nothing of
// fragmentation, of other programs, or of drivers.
package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/hfconfig"
	"llmparity/internal/mlc"
	"llmparity/internal/nearest"
)

// Confidence is how far a figure can be trusted.
type Confidence string

// The levels: computed from what is known; from what is known and a rule that was held against measurements; a rule of
// thumb.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

func worse(a, b Confidence) Confidence {
	if a == Low || b == High {
		return a
	}
	return b
}

// Model is what an estimate is about.
type Model struct {
	Name       string
	Source     string // gguf, webllm-package, hf-config, safetensors, numbers
	Type       string // the architecture
	Parameters int64
	Active     int64 // that a token passes; 0: all
	Layers     int   // 0 where it isn't known, as with what follows
	Hidden     int
	Heads      int
	KVHeads    int
	HeadDim    int
	Inter      int // the width of the feed-forward part that a token passes
	Vocab      int
	MaxContext int
	DType      string // in which the weights are published
	Weights    []hfconfig.Weight
	Caches     []hfconfig.Cache
	Quantized  *hfconfig.Quantized
	Latent     bool
	// Stored are the bytes of the weights by type, where a file tells them; nil: they are worked out.
	Stored     map[string]int64
	Matrices   map[string]int64 // of those the ones that llama.cpp may lay out anew for a processor
	Partial    bool             // some of the files are missing
	Trust      Confidence       // in parameters and shapes
	CacheTrust Confidence       // in the KV cache's; "": the same
	Library    *mlc.Library     // of a WebLLM package
	Tensors    []int64          // bytes of its weights, in the order in which they are loaded
	Chunk      int              // of prompts, where a package says it
	Largest    int64            // bytes of a package's largest tensor
	Stated     *Stated          // what a list says of it, where nothing says its sizes
	Notes      []string
}

// Setup is where a model runs and with what. Zeros are the engine's own choices.
type Setup struct {
	Engine         *engine.Memory // nil: one that has weights and KV cache as the file has them
	Context        int            // tokens that a sequence has room for
	InputLen       int
	OutputLen      int
	BatchSize      int // sequences of a request
	Concurrency    int // requests at a time
	DType          string
	KVDType        string
	ValueType      string // of the KV cache's values, where it is another; llama.cpp's alone
	Quantization   string
	GroupSize      int
	TensorParallel int
	GPUUtilization float64
	GPUMemoryGiB   float64
	UBatch         int  // tokens that llama.cpp computes at a time
	NoFlash        bool // llama.cpp without flash attention
	NoMmap         bool // llama.cpp reads the file into memory of its own
	GPULayers      int  // that llama.cpp puts on a GPU
	// Repacks are the types that llama.cpp lays out anew for the processor, as Repacks gives them for this one; nil:
	// none.
	Repacks      []string
	OnGPU        bool // WebLLM's adapter is a real one, Ollama may use a GPU
	OnCPU        bool // transformers has no GPU
	MaxBatched   int  // tokens that vLLM computes at a time
	PrefillChunk int  // tokens that WebLLM computes at a time
}

// Component is a part of the memory, in bytes over all devices.
type Component struct {
	Name       string     `json:"name"`
	Low        int64      `json:"low_bytes"`
	Best       int64      `json:"bytes"`
	High       int64      `json:"high_bytes"`
	DType      string     `json:"dtype,omitempty"`
	Method     string     `json:"method"`
	Confidence Confidence `json:"confidence"`
	// Label is where the figure comes from: "file size", "calculated", "predicted", or "reported" by
	// a list, which the method names.
	Label string `json:"label,omitempty"`
}

// The components' names: those of memory profiles of schema 2.0.
const (
	Weights    = "model_weights"
	KVReserved = "kv_cache"
	KVUsed     = "kv_cache_used"
	Activation = "activations"
	Framework  = "framework_overhead"
	MultiGPU   = "multi_gpu_overhead"
	Total      = "total"
	TotalUsed  = "total_used"
)

// DTypes are the types of each component.
type DTypes struct {
	Weights     string `json:"weights"`
	Activations string `json:"activations"`
	KVCache     string `json:"kv_cache"`
	Scales      string `json:"scales,omitempty"`
}

// Estimate is what a model takes.
type Estimate struct {
	Model      Model
	Setup      Setup // with what was chosen for zeros
	DTypes     DTypes
	Components []Component
	Sequences  int
	Tokens     int64 // of a sequence, when it is as long as it gets
	PerToken   int64 // bytes of KV cache of one token, in all layers, on all devices
	ScaleBytes int64 // of the weights: scales and zero points
	// ByFormat are the weights' bytes by the type that they are stored in.
	ByFormat  map[string]int64
	PerDevice []int64 // the best total of each device
	Warnings  []string
}

// Component gives one by its name; zero where there is none.
func (e Estimate) Component(name string) Component {
	if i := slices.IndexFunc(e.Components, func(c Component) bool { return c.Name == name }); i >= 0 {
		return e.Components[i]
	}
	return Component{}
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Of predicts what a model takes.
func Of(m Model, s Setup) (Estimate, error) {
	if s.Engine == nil {
		s.Engine = &engine.Memory{Name: "an unknown engine", Runtime: engine.GGML}
	}
	if err := s.check(m); err != nil {
		return Estimate{}, err
	}
	e := &Estimate{Model: m, Setup: s, Warnings: slices.Clone(m.Notes)}
	e.choose()
	if m.Stated != nil {
		e.stated()
		return *e, nil
	}
	format, err := e.format()
	if err != nil {
		return Estimate{}, err
	}
	weights, err := e.weigh(format)
	if err != nil {
		return Estimate{}, err
	}
	cache, err := e.cache()
	if err != nil {
		return Estimate{}, err
	}
	activations := e.activations()
	e.Components = []Component{weights.whole, cache.reserved, activations}
	framework := e.framework(weights)
	several := e.several(weights)
	if e.runs(engine.VLLM) {
		cache.reserved = e.upFront(cache, weights.whole, activations, framework, several)
	}
	e.Components = []Component{weights.whole}
	if cache.reserved.Method != "" {
		e.Components = append(e.Components, cache.reserved, cache.used)
	}
	e.Components = append(e.Components, activations, framework)
	if several.Method != "" {
		e.Components = append(e.Components, several)
	}
	e.total()
	if c, ok := e.increase(); ok {
		e.Components = append(e.Components, c)
	}
	e.label()
	return *e, nil
}

// maxTokens is beyond any context.
const maxTokens = 1 << 27

// check says what makes no sense.
func (s Setup) check(m Model) error {
	for _, f := range []bound{{"--context", s.Context, maxTokens}, {"--input-len", s.InputLen, maxTokens},
		{"--output-len", s.OutputLen, maxTokens},
		{"--batch-size", s.BatchSize, 1 << 16}, {"--concurrency", s.Concurrency, 1 << 16},
		{"--tensor-parallel-size", s.TensorParallel, 1 << 10},
		{"--group-size", s.GroupSize, 1 << 16}, {"--ubatch", s.UBatch, 1 << 20},
		{"--max-num-batched-tokens", s.MaxBatched, 1 << 24},
		{"--prefill-chunk", s.PrefillChunk, 1 << 20}} {
		if f.value < 0 || f.value > f.most {
			return fault.New(fault.Usage, fmt.Sprintf("0 to %d are right", f.most), "%s is %d", f.name, f.value)
		}
	}
	if s.Context > 0 && s.InputLen+s.OutputLen > s.Context {
		return fault.New(fault.Usage, "give a larger --context, or less text",
			"--input-len and --output-len are %d tokens together, --context has room for %d",
			s.InputLen+s.OutputLen, s.Context)
	}
	for _, f := range []struct {
		name        string
		value, most float64
	}{{"--gpu-memory-utilization", s.GPUUtilization, 1}, {"--gpu-memory-gb", s.GPUMemoryGiB, 1 << 20}} {
		if !(f.value >= 0 && f.value <= f.most) {
			return fault.New(fault.Usage, fmt.Sprintf("more than 0 and at most %g is right", f.most), "%s is %g",
				f.name, f.value)
		}
	}
	if err := s.packageCheck(m); err != nil {
		return err
	}
	if t := s.TensorParallel; t > 1 {
		switch {
		case s.Engine.Runtime == engine.MLC:
			return fault.New(fault.Usage, "leave --tensor-parallel-size out", "%s runs on one device", s.Engine.Title)
		case m.Heads > 0 && m.Heads%t != 0:
			return fault.New(fault.Usage, "choose a divisor of them",
				"--tensor-parallel-size %d doesn't divide %d attention heads", t, m.Heads)
		}
	}
	return nil
}

// choose puts in what wasn't said.
func (e *Estimate) choose() {
	s, m := &e.Setup, e.Model
	s.BatchSize, s.Concurrency, s.TensorParallel = max(s.BatchSize, 1), max(s.Concurrency, 1), max(s.TensorParallel, 1)
	e.chooseText()
	e.Sequences = s.BatchSize * s.Concurrency
	if e.runs(engine.MLC) && e.Sequences > 1 {
		e.warn("%s has one sequence at a time: %d requests wait for one another", s.Engine.Title, e.Sequences)
		e.Sequences = 1
	}
	if e.publishedWide() {
		e.warn("the weights are published in float32; vLLM takes them in 16 bits unless --dtype float32 is given")
	}
	s.UBatch, s.MaxBatched, s.GPUUtilization = cmp.Or(s.UBatch, 512), cmp.Or(s.MaxBatched, 8192),
		cmp.Or(s.GPUUtilization, 0.9)
	s.PrefillChunk = cmp.Or(s.PrefillChunk, m.Chunk, min(s.Context, 128))
}

// Choose is the engine of a name; of none, the first that has the runtime which a model is for.
func Choose(engines []*engine.Memory, name string, m Model, s Setup) (*engine.Memory, error) {
	runtime := engine.Torch
	switch {
	case m.Source == "gguf":
		runtime = engine.GGML
	case m.packaged():
		runtime = engine.MLC
	case s.GPUMemoryGiB > 0 || s.GPUUtilization > 0:
		runtime = engine.VLLM
	}
	var names []string
	for _, e := range engines {
		if e.Name == name || name == "" && e.Runtime == runtime {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fault.New(fault.UnknownEngine, "there are "+strings.Join(names, ", "),
		"--engine %s is not known (the nearest: %s)", name, nearest.Of(name, names, 1)[0])
}

// runs tells whether the engine's runtime is one of those.
func (e Estimate) runs(runtimes ...engine.Runtime) bool {
	return slices.Contains(runtimes, e.Setup.Engine.Runtime)
}

// unasked is the longest context that a run takes where none is asked for.
const unasked = 4096

// chooseText finds out how long the text is, and for how much there is room.
func (e *Estimate) chooseText() {
	s, m := &e.Setup, e.Model
	text := s.InputLen + s.OutputLen
	if s.Context == 0 {
		switch {
		case text > 0:
			s.Context = text
		case m.Stated != nil && m.Stated.Context > 0:
			s.Context = m.Stated.Context
		case m.MaxContext > 0 && m.MaxContext <= unasked:
			s.Context = m.MaxContext
		default:
			s.Context = unasked
			e.warn("a context of %d tokens is assumed; --context, or --input-len and --output-len, give another",
				unasked)
		}
	}
	if m.MaxContext > 0 && s.Context > m.MaxContext {
		e.warn("the model was made for texts of %d tokens, %d are asked for", m.MaxContext, s.Context)
	}
	e.Tokens = int64(cmp.Or(text, s.Context))
	if s.InputLen == 0 {
		s.InputLen = max(int(e.Tokens)-s.OutputLen, 1)
	}
}

func (e *Estimate) warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...))
}

// total sums up what is taken, and what of it is used.
func (e *Estimate) total() {
	sum := Component{Name: Total, Method: "the sum of what is reserved", Confidence: High}
	used := Component{Name: TotalUsed, Method: "the same with that part of the KV cache alone that tokens lie in",
		Confidence: High}
	known := e.Component(KVUsed).Name != ""
	for _, c := range e.Components {
		if c.Name != KVUsed {
			sum.add(c)
		}
		if c.Name != KVReserved {
			used.add(c)
		}
	}
	if largest := e.Component(Weights).Best; sum.Confidence == Low && sum.Best > 0 &&
		float64(largest+e.Component(KVReserved).Best) > 0.8*float64(sum.Best) && e.Model.Trust != Low {
		sum.Confidence = Medium // what is uncertain is the smaller part of it
		used.Confidence = Medium
	}
	if e.runs(engine.VLLM) && e.Setup.GPUMemoryGiB > 0 && e.Component(KVReserved).Best > 0 {
		sum.Low, sum.High = sum.Best, sum.Best // the KV cache takes what the rest leaves
	}
	e.Components = append(e.Components, sum)
	if known {
		e.Components = append(e.Components, used)
	} else if e.Model.Stated == nil {
		e.warn("nothing is known of the KV cache, which is not in the total; --num-layers, --num-heads, --num-kv-heads and --head-dim say it")
	}
	t := int64(e.Setup.TensorParallel)
	for range t {
		e.PerDevice = append(e.PerDevice, sum.Best/t)
	}
}

// add makes a component a sum.
func (c *Component) add(o Component) {
	c.Low, c.Best, c.High = c.Low+o.Low, c.Best+o.Best, c.High+o.High
	c.Confidence = worse(c.Confidence, o.Confidence)
}

// scaled is a component around a best guess.
func scaled(name string, best, low, high float64, dtype, method string, c Confidence) Component {
	r := func(v float64) int64 { return int64(math.Round(min(max(v, 0), 1<<60))) }
	return Component{Name: name, Low: r(best * low), Best: r(best), High: r(best * high), DType: dtype, Method: method,
		Confidence: c}
}

func exact(name string, n int64, dtype, method string, c Confidence) Component {
	return Component{Name: name, Low: n, Best: n, High: n, DType: dtype, Method: method, Confidence: c}
}
