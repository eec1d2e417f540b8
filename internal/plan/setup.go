package plan

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Setup is a plan whose axes have one value each, but for those that need no launch of their own: its Shapes.
type Setup struct {
	ID int // from 1, in the plan's order
	// its lists of axes are empty: what they said stands in Engines, Model, Context, DType, KVDType, Versions, Threads,
	// Slots, Start
	Plan   Plan
	Shapes []Shape
}

// Shape is what is asked of an engine in a cell.
type Shape struct {
	// from 1 within the plan; the same text, source or number of tokens has the same number in every setup
	PromptID    int
	Prompt      string  // empty where InputTokens says how long it is to be: who knows the model's tokenizer makes it
	Source      *Source // where the prompt, or those of its requests, stand in a file; nil: nowhere
	InputTokens int
	MaxTokens   int
	Traffic     *record.Traffic // nil: one request.
	Engines     []string        // of the setup's, those that are asked; nil: all
}

// Asks tells whether an engine of the setup is asked this.
func (s Shape) Asks(engine string) bool {
	return s.Engines == nil || slices.Contains(s.Engines, engine)
}

// Cells is how many a setup has.
func (s Setup) Cells() (n int) {
	for _, shape := range s.Shapes {
		for _, e := range s.Plan.Engines {
			if shape.Asks(e) {
				n++
			}
		}
	}
	return n
}

// Count tells how many setups and cells a plan has, repetitions not counted. It is an error that there is none, or more
// than MostCells.
func (p Plan) Count() (setups, cells int, err error) {
	all, err := p.expand()
	for _, s := range all {
		cells += s.Cells()
	}
	if err == nil && cells == 0 {
		err = errors.New("engines: the plan has no cell")
		if len(p.Exclude) > 0 {
			err = errors.New("exclude: it leaves no cell; leave out some of its entries, or name more in them")
		}
	}
	return len(all), cells, err
}

// Setups gives them in order. Of a plan that is not valid there are none.
func (p Plan) Setups() iter.Seq[Setup] {
	all, _ := p.expand()
	return slices.Values(all)
}

// expand makes the plan's setups: of each group's cells those together that need the same launch, in the order in
// which the first of them comes. Where include sets what a launch needs in some cells of a setup, those are a setup
// of their own.
func (p Plan) expand() ([]Setup, error) {
	m, err := newMatrix(p)
	if err != nil {
		return nil, err
	}
	var out []Setup
	for _, g := range m.groups {
		var order []string
		cells := map[string][]combination{}
		for i, c := range g.cells {
			k := g.was[i].launch() + c.launch()
			if cells[k] == nil {
				order = append(order, k)
			}
			cells[k] = append(cells[k], c)
		}
		for _, k := range order {
			out = append(out, m.setup(len(out)+1, g, cells[k]))
		}
	}
	return out, nil
}

// setup makes one of cells that need the same launch.
func (m *matrix) setup(id int, g *group, cells []combination) Setup {
	p := m.plan
	p.Axes, p.Models, p.Include, p.Exclude, p.Traffic, p.Sources = Axes{}, nil, nil, nil, nil, nil
	p.Model, p.Deployment = g.model, g.deployment
	for _, a := range m.axes {
		p.setOne(a, g.values[a][cells[0][a]])
	}
	p.Engines = g.names(cells)
	p.Prompts, p.MaxTokens, p.Slots = nil, 0, 0
	s := Setup{ID: id, Shapes: m.shapes(g, cells, len(p.Engines))}
	for i, shape := range s.Shapes {
		if shape.Prompt != "" && (i == 0 || shape.PromptID != s.Shapes[i-1].PromptID) {
			p.Prompts = append(p.Prompts, shape.Prompt)
		}
		p.MaxTokens = max(p.MaxTokens, shape.MaxTokens)
		if shape.Traffic != nil {
			p.Slots = max(p.Slots, cmp.Or(shape.Traffic.Concurrency, openSlots))
		}
	}
	s.Plan = p
	return s
}

