package plan

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// MostCells is the maximum number of cells of a plan. More launches would take weeks.
const MostCells = 10_000

// combination has an index into a group's values for every axis.
type combination []int

// launch identifies the setup of a combination.
func (c combination) launch() string { return fmt.Sprint(c[:ofPrompt], c[axisCount:]) }

// cell is a combination before and after include.
type cell struct{ was, is combination }

// group is a model with its axes' values, and with its cells.
type group struct {
	values     [][]value // by axis
	deployment Deployment
	forms      map[string]string
	cells      []cell
}

// matrix expands a plan's axes into cells.
type matrix struct {
	plan   Plan
	axes   []axis
	asked  []Shape     // prompts; one without any stands for a mix, whose requests have their own
	tokens map[int]int // index in asked by length
	groups []*group
	listed []bool // by axis: whether there is a list
	fields []fieldAxis
}

// fieldAxis is a list in the field of a single value of an engine's section. Their axes follow all others.
type fieldAxis struct {
	kind   *engine.Kind
	key    string
	values []any
}

// fieldAxes are those of all sections. Duplicate values are refused.
func (p Plan) fieldAxes() (out []fieldAxis, err error) {
	for _, k := range p.kinds.Sections() {
		for _, f := range k.Config().Fields() {
			all := p.Sections[k.Section].Varied(f)
			for i, v := range all {
				if slices.Contains(all[:i], v) {
					return nil, fmt.Errorf("%s[%d]: duplicate value %q", k.Field(f.Key), i, fmt.Sprint(v))
				}
			}
			if all != nil {
				out = append(out, fieldAxis{k, f.Key, all})
			}
		}
	}
	return out, nil
}

// field returns the field that an axis varies; nil: it is another axis.
func (m *matrix) field(a axis) *fieldAxis {
	if i := int(a) - (len(m.axes) - len(m.fields)); i >= 0 {
		return &m.fields[i]
	}
	return nil
}

// name is the field of a single value of an axis, and list that of a list.
func (m *matrix) name(a axis) (name, list string) {
	if f := m.field(a); f != nil {
		return f.kind.Field(f.key), f.kind.Field(f.key)
	}
	return a.name(m.plan.kinds), a.list(m.plan.kinds)
}

// newMatrix makes a plan's cells. Its errors begin with a field.
func newMatrix(p Plan) (*matrix, error) {
	m := &matrix{plan: p, axes: append(axes(p.kinds), ofModel), tokens: map[int]int{}}
	var err error
	if m.fields, err = p.fieldAxes(); err != nil {
		return nil, err
	}
	first := len(m.axes)
	for i := range m.fields {
		m.axes = append([]axis{axis(first + i)}, m.axes...)
	}
	m.ask()
	m.gather()
	if err := cmp.Or(m.heeded(), m.fits("the plan")); err != nil {
		return nil, err
	}
	exclude, err := m.rules("exclude", p.Exclude)
	if err != nil {
		return nil, err
	}
	for _, g := range m.groups {
		m.combine(g, exclude)
	}
	include, err := m.rules("include", p.Include)
	if err != nil {
		return nil, err
	}
	return m, m.include(include)
}

// ask numbers the plan's prompts: texts, sources and lengths.
func (m *matrix) ask() {
	p := m.plan
	for i := range p.Prompts {
		s := Shape{PromptID: i + 1, Prompt: p.Prompts[i].Text}
		if s.Prompt == "" {
			s.Source = &p.Prompts[i].Source
		}
		m.asked = append(m.asked, s)
	}
	if p.Traffic.complete() {
		m.asked = append(m.asked, Shape{PromptID: len(m.asked) + 1})
	}
	for _, s := range p.scopes() {
		for _, n := range s.InputLengths {
			m.length(n)
		}
	}
}

// length returns the index of a generated prompt.
func (m *matrix) length(tokens int) int {
	i, ok := m.tokens[tokens]
	if !ok {
		i = len(m.asked)
		m.tokens[tokens] = i
		m.asked = append(m.asked, Shape{PromptID: i + 1, InputTokens: tokens})
	}
	return i
}

