package estimate

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/models/hfconfig"
)

// Runtime is how a library that engines compute with holds a model in memory. Each has a file, and embeds usual, whose
// methods it replaces where it differs.
type Runtime interface {
	chooser
	weigher
	cacher
	worker
	needer
	placer
}

// runtimes are those with known formulas, by their names in engines, in the order in which they are asked whether they
// suit a model. The last suits any.
var runtimes = []struct {
	name engine.Runtime
	Runtime
}{{engine.GGML, ggml{}}, {engine.MLC, browserMLC{}}, {engine.VLLM, vllm{}}, {engine.Torch, torch{}}}

func runtimeOf(m *engine.Memory) Runtime {
	for _, r := range runtimes {
		if r.name == m.Runtime {
			return r.Runtime
		}
	}
	return usual{}
}

func (e *Estimate) runtime() Runtime { return runtimeOf(e.Setup.Engine) }

// chooser settles the settings.
type chooser interface {
	// suits reports whether it is assumed for a model if no engine is named.
	suits(m Model, s Setup) bool
	// check refuses settings that it does not have.
	check(m Model, s Setup) error
	// choose fills in its defaults, and warns.
	choose(e *Estimate)
	// take reads its own settings, and settings adds them, under the names that records use.
	take(s *Setup, settings map[string]string)
	settings(e *Estimate, out map[string]string)
}

// weigher says how the weights are in memory.
type weigher interface {
	// unquantised returns the dtype of weights that are not quantised. given: the user chose it.
	unquantised(name string, given bool) string
	// named returns the format of weights that a user names.
	named(e *Estimate, name string) (format, error)
	// converted returns the weights if they are stored otherwise than in the files of the model.
	converted(e *Estimate) (c converted, ok bool)
	// loaded returns the weights by type after loading, and copies adds what is held twice.
	loaded(e *Estimate, f format) map[string]int64
	copies(e *Estimate, c *Component)
	// splits reports whether several devices hold parts of each tensor; else they hold whole layers.
	splits() bool
}

// converted are weights of one dtype, with the way in which they came to be.
type converted struct {
	bytes     int64
	name, how string
}

// cacher says how keys and values are in memory.
type cacher interface {
	// computes returns the dtype of activations, and caches that of the KV cache if none is chosen.
	computes(e *Estimate) string
	caches(e *Estimate) string
	// row returns the values of a token in one layer, and the keys among them.
	row(c hfconfig.Cache) (values, keys int64)
	// slots returns the number of tokens that a group of layers reserves and uses, for one sequence.
	slots(e *Estimate, c hfconfig.Cache) (reserved, used int64)
	// reserves says how the reserved size follows from the size of a token.
	reserves(perToken, used, sequences string) string
	// fills reports whether the cache takes all memory that is left; settle then sets it.
	fills(s Setup) bool
	settle(e *Estimate)
}

// worker says what it takes to compute.
type worker interface {
	// activations returns the peak of intermediate results; touched the part of it that is written to, and its name.
	activations(e *Estimate) Component
	touched(e *Estimate) (c Component, how string)
	// itself returns the memory of the engine.
	itself(e *Estimate, weights int64) Component
	// grows names what its processes grow by until their peak; nil: unknown.
	grows(e *Estimate) []string
}

// needer says what must fit where.
type needer interface {
	// onGPU reports whether a GPU holds layers. wholly: then also the program, and nothing is known of main memory.
	onGPU(s Setup) bool
	wholly() bool
	// further returns needs beside those of main and GPU memory.
	further(e Estimate) []Need
	// needsF16 reports whether a WebGPU adapter must have shader-f16.
	needsF16(e Estimate) bool
	// mapped reports whether the system can drop weights and read them again.
	mapped(s Setup) bool
	// changes adds settings that need less memory.
	changes(e Estimate, add func(say string, set func(*Setup)))
}

// usual is a runtime without special ways: it holds weights and cache as they are, on devices with CUDA.
type usual struct{}

func (usual) suits(Model, Setup) bool { return false }

func (usual) choose(*Estimate) {}

func (usual) take(*Setup, map[string]string) {}

func (usual) settings(*Estimate, map[string]string) {}

func (usual) unquantised(name string, _ bool) string { return name }

func (usual) converted(*Estimate) (c converted, ok bool) { return c, false }

func (usual) loaded(e *Estimate, _ format) map[string]int64 { return e.Model.Stored }

func (usual) copies(*Estimate, *Component) {}

func (usual) splits() bool { return true }

func (usual) caches(e *Estimate) string { return e.DTypes.Activations }