// names are the engines of cells, in the plan's order.
func (g *group) names(cells []combination) (out []string) {
	for i, engine := range g.values[ofEngine] {
		if slices.ContainsFunc(cells, func(c combination) bool { return c[ofEngine] == i }) {
			out = append(out, engine.text)
		}
	}
	return out
}

// shapes are what cells ask, with the engines that they ask it of.
func (m *matrix) shapes(g *group, cells []combination, engines int) (out []Shape) {
	slices.SortStableFunc(cells, func(x, y combination) int { // what include sets may have parted cells that are alike
		return slices.Compare(x[ofPrompt:axisCount], y[ofPrompt:axisCount])
	})
	for len(cells) > 0 {
		first, n := cells[0], 1
		for n < len(cells) && cells[n][ofPrompt] == first[ofPrompt] && cells[n][ofOutput] == first[ofOutput] {
			n++
		}
		s := m.shape(g, first)
		if n < engines {
			s.Engines = g.names(cells[:n])
		}
		out, cells = append(out, s), cells[n:]
	}
	return out
}

// shape is what a cell asks.
func (m *matrix) shape(g *group, c combination) Shape {
	at := func(a axis) int { return g.values[a][c[a]].n }
	a := m.asked[at(ofPrompt)]
	s := Shape{PromptID: at(ofPrompt) + 1, Prompt: a.text, Source: a.source, InputTokens: a.tokens,
		MaxTokens: at(ofOutput)}
	s.Traffic = m.plan.traffic(at(ofBatch), at(ofConcurrency), s)
	if s.Traffic == nil {
		return s
	}
	if !a.mixed && m.plan.Traffic.complete() { // alone, to hold the mix against
		s.Traffic.Mix = nil
	}
	for _, k := range s.Traffic.Mix {
		s.MaxTokens = max(s.MaxTokens, k.MaxTokens)
	}
	return s
}

// Unserved tells what a setup's plan asks for that an engine here does not do, so that its cells would be others than
// those asked for: a line each, the field first. It knows of no file and no version: whoever finds the model and the
// engine says what those lack.
func (p Plan) Unserved(name string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := p.TensorParallel; n > 1 {
		say("tensor_parallel_size: %d: no engine here divides a model among GPUs; use 1, or a server that does", n)
	}
	if p.Quantization != "" {
		say("quantization: %s: a model is as its file has it; name a file or a package with such weights",
			p.Quantization)
	}
	k, _ := p.kinds.Of(name)
	if k == nil {
		k = new(engine.Kind)
	}
	if p.DType != "" && k.DTypes != nil && !slices.Contains(k.DTypes, p.DType) {
		say("dtype: %s: %s computes in %s", p.DType, name, strings.Join(k.DTypes, " or "))
	}
	if p.KVDType == "" {
		return out
	}
	switch {
	case k.KVTypes == nil:
		say("kv_cache_dtype: %s: the KV cache of %s can't be chosen from here", p.KVDType, name)
	case !slices.Contains(k.KVTypes(p.DType), p.KVDType):
		say("kv_cache_dtype: %s: the KV cache of %s is %s", p.KVDType, name, strings.Join(k.KVTypes(p.DType), ", "))
	}
	return out
}

// Unheeded tells what a setup's plan says that makes no difference here: a line each, the field first.
func (p Plan) Unheeded() []string {
	var out []string
	if p.ContainerName != "" {
		out = append(out, fmt.Sprintf("container_name: %s is not heeded: engines run on this machine as they are, and a server that runs in a "+
			"container is asked by its address", p.ContainerName))
	}
	if p.GPUMemory != 0 {
		out = append(out, fmt.Sprintf("gpu_memory_utilization: %g is not heeded: no engine here takes a share of a GPU's memory in advance", p.GPUMemory))
	}
	return out
}
