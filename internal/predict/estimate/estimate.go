// Package estimate predicts how much memory a language model needs in an engine. It only calculates; no engine starts.
//
// A Model comes from a file or folder, a catalogue, or from sizes alone. A Setup names the engine and its settings. The
// result has a Component each for weights, KV cache, activations, the engine itself and the overhead of several
// devices, with its range, method and confidence.
//
// Weights and KV cache are exact if their sizes and dtypes are known. Activations are the largest tensors that exist
// at one time, as far as the engine's allocator is known. The engine's own share was measured for the engines that run
// here and is a rule of thumb for the others. Fragmentation, other programs and drivers are not modelled.
package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modelsize"
)

// Model describes the model of an estimate.
type Model = modelsize.Model

// Confidence is how far a figure can be trusted.
type Confidence = modelsize.Confidence

// The levels of confidence.
const (
	High   = modelsize.High
	Medium = modelsize.Medium
	Low    = modelsize.Low
)

func worse(a, b Confidence) Confidence {
	if a == Low || b == High {
		return a
	}
	return b
}

// Setup is the engine and its settings. A zero is the engine's own default.
type Setup struct {
	Engine         *engine.Memory // nil: an unknown engine that keeps weights and KV cache as the file has them
	Context        int            // context window of a sequence, in tokens
	InputLen       int
	OutputLen      int
	BatchSize      int // sequences of a request
	Concurrency    int // simultaneous requests
	DType          string
	KVDType        string
	Quantization   string
	GroupSize      int
	TensorParallel int
	GPUMemoryGiB   float64
	OnGPU          bool   // it may use a GPU
	OnCPU          bool   // there is no GPU
	GPULayers      int    // layers on the GPU
	ValueType      string // dtype of the cached values if it differs from the keys'
	Own            []any  // settings that only one runtime has, by the type that Change takes
}

// Component is one part of the memory, in bytes over all devices.
type Component struct {
	Name       string     `json:"name"`
	Low        int64      `json:"low_bytes"`
	Best       int64      `json:"bytes"`
	High       int64      `json:"high_bytes"`
	DType      string     `json:"dtype,omitempty"`
	Method     string     `json:"method"`
	Confidence Confidence `json:"confidence"`
	// Label is the origin of the figure: "file size", "calculated", "predicted", or "reported" by a catalogue that the
	// method names.
	Label string `json:"label,omitempty"`
}

// The names of the components: those of figures, and of what only predictions have.
const (
	Weights       = figure.ModelWeights
	KVReserved    = figure.KVCache
	KVUsed        = figure.KVCacheUsed
	Activation    = figure.Activations
	Framework     = figure.FrameworkOverhead
	MultiGPU      = figure.MultiGPUOverhead
	Increase      = figure.MemoryIncrease
	Total         = figure.TotalMemory
	TotalUsed     = "total_used"                   // Total, with only the filled part of the KV cache
	TotalReserved = "total_reserved"               // AsMeasured: Total, if all reserved memory were touched
	Program       = "program"                      // AsMeasured: Framework, the engine's own program
	Together      = "weights_kv_cache_activations" // what a catalogue states
)

// DTypes are the dtypes of the components.
type DTypes struct {
	Weights     string `json:"weights"`
	Activations string `json:"activations"`
	KVCache     string `json:"kv_cache"`
	Scales      string `json:"scales,omitempty"`
}

// Estimate is the predicted memory of a model in an engine.
type Estimate struct {
	Model      Model
	Setup      Setup // with defaults filled in
	DTypes     DTypes
	Components []Component
	Sequences  int
	Tokens     int64            // tokens of a sequence at its longest
	PerToken   int64            // bytes of KV cache per token: all layers, all devices
	ScaleBytes int64            // scales and zero points of the weights
	ByFormat   map[string]int64 // bytes of the weights by dtype
	Warnings   []string

	plain  dtype.DType // dtype of everything that is not quantised
	extra  int64       // bytes of weights that all devices together have beyond one copy
	packed []int64     // bytes of the tensors of a package that keeps a file's types; nil: another one
	asked  Setup       // as given, without defaults
	other  bool        // the weights are not in memory as the files have them

	touched touched  // of the activations
	grows   []string // what the engine's processes grow by; nil: unknown
	mapped  bool     // the system can drop weights and read them again
	share   float64  // part of a GPU's memory that is reserved, whatever the model takes; 0: what it takes
}

// Component returns the component with that name, or the zero value.
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

// Of predicts the memory of a model.
func Of(m Model, s Setup) (Estimate, error) {
	s.Engine = cmp.Or(s.Engine, &engine.Memory{Name: "an unknown engine", Runtime: ggmlRuntime.name})
	if err := s.check(m); err != nil {
		return Estimate{}, err
	}
	e := &Estimate{Model: m, Setup: s, asked: s, Warnings: slices.Clone(m.Notes)}
	e.choose()
	if m.Stated != nil {
		e.stated()
		return *e, nil
	}
	var err error
	if e.plain, err = e.unquantised(); err != nil {
		return Estimate{}, err
	}
	h, err := e.runtime().weights(e)
	if err != nil {
		return Estimate{}, err
	}
	weights, err := e.weigh(h)
	if err != nil {
		return Estimate{}, err
	}
	reserved, used, err := e.keysAndValues()
	if err != nil {
		return Estimate{}, err
	}
	activations, part := e.activations()
	if e.touched = part; part.how == "" {
		e.touched.Component = activations
	}
	e.Components = []Component{weights, reserved, used, activations}
	itself, grows := e.runtime().itself(e, weights.Best)
	e.grows = grows
	e.Components = append(e.Components, itself, e.several())
	e.Components = slices.DeleteFunc(e.Components, func(c Component) bool { return c.Name == "" })
	e.fill()
	e.total()
	if c, ok := e.increase(); ok {
		e.Components = append(e.Components, c)
	}
	e.label()
	return *e, nil
}

