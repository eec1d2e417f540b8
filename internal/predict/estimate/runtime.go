package estimate

import (
	"cmp"
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

// Runtime is how a library that engines compute with holds a model in memory. Each has a file. All have a name, a
// device and rules; another zero field means that nothing is special.
type Runtime struct {
	name   engine.Runtime // in the Memory of engines
	gguf   bool           // it runs GGUF files
	device device         // where it computes
	// assumed: without a named engine, it is assumed for a model that any engine can run; nil: for none.
	assumed func(m Model, s Setup) bool

	settings []Setting                                     // its own
	take     func(s *Setup, settings map[string]string)    // reads settings that are not of one field, and
	tell     func(e *Estimate, settings map[string]string) // adds them

	lacks    map[string]string // dtypes of unquantised weights that it does not have, with those in their place
	replaces map[string]string // the same, of dtypes that it has, unless a user chooses them
	kv       string            // dtype of the KV cache if none is chosen; "": that of activations
	expands  bool              // caches the keys and values of a latent, not the latent
	starts   bool              // what runs before the load is the same process, of which Engine.Before is the memory
	reserves string            // how the cache follows from its size per token, its used size, and sequences

	notes func(e Estimate) string // what a prediction assumes, or ""
	// saves adds settings of all engines that need less memory.
	saves func(e Estimate, add func(say string, set func(*Setup)))
	rules
}

// rules are what a runtime computes. It embeds usual, and replaces what it does in its own way.
type rules interface {
	// choose fills in defaults that depend on other settings, and warns.
	choose(e *Estimate)
	// weights says how it holds the weights, and in which dtype it computes with them.
	weights(e *Estimate) (held, error)
	// cache returns the number of tokens that a group of layers reserves and uses, for one sequence.
	cache(e *Estimate, c hfconfig.Cache) (reserved, used int64)
	// activations returns the peak of intermediate results, and the part of it that is written to.
	activations(e *Estimate) (Component, touched)
	// itself returns the memory of the engine, and names what its processes grow by until their peak; nil: unknown.
	itself(e *Estimate, weights int64) (c Component, grows []string)
}

// held says how weights are in memory.
type held struct {
	format   layout.Format    // of weights that are not as in the model's files
	types    map[string]int64 // bytes by type of those that are
	twice    int64            // bytes of these that exist twice
	how      string           // what happens to these when they are loaded
	made     *made            // weights that the engine makes of the files instead
	computes string           // dtype of activations
	mapped   bool             // the system can drop weights and read them again
}

// made are weights of one dtype, with the way in which they came to be.
type made struct {
	bytes     int64
	name, how string
}

// touched is the part of a reserved component that is written to. Without a description, it is all of it.
type touched struct {
	Component
	how string
}

// runtimes are those with known formulas, in the order in which they are asked whether they suit a model. The last
// suits any.
var runtimes = []*Runtime{ggmlRuntime, ggmlWebRuntime, mlcRuntime, onnxRuntime, vllmRuntime, torchRuntime}

// unknownRuntime has no formulas of its own.
var unknownRuntime = &Runtime{device: someGPU, rules: usual{}}

func runtimeOf(m *engine.Memory) *Runtime {
	if i := slices.IndexFunc(runtimes, func(r *Runtime) bool { return r.name == m.Runtime }); i >= 0 {
		return runtimes[i]
	}
	return unknownRuntime
}

func (e *Estimate) runtime() *Runtime { return runtimeOf(e.Setup.Engine) }

// usual is a runtime without special ways: it holds weights and cache as they are.
type usual struct{}

func (usual) choose(*Estimate) {}

func (usual) weights(e *Estimate) (held, error) {
	f, err := e.format(e.named)
	return held{format: f, types: e.Model.Stored, computes: e.computes()}, err
}

func (usual) cache(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	seen := e.seen(c)
	return seen, seen
}

// activations is the prefill of a plain implementation: all prompt tokens pass a layer at a time.
func (usual) activations(e *Estimate) (Component, touched) {
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
	return c, touched{}
}

func (usual) itself(e *Estimate, _ int64) (Component, []string) {
	p, devices := e.Setup.Engine.Program, 1.0
	if p.Devices {
		devices = float64(e.Setup.TensorParallel)
	}
	return scaled(Framework, p.Bytes*devices+p.Token*float64(e.Model.Vocab), p.Low, p.High, "", p.How, Low), nil
}

// loads refuses a model in a form that only other engines load.
func (s Setup) loads(m Model) error {
	if m.Only == "" || slices.Contains(s.Engine.Formats, m.Only) {
		return nil
	}
	do := "name a config.json of this model, or give its sizes: --num-layers, --num-heads, --hidden-size, --head-dim"
	switch {
	case m.Stated != nil:
		do = "name a GGUF file or a config.json of this model; its shape is unknown here"
	case runtimeOf(s.Engine).gguf:
		do = fmt.Sprintf("write its GGUF file with \"llmparity model convert %s --to gguf\", and name that", m.Name)
	}
	return fault.New(fault.Usage, do, "%s does not run %ss such as %s", s.Engine.Name, models.Title(m.Only), m.Name)
}

// Published returns what is predicted for a package in an engine: it, or the model that it was made from. only names
// the engines that run packages.
func (s *Setup) Published(e *engine.Memory, m, of Model, only string) Model {
	switch {
	case slices.Contains(e.Formats, m.Only):
		return m
	case runtimeOf(e).gguf:
		packed, _ := dtype.PackedAs(m.DType)
		s.Quantization = cmp.Or(s.Quantization, packed.GGUF())
		return of.Noted("predicted for a GGUF file in %s, because the package (%s) is for %s only; for another type, use "+
			"--quantization", s.Quantization, m.DType, only)
	}
	return of.Noted("predicted for the published %s weights, because the package is for %s only", of.DType, only)
}

// Choose returns the engine with that name; without a name, the first that loads the model's form, if not all can, or
// whose runtime suits the model.
func Choose(engines []*engine.Memory, name string, m Model, s Setup) (*engine.Memory, error) {
	var suiting engine.Runtime
	for _, r := range slices.Backward(runtimes) {
		if r.assumed != nil && r.assumed(m, s) {
			suiting = r.name
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

// General reports whether the engine is assumed for any model, without a reason in the model or the machine.
func (s Setup) General() bool { return s.Engine.Runtime == runtimes[len(runtimes)-1].name }