// mixed reports whether the requests of a mix have their own prompts; other prompts are measured alone.
func (s Shape) mixed() bool { return s.Prompt == "" && s.Source == nil && s.InputTokens == 0 }

// gather makes a group of each model, with its own lists, or the plan's lists, or the plan's single values.
func (m *matrix) gather() {
	p := m.plan
	models := p.Models
	if len(models) == 0 {
		models = []Group{{Model: p.Model}}
	}
	m.listed = make([]bool, len(m.axes))
	for _, of := range models {
		g := &group{values: make([][]value, len(m.axes)), forms: of.Forms,
			deployment: p.Deployment.with(of.Deployment)}
		for _, a := range m.axes {
			if f := m.field(a); f != nil {
				g.values[a], m.listed[a] = f.all(), true
				continue
			}
			g.values[a] = m.list(a, of)
			if g.values[a] == nil {
				g.values[a] = m.list(a, Group{Engines: p.Engines, Axes: p.Axes})
			}
			if m.listed[a] = m.listed[a] || g.values[a] != nil; g.values[a] == nil {
				g.values[a] = m.single(a)
			}
		}
		m.load(g)
		m.groups = append(m.groups, g)
	}
	m.listed[ofEngine], m.listed[ofPrompt] = true, true
}

// load combines a mix with other prompts, and batches with clients.
func (m *matrix) load(g *group) {
	mix := slices.IndexFunc(m.asked, Shape.mixed)
	if mix >= 0 && m.asked[g.values[ofPrompt][0].n].InputTokens > 0 {
		g.values[ofPrompt] = append([]value{{"", mix}}, g.values[ofPrompt]...)
	}
	if g.values[ofBatch][0].n > 0 && g.values[ofConcurrency][0].n > 0 { // one of them is 1
		idle := ofConcurrency
		if slices.ContainsFunc(g.values[ofConcurrency], func(v value) bool { return v.n > 1 }) {
			idle = ofBatch
		}
		g.values[idle] = m.single(idle)
	}
}

// all are its values, by their indexes.
func (f *fieldAxis) all() (out []value) {
	for i, v := range f.values {
		out = append(out, value{fmt.Sprint(v), i})
	}
	return out
}

// list returns the values of an axis' list.
func (m *matrix) list(a axis, of Group) (out []value) {
	switch a {
	case ofModel:
		return []value{{text: of.Model}}
	case ofEngine:
		return textValues(of.Engines)
	}
	out = of.Axes.values(a, m.plan.kinds)
	if a == ofPrompt {
		for i, v := range out {
			out[i].n = m.length(v.n)
		}
	}
	return out
}

// single returns the plan's values of an axis without a list.
func (m *matrix) single(a axis) (out []value) {
	switch a {
	case ofPrompt:
		for i, s := range m.asked {
			if s.InputTokens == 0 {
				out = append(out, value{"", i})
			}
		}
		return out
	case ofEngine:
		return nil
	}
	one, _ := m.plan.one(a)
	return []value{one}
}

// heeded refuses lists that no engine of a group uses.
func (m *matrix) heeded() error {
	for i, g := range m.groups {
		for _, a := range m.axes {
			heeds := func(v value) bool { return m.concerns(a, v.text) }
			if len(g.values[a]) < 2 || slices.ContainsFunc(g.values[ofEngine], heeds) {
				continue
			}
			_, field := m.name(a)
			of := strings.Join(m.plan.kinds.Concerned(field), " or ")
			if f := m.field(a); f != nil {
				of = f.kind.Name
			} else if len(m.plan.Models) > 0 && len(m.plan.Models[i].values(a, m.plan.kinds)) > 0 {
				field = fmt.Sprintf("models[%d].%s", i, field)
			}
			return fmt.Errorf("%s: no engine of the plan uses it; add %s to engines", field, of)
		}
	}
	return nil
}

