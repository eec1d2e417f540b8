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

// Setup is the part of a plan with the same start settings: model, context window, dtype, versions and so on.
type Setup struct {
	ID     int  // from 1, in the plan's order
	Plan   Plan // with single values instead of lists
	Shapes []Shape
}

// Shape is the request of a cell.
type Shape struct {
	PromptID    int     // from 1; the same prompt has the same number in all setups
	Prompt      string  // empty if it is generated with InputTokens
	Source      *Source // nil: Prompt or InputTokens
	InputTokens int
	MaxTokens   int
	Traffic     *record.Traffic // nil: one request
	Engines     []string        // engines of the setup that have such a cell; nil: all
}

// Asks reports whether an engine of the setup has a cell of this shape.
func (s Shape) Asks(engine string) bool {
	return s.Engines == nil || slices.Contains(s.Engines, engine)
}

// Cells is the number of cells of a setup.
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

// Count returns the numbers of setups and cells. No cell, or more than MostCells, is an error.
func (p Plan) Count() (setups, cells int, err error) {
	all, err := p.expand()
	for _, s := range all {
		cells += s.Cells()
	}
	if err == nil && cells == 0 {
		err = errors.New("engines: the plan has no cells")
		if len(p.Exclude) > 0 {
			err = errors.New("exclude: leaves no cells; remove entries or make them more specific")
		}
	}
	return len(all), cells, err
}

// Setups returns the setups in order; none if the plan is not valid.
func (p Plan) Setups() iter.Seq[Setup] {
	all, _ := p.expand()
	return slices.Values(all)
}

// expand groups cells with the same start settings into setups, in the order of their first cells. Cells whose start
// settings include changes are setups of their own.
func (p Plan) expand() ([]Setup, error) {
	m, err := newMatrix(p)
	if err != nil {
		return nil, err
	}
	var out []Setup
	for _, g := range m.groups {
		var order []string
		cells := map[string][]combination{}
		for _, c := range g.cells {
			k := c.was.launch() + c.is.launch()
			if cells[k] == nil {
				order = append(order, k)
			}
			cells[k] = append(cells[k], c.is)
		}
		for _, k := range order {
			out = append(out, m.setup(len(out)+1, g, cells[k]))
		}
	}
	return out, nil
}

// setup makes a setup of cells with the same start settings.
func (m *matrix) setup(id int, g *group, cells []combination) Setup {
	p := m.plan
	p.Axes, p.Models, p.Include, p.Exclude, p.Traffic = Axes{}, nil, nil, nil, nil
	p.Deployment, p.Engines = g.deployment, g.names(cells)
	for _, a := range m.axes {
		p.setOne(a, g.values[a][cells[0][a]])
	}
	p.MaxTokens, p.Slots = 0, 0
	s := Setup{ID: id, Shapes: m.shapes(g, cells, len(p.Engines))}
	for _, shape := range s.Shapes {
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

// shapes are the requests of cells, with their engines.
func (m *matrix) shapes(g *group, cells []combination, engines int) (out []Shape) {
	slices.SortStableFunc(cells, func(x, y combination) int { // include may have changed the order
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

// shape is the request of a cell.
func (m *matrix) shape(g *group, c combination) Shape {
	at := func(a axis) int { return g.values[a][c[a]].n }
	s := m.asked[at(ofPrompt)]
	s.MaxTokens = at(ofOutput)
	s.Traffic = m.plan.traffic(at(ofBatch), at(ofConcurrency), s)
	if s.Traffic == nil {
		return s
	}
	if !s.mixed() && m.plan.Traffic.complete() { // measured alone, for comparison with the mix
		s.Traffic.Mix = nil
	}
	for _, k := range s.Traffic.Mix {
		s.MaxTokens = max(s.MaxTokens, k.MaxTokens)
	}
	return s
}

// Unserved lists fields of a setup's plan that an engine does not support, so that its cells are refused. Each line
// begins with the field. Models and versions are not considered.
func (p Plan) Unserved(name string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := p.TensorParallel; n > 1 {
		say("tensor_parallel_size: %d: no engine here splits a model among GPUs; use 1, or a server that does", n)
	}
	if p.Quantization != "" {
		say("quantization: %s: not supported; choose a model file with such weights",
			p.Quantization)
	}
	k, _ := p.kinds.Of(name)
	if k == nil {
		k = new(engine.Kind)
	}
	if p.DType != "" && k.DTypes != nil && !slices.Contains(k.DTypes, p.DType) {
		say("dtype: %s: %s supports %s", p.DType, name, strings.Join(k.DTypes, " or "))
	}
	if p.KVDType == "" {
		return out
	}
	switch {
	case k.KVTypes == nil:
		say("kv_cache_dtype: %s: not supported by %s", p.KVDType, name)
	case !slices.Contains(k.KVTypes(p.DType), p.KVDType):
		say("kv_cache_dtype: %s: %s supports %s", p.KVDType, name, strings.Join(k.KVTypes(p.DType), ", "))
	}
	return out
}

// Unheeded lists fields of a setup's plan that are ignored. Each line begins with the field.
func (p Plan) Unheeded() []string {
	var out []string
	if p.ContainerName != "" {
		out = append(out, fmt.Sprintf("container_name: %s is ignored; use the address of a server in a container",
			p.ContainerName))
	}
	if p.GPUMemory != 0 {
		out = append(out, fmt.Sprintf("gpu_memory_utilization: %g is ignored: no engine here reserves GPU memory in advance", p.GPUMemory))
	}
	return out
}