func (usual) row(c hfconfig.Cache) (values, keys int64) { return c.Values, c.Keys }

func (usual) fills(Setup) bool { return false }

func (usual) settle(*Estimate) {}

func (usual) touched(e *Estimate) (Component, string) { return e.Component(Activation), "" }

func (usual) grows(*Estimate) []string { return nil }

func (usual) onGPU(s Setup) bool { return s.OnGPU || s.GPULayers > 0 }

func (usual) wholly() bool { return false }

func (usual) further(Estimate) []Need { return nil }

func (usual) needsF16(Estimate) bool { return false }

func (usual) mapped(Setup) bool { return false }

func (usual) changes(Estimate, func(string, func(*Setup))) {}

// check refuses packages, which only one runtime reads.
func (usual) check(m Model, s Setup) error {
	return refusePackage(m, s,
		"name a config.json of this model, or give its sizes: --num-layers, --num-heads, --hidden-size, --head-dim")
}

func refusePackage(m Model, s Setup, do string) error {
	if !m.Packaged() {
		return nil
	}
	if m.Stated != nil {
		do = "name a GGUF file or a config.json of this model; its shape is unknown here"
	}
	return fault.New(fault.Usage, do, "%s does not run WebLLM packages such as %s", s.Engine.Name, m.Name)
}

func (usual) named(e *Estimate, name string) (format, error) {
	if f, ok := mlcFormat(name); ok && f.scales == "" {
		return f, nil
	} else if ok {
		return f, notMLC(e.Setup.Engine.Title, name)
	}
	if f, ok := ggufFormat(name, e.Model, nil); ok {
		return f, nil
	}
	return e.method(name)
}

// method returns an unquantised format of a name, or that of a quantisation method.
func (e *Estimate) method(name string) (format, error) {
	if n, ok := dtype.Number(name); ok && n.Bits() >= 16 {
		return format{name: n.Name, plain: n}, nil
	}
	q, err := named(name, e.Setup.GroupSize)
	if err != nil {
		return format{}, err
	}
	return quantizedFormat(q, e.plain, e.Model.Layers), nil
}

func (usual) computes(e *Estimate) string {
	if e.plain.Bits() < 16 {
		return "bf16"
	}
	return e.plain.Name
}

func (usual) slots(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	seen := e.seen(c)
	return seen, seen
}

// seen returns the tokens of a sequence that the last one attends to.
func (e *Estimate) seen(c hfconfig.Cache) int64 {
	if c.Window > 0 {
		return min(e.Tokens, int64(c.Window))
	}
	return e.Tokens
}

func (usual) reserves(_, used, _ string) string { return used + "; grows with the text" }

func (usual) itself(e *Estimate, _ int64) Component {
	p, devices := e.Setup.Engine.Program, 1.0
	if p.Devices {
		devices = float64(e.Setup.TensorParallel)
	}
	return scaled(Framework, p.Bytes*devices+p.Token*float64(e.Model.Vocab), p.Low, p.High, "", p.How, Low)
}

// activations is the prefill of a plain implementation: all prompt tokens pass a layer at a time.
func (usual) activations(e *Estimate) Component {
	m := e.Model
	h, i, q, kv := sizes(m)
	b, tokens := width(e.DTypes.Activations), float64(e.Setup.InputLen)*float64(e.Sequences)
	logits := float64(m.Vocab) * float64(e.Sequences) * (b + 4)
	peak := tokens * b * (2*h + max(3*i, q+2*kv+h))
	c := scaled(Activation, peak+logits, 0.5, 1.5, e.DTypes.Activations,
		fmt.Sprintf("prefill of %.0f tokens: two hidden states, tensors of attention or the feed-forward part "+
			"(whichever are larger), logits of the last token", tokens), Low)
	// Older versions keep the logits of every token; eager attention keeps the scores of every pair.
	c.High += int64(tokens * float64(m.Vocab) * (b + 4))
	return c
}

// Choose returns the engine with that name; without a name, the first whose runtime suits the model.
func Choose(engines []*engine.Memory, name string, m Model, s Setup) (*engine.Memory, error) {
	var suiting engine.Runtime
	for _, r := range slices.Backward(runtimes) {
		if r.suits(m, s) {
			suiting = r.name
		}
	}
	var names []string
	for _, e := range engines {
		if e.Name == name || name == "" && e.Runtime == suiting {
			return e, nil
		}
		names = append(names, e.Name)
	}
	do := strings.TrimSpace(nearest.Question(name, names) + " Choose one of " + strings.Join(names, ", "))
	return nil, fault.New(fault.UnknownEngine, do, "--engine %s is unknown", name)
}
