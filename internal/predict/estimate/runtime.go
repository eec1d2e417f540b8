package estimate

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/models"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/predict/layout"
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

// runtimes are those with known formulas, in the order in which they are asked whether they suit a model. The last
// suits any.
var runtimes = []Runtime{ggml{}, mlcWeb{}, vllm{}, torch{}}

func runtimeOf(m *engine.Memory) Runtime {
	for _, r := range runtimes {
		if r.traits().name == m.Runtime {
			return r
		}
	}
	return usual{}
}

// traits are what is the same for every model and setup.
type traits struct {
	name   engine.Runtime // in the Memory of engines
	flags  []string       // flags about the machine that it uses, of those that not all runtimes use
	layers bool           // several devices hold whole layers; else parts of each tensor
	// wholly: on a GPU there is also the program, and nothing is known of main memory.
	wholly bool
	kv     string // dtype of the KV cache if none is chosen; empty: that of activations
}

func (e *Estimate) runtime() Runtime { return runtimeOf(e.Setup.Engine) }

// chooser settles the settings.
type chooser interface {
	traits() traits
	// suits reports whether it is assumed for a model that any engine can run, if no engine is named.
	suits(m Model, s Setup) bool
	// limits refuses its own settings if they are out of range, whichever engine is asked about.
	limits(s Setup) error
	// check refuses settings that it does not have.
	check(m Model, s Setup) error
	// file says how users get a file that it runs of a model that it does not.
	file(m Model) string
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
	named(e *Estimate, name string) (layout.Format, error)
	// converted returns the weights if they are stored otherwise than in the files of the model.
	converted(e *Estimate) (c converted, ok bool)
	// loaded returns the weights by type after loading, the bytes that are held twice, and how they come to be.
	loaded(e *Estimate, f layout.Format) (types map[string]int64, twice int64, how string)
}

// converted are weights of one dtype, with the way in which they came to be.
type converted struct {
	bytes     int64
	name, how string
}

// cacher says how keys and values are in memory.
type cacher interface {
	// computes returns the dtype of activations.
	computes(e *Estimate) string
	// row returns the values of a token in one layer, and the keys among them.
	row(c hfconfig.Cache) (values, keys int64)
	// slots returns the number of tokens that a group of layers reserves and uses, for one sequence.
	slots(e *Estimate, c hfconfig.Cache) (reserved, used int64)
	// reserves says how the reserved size follows from the size of a token.
	reserves(perToken, used, sequences string) string
	// share is the part of a GPU's memory that it reserves, whatever the model takes; 0: what the model takes. The
	// cache gets all that is left, which settle sets.
	share(s Setup) float64
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
	// onGPU reports whether a GPU holds layers.
	onGPU(s Setup) bool
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

func (usual) traits() traits { return traits{} }

func (usual) suits(Model, Setup) bool { return false }

func (usual) limits(Setup) error { return nil }

func (usual) check(Model, Setup) error { return nil }

func (usual) file(Model) string {
	return "name a config.json of this model, or give its sizes: --num-layers, --num-heads, --hidden-size, --head-dim"
}

func (usual) choose(*Estimate) {}

func (usual) take(*Setup, map[string]string) {}

func (usual) settings(*Estimate, map[string]string) {}

func (usual) unquantised(name string, _ bool) string { return name }

func (usual) converted(*Estimate) (c converted, ok bool) { return c, false }

func (usual) loaded(e *Estimate, _ layout.Format) (types map[string]int64, twice int64, how string) {
	return e.Model.Stored, 0, ""
}

func (usual) row(c hfconfig.Cache) (values, keys int64) { return c.Values, c.Keys }

func (usual) share(Setup) float64 { return 0 }

func (usual) settle(*Estimate) {}

func (usual) touched(e *Estimate) (Component, string) { return e.Component(Activation), "" }

func (usual) grows(*Estimate) []string { return nil }

func (usual) onGPU(s Setup) bool { return s.OnGPU || s.GPULayers > 0 }

func (usual) further(Estimate) []Need { return nil }

func (usual) needsF16(Estimate) bool { return false }

func (usual) mapped(Setup) bool { return false }

func (usual) changes(Estimate, func(string, func(*Setup))) {}

// loads refuses a model in a form that only other engines load.
func (s Setup) loads(m Model) error {
	if m.Only == "" || slices.Contains(s.Engine.Formats, m.Only) {
		return nil
	}
	do := runtimeOf(s.Engine).file(m)
	if m.Stated != nil {
		do = "name a GGUF file or a config.json of this model; its shape is unknown here"
	}
	return fault.New(fault.Usage, do, "%s does not run %ss such as %s", s.Engine.Name, models.Title(m.Only), m.Name)
}

func (usual) named(e *Estimate, name string) (layout.Format, error) {
	if f, ok := layout.Packed(name); ok && f.Scales == "" {
		return f, nil
	} else if ok {
		return f, notMLC(e.Setup.Engine.Title, name)
	}
	if f, ok := layout.Mixture(name, e.Model, nil); ok {
		return f, nil
	}
	return e.method(name)
}

// method returns an unquantised format of a name, or that of a quantisation method.
func (e *Estimate) method(name string) (layout.Format, error) {
	if n, ok := dtype.Number(name); ok && n.Bits() >= 16 {
		return layout.Format{Name: n.Name, Plain: n}, nil
	}
	q, err := layout.Method(name, e.Setup.GroupSize)
	if err != nil {
		return layout.Format{}, err
	}
	return layout.Quantized(q, e.plain, e.Model.Layers), nil
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

// Choose returns the engine with that name; without a name, the first that loads the model's form, if not all can, or
// whose runtime suits the model.
func Choose(engines []*engine.Memory, name string, m Model, s Setup) (*engine.Memory, error) {
	var suiting engine.Runtime
	for _, r := range slices.Backward(runtimes) {
		if r.suits(m, s) {
			suiting = r.traits().name
		}
	}
	suits := func(e *engine.Memory) bool {
		return m.Only != "" && slices.Contains(e.Formats, m.Only) || m.Only == "" && e.Runtime == suiting
	}
	var names []string
	for _, e := range engines {
		if e.Name == name || name == "" && suits(e) {
			return e, nil
		}
		names = append(names, e.Name)
	}
	do := strings.TrimSpace(nearest.Question(name, names) + " Choose one of " + strings.Join(names, ", "))
	return nil, fault.New(fault.UnknownEngine, do, "--engine %s is unknown", name)
}
