package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"llmparity/internal/engine"
)

// MostCells is how many cells a plan may have. Each is at least one launch: more would not end in weeks.
const MostCells = 10_000

// axis is one of those that a setup or a shape has a value of, in the order in which cells are made: the last one's
// values change first.
type axis int

const (
	ofContext axis = iota // those that need a launch
	ofDType
	ofKVDType
	ofVersion
	ofThreads
	ofStart
	ofBatch
	ofConcurrency
	ofPrompt // those that need none; also of input length: a prompt that has yet to be made
	ofOutput
	ofEngine
	axisCount

	launched = ofPrompt // those before it need a launch
)

// axisNames are those of one value, as include and exclude have them.
var axisNames = [axisCount]string{"context", "dtype", "kv_cache_dtype", "webllm_version", "threads", "start",
	"batch_size", "concurrency", "prompt", "output_length", "engine"}

// value of an axis.
type value struct {
	text string // as include and exclude name it
	n    int    // of numbers; of a prompt, which of asked
}

// asked is what a prompt may be.
type asked struct {
	text   string
	source *Source
	tokens int  // how long it is to be
	mixed  bool // each request has its own: a mix, beside which other prompts are asked alone
}

// combination has an index into a group's values for every axis.
type combination [axisCount]int

// launch is the part that setups differ by.
func (c combination) launch() [launched]int { return [launched]int(c[:launched]) }

// group is a model with its axes' values, and with its cells.
type group struct {
	kinds      engine.Kinds
	model      string
	values     [axisCount][]value
	deployment Deployment
	size       float64       // how many cells there are before include and exclude; no product of lists overflows it
	was, cells []combination // those that there are, as the axes have them, and with what include sets
}

// matrix is a plan's axes, looked through.
type matrix struct {
	plan   Plan
	asked  []asked
	tokens map[int]int // lengths' indices in asked
	groups []*group
	listed [axisCount]bool // whether a list is given anywhere
}

// newMatrix makes a plan's cells. What it refuses begins with the field.
func newMatrix(p Plan) (*matrix, error) {
	m := &matrix{plan: p, tokens: map[int]int{}}
	m.ask()
	m.gather()
	for i, g := range m.groups {
		if err := m.engines(i, g); err != nil {
			return nil, err
		}
	}
	if err := m.fits(m.longest()); err != nil {
		return nil, err
	}
	exclude, err := m.rules("exclude", p.Exclude)
	if err != nil {
		return nil, err
	}
	for _, g := range m.groups {
		g.combine(exclude)
	}
	include, err := m.rules("include", p.Include)
	if err != nil {
		return nil, err
	}
	return m, m.include(include)
}

// ask numbers the plan's prompts: texts, what stands in files, and lengths, each once.
func (m *matrix) ask() {
	p := m.plan
	for _, text := range p.Prompts {
		m.asked = append(m.asked, asked{text: text})
	}
	for i := range p.Sources {
		m.asked = append(m.asked, asked{source: &p.Sources[i]})
	}
	if p.Traffic.complete() {
		m.asked = append(m.asked, asked{mixed: true})
	}
	for _, n := range p.InputLengths {
		m.length(n)
	}
	for _, g := range p.Models {
		for _, n := range g.InputLengths {
			m.length(n)
		}
	}
}

// length gives the number of the prompt of so many tokens.
func (m *matrix) length(tokens int) int {
	i, ok := m.tokens[tokens]
	if !ok {
		i = len(m.asked)
		m.tokens[tokens] = i
		m.asked = append(m.asked, asked{tokens: tokens})
	}
	return i
}

// gather makes a group of each model: with its own lists, else with the plan's, else with the plan's single values.
func (m *matrix) gather() {
	p := m.plan
	models := p.Models
	if len(models) == 0 {
		models = []Group{{Model: p.Model}}
	}
	plans, single := m.lists(p.Axes, p.Engines), m.single()
	for _, of := range models {
		g := &group{kinds: m.plan.kinds, model: of.Model, deployment: p.Deployment.with(of.Deployment)}
		own := m.lists(of.Axes, of.Engines)
		for a := range axisCount {
			switch {
			case len(own[a]) > 0:
				g.values[a], m.listed[a] = own[a], true
			case len(plans[a]) > 0:
				g.values[a], m.listed[a] = plans[a], true
			default:
				g.values[a] = single[a]
			}
		}
		m.load(g, single)
		g.count()
		m.groups = append(m.groups, g)
	}
	m.listed[ofEngine], m.listed[ofPrompt] = true, true
}

// load settles what of a group's requests is said in two ways.
func (m *matrix) load(g *group, single [axisCount][]value) {
	mix := slices.IndexFunc(m.asked, func(a asked) bool { return a.mixed })
	if mix >= 0 && m.asked[g.values[ofPrompt][0].n].tokens > 0 {
		g.values[ofPrompt] = append([]value{{"", mix}}, g.values[ofPrompt]...)
	}
	several := func(v value) bool { return v.n > 1 }
	if g.values[ofBatch][0].n > 0 && g.values[ofConcurrency][0].n > 0 { // one of the two says only 1
		idle := ofConcurrency
		if slices.ContainsFunc(g.values[ofConcurrency], several) {
			idle = ofBatch
		}
		g.values[idle] = single[idle]
	}
}