const maxTokens = 1 << 27 // longer than any context

// check refuses settings that make no sense.
func (s Setup) check(m Model) error {
	number := modelsize.Within
	if err := cmp.Or(number("--context", s.Context, maxTokens),
		number("--input-len", s.InputLen, maxTokens), number("--output-len", s.OutputLen, maxTokens),
		number("--batch-size", s.BatchSize, 1<<16), number("--concurrency", s.Concurrency, 1<<16),
		number("--tensor-parallel-size", s.TensorParallel, 1<<10),
		number("--group-size", s.GroupSize, 1<<16), within("--gpu-memory-gb", s.GPUMemoryGiB, 1<<20)); err != nil {
		return err
	}
	for _, o := range Settings() {
		if err := o.check(s); err != nil {
			return err
		}
	}
	if s.Context > 0 && s.InputLen+s.OutputLen > s.Context {
		return fault.New(fault.Usage, "raise --context or shorten the text",
			"--input-len and --output-len are %d tokens together, which exceeds --context %d",
			s.InputLen+s.OutputLen, s.Context)
	}
	if err := cmp.Or(s.loads(m), s.fixed(m)); err != nil {
		return err
	}
	switch t := s.TensorParallel; {
	case t > 1 && runtimeOf(s.Engine).device.single:
		return fault.New(fault.Usage, "omit --tensor-parallel-size", "%s uses one device", s.Engine.Title)
	case t > 1 && m.Heads > 0 && m.Heads%t != 0:
		return fault.New(fault.Usage, "choose a divisor", "--tensor-parallel-size %d does not divide %d attention heads", t,
			m.Heads)
	}
	return nil
}

// choose fills in the defaults.
func (e *Estimate) choose() {
	s := &e.Setup
	s.BatchSize, s.Concurrency, s.TensorParallel = max(s.BatchSize, 1), max(s.Concurrency, 1), max(s.TensorParallel, 1)
	e.chooseText()
	e.Sequences = s.BatchSize * s.Concurrency
	r := e.runtime()
	for _, o := range r.settings {
		o.fill(s)
	}
	r.choose(e)
}

// defaultContext is the longest context that a run uses without --context.
const defaultContext = 4096

// chooseText settles the length of the text and of the context.
func (e *Estimate) chooseText() {
	s, m := &e.Setup, e.Model
	text := s.InputLen + s.OutputLen
	if s.Context == 0 {
		switch {
		case text > 0:
			s.Context = text
		case m.Stated != nil && m.Stated.Context > 0:
			s.Context = m.Stated.Context
		case m.MaxContext > 0 && m.MaxContext <= defaultContext:
			s.Context = m.MaxContext
		default:
			s.Context = defaultContext
			e.warn("context: %d tokens assumed; set --context, or --input-len and --output-len", defaultContext)
		}
	}
	if m.MaxContext > 0 && s.Context > m.MaxContext {
		in := ""
		if m.LongestIn != "" {
			in = ", " + m.LongestIn
		}
		e.warn("the context of %d tokens exceeds the model's maximum of %d%s", s.Context, m.MaxContext, in)
	}
	e.Tokens = int64(cmp.Or(text, s.Context))
	s.InputLen = cmp.Or(s.InputLen, max(int(e.Tokens)-s.OutputLen, 1))
}

func (e *Estimate) warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...))
}

// total appends the sum of the components: as reserved, and with the filled part of the KV cache only.
func (e *Estimate) total() {
	sum := Component{Name: Total, Method: "sum of all reserved memory", Confidence: High}
	used := Component{Name: TotalUsed, Method: "the same, counting only the filled part of the KV cache",
		Confidence: High}
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
		sum.Confidence, used.Confidence = Medium, Medium // the uncertain part is the smaller one
	}
	if e.fills() && e.Component(KVReserved).Best > 0 {
		sum.Low, sum.High = sum.Best, sum.Best // the KV cache takes all that is left
	}
	e.Components = append(e.Components, sum)
	if e.Component(KVUsed).Name != "" {
		e.Components = append(e.Components, used)
	} else if e.Model.Stated == nil {
		e.warn("the size of the KV cache is unknown and not in the total; set " + kvFlags)
	}
}

// add adds o to the sum c.
func (c *Component) add(o Component) {
	c.Low, c.Best, c.High = c.Low+o.Low, c.Best+o.Best, c.High+o.High
	c.Confidence = worse(c.Confidence, o.Confidence)
}

// scaled returns a component whose range is given as factors of the best value.
func scaled(name string, best, low, high float64, dtype, method string, c Confidence) Component {
	r := func(v float64) int64 { return int64(math.Round(min(max(v, 0), 1<<60))) }
	return Component{Name: name, Low: r(best * low), Best: r(best), High: r(best * high), DType: dtype, Method: method,
		Confidence: c}
}

// exact returns a component without a range.
func exact(name string, n int64, dtype, method string, c Confidence) Component {
	return Component{Name: name, Low: n, Best: n, High: n, DType: dtype, Method: method, Confidence: c}
}