// fits refuses a plan with too many cells, counted before they are made, and as a float against overflow.
func (m *matrix) fits(field string) error {
	all := 0.0
	for _, g := range m.groups {
		for _, name := range g.values[ofEngine] {
			n := 1.0
			for _, a := range m.axes {
				if a != ofEngine && m.concerns(a, name.text) {
					n *= float64(len(g.values[a]))
				}
			}
			all += n
		}
	}
	if all <= MostCells {
		return nil
	}
	return fmt.Errorf("%s: %.0f cells; the maximum is %d: use fewer values, or several plans", field, all, MostCells)
}

// combine makes the group's combinations that exclude does not choose, in the order of the axes.
func (m *matrix) combine(g *group, exclude []rule) {
	c := make(combination, len(m.axes))
	var from func([]axis)
	from = func(rest []axis) {
		if len(rest) > 0 {
			for i := range g.values[rest[0]] {
				c[rest[0]] = i
				from(rest[1:])
			}
			return
		}
		unused := func(a axis) bool { return c[a] > 0 && !m.concerns(a, g.engine(c)) }
		chosen := func(r rule) bool { return m.chooses(r, g, c) }
		if !slices.ContainsFunc(m.axes, unused) && !slices.ContainsFunc(exclude, chosen) {
			g.cells = append(g.cells, cell{slices.Clone(c), slices.Clone(c)})
		}
	}
	from(m.axes)
}

func (g *group) engine(c combination) string { return g.values[ofEngine][c[ofEngine]].text }

// concerns reports whether an engine uses an axis. If it does not, only the first value makes a cell.
func (m *matrix) concerns(a axis, name string) bool {
	if a != ofThreads && a != ofWeights && a < axisCount {
		return true
	}
	k := m.plan.Kind(name)
	if f := m.field(a); f != nil {
		return k.Section == f.kind.Section
	}
	return k.Name == "" && a == ofThreads || k.Concerned(a.list(m.plan.kinds)) // an unknown engine may have threads
}

// with returns a deployment with the non-zero values of another.
func (d Deployment) with(own Deployment) Deployment {
	to, from := reflect.ValueOf(&d).Elem(), reflect.ValueOf(own)
	for i := range from.NumField() {
		if v := from.Field(i); !v.IsZero() {
			to.Field(i).Set(v)
		}
	}
	return d
}

// Setup is the part of a plan with the same start settings: model, context window, dtype, versions and so on.
type Setup struct {
	ID     int  // from 1, in the plan's order
	First  int  // number of its first cell
	Plan   Plan // with single values instead of lists
	Shapes []Shape
	Varied map[string]map[string]string // fields of engines' sections that are axes, with their values, by engine
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
		if n += len(shape.Engines); shape.Engines == nil {
			n += len(s.Plan.Engines)
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
	first := 1
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
			s := m.setup(len(out)+1, g, cells[k])
			for _, f := range m.fields {
				set := engine.Settings{Timeout: time.Duration(p.Timeout)}
				if err := f.kind.CheckSection(s.Plan.Sections[f.kind.Section], set); err != nil {
					return nil, err
				}
			}
			s.First = first
			first += s.Cells()
			out = append(out, s)
		}
	}
	return out, nil
}

// setup makes a setup of cells with the same start settings.
func (m *matrix) setup(id int, g *group, cells []combination) Setup {
	p := m.plan
	p.Axes, p.Models, p.Include, p.Exclude, p.Traffic = Axes{}, nil, nil, nil, nil
	p.Deployment, p.Forms, p.Engines = g.deployment, g.forms, g.names(cells)
	s := Setup{ID: id, Shapes: m.shapes(g, cells, len(p.Engines)), Varied: map[string]map[string]string{}}
	p.Sections = maps.Clone(p.Sections)
	for _, a := range m.axes {
		v, f := g.values[a][cells[0][a]], m.field(a)
		if f == nil {
			p.setOne(a, v)
			continue
		}
		p.Sections[f.kind.Section] = p.Sections[f.kind.Section].With(f.key, f.values[v.n])
		for _, name := range p.Engines {
			if m.concerns(a, name) {
				s.Varied[name] = with(s.Varied[name], f.key, v.text, true)
			}
		}
	}
	p.MaxTokens, p.Slots = 0, 0
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