// lists are the values that axes have lists of.
func (m *matrix) lists(x Axes, engines []string) (out [axisCount][]value) {
	for a, list := range x.numbers() {
		for _, n := range *list {
			v := value{strconv.Itoa(n), n}
			if a == ofPrompt {
				v.n = m.length(n)
			}
			out[a] = append(out[a], v)
		}
	}
	texts := x.texts()
	texts[ofEngine] = &engines
	for a, list := range texts {
		for _, text := range *list {
			out[a] = append(out[a], value{text: text})
		}
	}
	return out
}

// single are the plan's values where there is no list.
func (m *matrix) single() (out [axisCount][]value) {
	out[ofBatch], out[ofConcurrency] = []value{{"0", 0}}, []value{{"0", 0}}
	for a, n := range m.plan.number() {
		out[a] = []value{{strconv.Itoa(*n), *n}}
	}
	for a, text := range m.plan.text() {
		out[a] = []value{{text: *text}}
	}
	for i := range m.asked {
		if m.asked[i].tokens == 0 {
			out[ofPrompt] = append(out[ofPrompt], value{"", i})
		}
	}
	return out
}

// engines refuses lists that none of a group's engines has to do with.
func (m *matrix) engines(i int, g *group) error {
	for _, a := range []axis{ofVersion, ofThreads} {
		heeds := func(v value) bool { return concerns(m.plan.kinds, a, v.text) }
		if len(g.values[a]) < 2 || slices.ContainsFunc(g.values[ofEngine], heeds) {
			continue
		}
		field := a.list()
		if len(m.plan.Models) > 0 && len(m.lists(m.plan.Models[i].Axes, nil)[a]) > 0 {
			field = fmt.Sprintf("models[%d].%s", i, field)
		}
		return fmt.Errorf("%s: none of the engines has to do with it; name %s among them", field,
			concerned(m.plan.kinds, a))
	}
	return nil
}

// count multiplies the group's lists.
func (g *group) count() {
	for _, engine := range g.values[ofEngine] {
		n := 1.0
		for a := range ofEngine {
			if concerns(g.kinds, a, engine.text) {
				n *= float64(len(g.values[a]))
			}
		}
		g.size += n
	}
}

// fits refuses a plan of too many cells before they are made.
func (m *matrix) fits(field string) error {
	all := 0.0
	for _, g := range m.groups {
		all += g.size
	}
	if all <= MostCells {
		return nil
	}
	return fmt.Errorf("%s: %.0f cells are more than %d: leave out values of an axis, or make several plans", field, all,
		MostCells)
}

// longest is the field of the longest list, which is the one to shorten first.
func (m *matrix) longest() string {
	p := m.plan
	field, most := "models", len(p.Models)
	look := func(name string, n int) {
		if n > most {
			field, most = name, n
		}
	}
	look("engines", len(p.Engines))
	look("prompts", len(p.Prompts)+len(p.Sources))
	of := func(prefix string, x Axes) {
		for a, list := range m.lists(x, nil) {
			look(prefix+axis(a).list(), len(list))
		}
	}
	of("", p.Axes)
	for i, g := range p.Models {
		of(fmt.Sprintf("models[%d].", i), g.Axes)
	}
	return field
}

// combine makes the group's combinations that no entry of exclude chooses, in the order of the axes.
func (g *group) combine(exclude []rule) {
	var c combination
	var from func(axis)
	from = func(a axis) {
		if a < axisCount {
			for c[a] = range g.values[a] {
				from(a + 1)
			}
			return
		}
		chosen := func(r rule) bool { return r.chooses(g, c) }
		if g.concerned(c) && !slices.ContainsFunc(exclude, chosen) {
			g.was = append(g.was, c)
		}
	}
	from(0)
	g.cells = slices.Clone(g.was)
}

// concerned tells whether the axes beyond their first values say something to the engine.
func (g *group) concerned(c combination) bool {
	for a := range ofEngine {
		if c[a] > 0 && !concerns(g.kinds, a, g.values[ofEngine][c[ofEngine]].text) {
			return false
		}
	}
	return true
}

// index of a value, which is put behind the others where it is not there.
func (g *group) index(a axis, v value) int {
	i := slices.Index(g.values[a], v)
	if i < 0 {
		i = len(g.values[a])
		g.values[a] = append(slices.Clip(g.values[a]), v)
	}
	return i
}

// with is a deployment, and another's values where that has any.
func (d Deployment) with(own Deployment) Deployment {
	return Deployment{
		ContainerName:  cmp.Or(own.ContainerName, d.ContainerName),
		TensorParallel: cmp.Or(own.TensorParallel, d.TensorParallel),
		Quantization:   cmp.Or(own.Quantization, d.Quantization),
		GPUMemory:      cmp.Or(own.GPUMemory, d.GPUMemory),
		Params:         cmp.Or(own.Params, d.Params),
		Layers:         cmp.Or(own.Layers, d.Layers),
		Heads:          cmp.Or(own.Heads, d.Heads),
		HeadDim:        cmp.Or(own.HeadDim, d.HeadDim),
		HiddenSize:     cmp.Or(own.HiddenSize, d.HiddenSize),
	}
}
