package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/axis"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Matrix is an expanded plan. A run expands its plan once; who needs cells gets the matrix.
type Matrix struct {
	Plan   Plan
	Cells  []record.Cell // in order, numbered from 1, as far as the plan alone defines them
	Setups []*Setup      // in the order of their first cells

	Reference map[string]string // values of the reference cell that the plan names, by axis
}

// Setup is the part of a plan with the same start settings: model, context window, dtype, versions and so on.
type Setup struct {
	ID    int           // from 1
	Plan  Plan          // with single values instead of lists
	Cells []record.Cell // those of the matrix, request by request
}

// Source is where the prompt of a cell comes from; nil: the cell has the text, or its length.
func (p *Plan) Source(c *record.Cell) *Source {
	if i := c.PromptID - 1; i >= 0 && i < len(p.Prompts) && p.Prompts[i].Text == "" {
		return &p.Prompts[i].Source
	}
	return nil
}

// MostCells is the maximum number of cells of a plan. More launches would take weeks.
const MostCells = 10_000

// Expanded is called when a plan is expanded; tests count that.
var Expanded = func() {}

// Expand makes a plan's cells. Its errors begin with a field, or with the file and line of one: no cells, more than
// MostCells, or entries of include and exclude that name none.
func (p Plan) Expand() (*Matrix, error) {
	Expanded()
	m, err := p.expand()
	if err != nil {
		return nil, p.placed(err)
	}
	return m, nil
}

func (p Plan) expand() (*Matrix, error) {
	x, err := newExpansion(p)
	if err != nil {
		return nil, err
	}
	m := &Matrix{Plan: p}
	for _, g := range x.groups {
		if err := x.setups(m, g); err != nil {
			return nil, err
		}
	}
	if len(m.Cells) == 0 && len(p.Exclude) > 0 {
		return nil, errors.New("exclude: leaves no cells; remove entries or make them more specific")
	}
	if len(m.Cells) == 0 {
		return nil, errors.New("engines: the plan has no cells")
	}
	if m.Reference, err = p.Reference.one("reference_cell", m.Cells); err != nil {
		return nil, err
	}
	at := 0 // all cells are there: they move no more
	for _, s := range m.Setups {
		s.Cells = m.Cells[at : at+len(s.Cells) : at+len(s.Cells)]
		at += len(s.Cells)
	}
	return m, nil
}

// expansion expands a plan.
type expansion struct {
	plan   Plan
	fields []*Field
	asked  []record.Cell // a prompt each; one without any stands for a mix, whose requests have their own
	tokens map[int]int   // index in asked by length
	groups []*group
	listed []bool // by field: whether there is a list

	model, engine, prompt, batch, clients *Field
}

// group is a model with its fields' values, and with its combinations.
type group struct {
	values       [][]Value // by field
	deployment   Deployment
	forms        map[string]string
	combinations []combination
}

// combination has an index into a group's values for every field, before and after include.
type combination struct{ was, is []int }

// newExpansion makes a plan's combinations.
func newExpansion(p Plan) (*expansion, error) {
	sections, err := p.ofSections()
	if err != nil {
		return nil, err
	}
	x := &expansion{plan: p, fields: slices.Concat(sections, Fields(p.kinds)), tokens: map[int]int{}}
	for i, f := range x.fields {
		f.at = i
	}
	x.model, x.engine, x.prompt = x.field(axis.Model), x.field(axis.Engine), x.field(axis.Prompt)
	x.batch, x.clients = x.field(axis.BatchSize), x.field(axis.Concurrency)
	x.ask()
	x.gather()
	if err := cmp.Or(x.heeded(), x.fits("the plan")); err != nil {
		return nil, err
	}
	exclude, err := x.rules("exclude", p.Exclude)
	if err != nil {
		return nil, err
	}
	for _, g := range x.groups {
		x.combine(g, exclude)
	}
	include, err := x.rules("include", p.Include)
	if err != nil {
		return nil, err
	}
	return x, x.include(include)
}

func (x *expansion) field(name string) *Field {
	return x.fields[slices.IndexFunc(x.fields, func(f *Field) bool { return f.Name == name })]
}

// of is the group's value of a field in a combination.
func (g *group) of(f *Field, indexes []int) Value { return g.values[f.at][indexes[f.at]] }

// ask numbers the plan's prompts: texts, sources and lengths.
func (x *expansion) ask() {
	p := x.plan
	for i := range p.Prompts {
		x.asked = append(x.asked, record.Cell{PromptID: i + 1, Prompt: p.Prompts[i].Text})
	}
	if p.Traffic.complete() {
		x.asked = append(x.asked, record.Cell{PromptID: len(x.asked) + 1})
	}
	for _, s := range p.scopes() {
		for _, n := range s.InputLengths {
			x.length(n)
		}
	}
}

// length returns the index of a generated prompt.
func (x *expansion) length(tokens int) int {
	i, ok := x.tokens[tokens]
	if !ok {
		i = len(x.asked)
		x.tokens[tokens] = i
		x.asked = append(x.asked, record.Cell{PromptID: i + 1, InputTokens: tokens})
	}
	return i
}

// mixed reports whether the requests of a mix have their own prompts; other prompts are measured alone.
func (x *expansion) mixed(c *record.Cell) bool {
	return c.Prompt == "" && c.InputTokens == 0 && x.plan.Source(c) == nil
}

// gather makes a group of each model, with its own lists, or the plan's lists, or the plan's single values.
func (x *expansion) gather() {
	p := x.plan
	models := p.Models
	if len(models) == 0 {
		models = []Group{{Model: p.Model}}
	}
	x.listed = make([]bool, len(x.fields))
	for _, of := range models {
		g := &group{values: make([][]Value, len(x.fields)), forms: of.Forms,
			deployment: p.Deployment.with(of.Deployment)}
		for _, f := range x.fields {
			values := x.list(f, of)
			if values == nil {
				values = x.list(f, Group{Model: of.Model, Engines: p.Engines, Axes: p.Axes})
			}
			if x.listed[f.at] = x.listed[f.at] || values != nil; values == nil {
				values = x.single(f)
			}
			g.values[f.at] = values
		}
		x.load(g)
		x.groups = append(x.groups, g)
	}
	x.listed[x.engine.at], x.listed[x.prompt.at] = true, true
}

// load combines a mix with other prompts, and batches with clients.
func (x *expansion) load(g *group) {
	prompts := &g.values[x.prompt.at]
	mix := slices.IndexFunc(x.asked, func(c record.Cell) bool { return x.mixed(&c) })
	if mix >= 0 && x.asked[(*prompts)[0].N].InputTokens > 0 {
		*prompts = append([]Value{{"", mix}}, *prompts...)
	}
	batches, clients := &g.values[x.batch.at], &g.values[x.clients.at]
	if (*batches)[0].N > 0 && (*clients)[0].N > 0 { // one of them is 1
		if slices.ContainsFunc(*clients, func(v Value) bool { return v.N > 1 }) {
			*batches = x.single(x.batch)
		} else {
			*clients = x.single(x.clients)
		}
	}
}

// list returns the values of a field's list; nil: there is none. A list of versions goes on with builds.
func (x *expansion) list(f *Field, of Group) (out []Value) {
	switch {
	case f == x.model:
		return []Value{{Text: of.Model}}
	case f == x.engine:
		return texts(of.Engines)
	case f.ofSection():
		for i, v := range x.plan.Sections[f.kind.Section].Varied(f.set) {
			out = append(out, Value{fmt.Sprint(v), i})
		}
		return out
	}
	out = f.values(&of.Axes)
	switch {
	case f == x.prompt:
		for i, v := range out {
			out[i].N = x.length(v.N)
		}
	case f.ofVersion() && out != nil:
		for _, v := range x.plan.Sections[f.kind.Section].Varied(f.set) {
			out = append(out, Value{fmt.Sprint(v), 1})
		}
		if build, ok := x.build(f); ok {
			out = append(out, build)
		}
	}
	return out
}

// build is the single value of a section's field that names a build in place of a version.
func (x *expansion) build(f *Field) (v Value, ok bool) {
	if !f.ofVersion() {
		return v, false
	}
	one, ok := x.plan.Sections[f.kind.Section][f.set.Key].(string)
	return Value{one, 1}, ok
}

// single returns the plan's values of a field without a list.
func (x *expansion) single(f *Field) (out []Value) {
	switch f {
	case x.prompt:
		for i, c := range x.asked {
			if c.InputTokens == 0 {
				out = append(out, Value{"", i})
			}
		}
		return out
	case x.engine:
		return nil
	}
	one, _ := f.single(&x.plan)
	if build, ok := x.build(f); ok && one.Text == "" {
		one = build
	}
	return []Value{one}
}

// heeded refuses lists that no engine of a group uses.
func (x *expansion) heeded() error {
	for i, g := range x.groups {
		for _, f := range x.fields {
			if len(g.values[f.at]) < 2 || slices.ContainsFunc(g.values[x.engine.at],
				func(name Value) bool { return f.uses(x.plan.Kind(name.Text)) }) {
				continue
			}
			field, of := f.List, strings.Join(x.plan.kinds.Concerned(f.List), " or ")
			if f.ofSection() {
				of = f.kind.Name
			} else if len(x.plan.Models) > 0 && len(f.values(&x.plan.Models[i].Axes)) > 0 {
				field = fmt.Sprintf("models[%d].%s", i, field)
			}
			return fmt.Errorf("%s: no engine of the plan uses it; add %s to engines", field, of)
		}
	}
	return nil
}

// fits refuses a plan with too many cells, counted before they are made, and as a float against overflow.
func (x *expansion) fits(field string) error {
	all := 0.0
	for _, g := range x.groups {
		for _, name := range g.values[x.engine.at] {
			n := 1.0
			for _, f := range x.fields {
				if f != x.engine && f.uses(x.plan.Kind(name.Text)) {
					n *= float64(len(g.values[f.at]))
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

// combine makes the group's combinations that exclude does not choose, in the order of the fields.
func (x *expansion) combine(g *group, exclude []rule) {
	c := make([]int, len(x.fields))
	var from func([]*Field)
	from = func(rest []*Field) {
		if len(rest) > 0 {
			for i := range g.values[rest[0].at] {
				c[rest[0].at] = i
				from(rest[1:])
			}
			return
		}
		unused := func(f *Field) bool { return c[f.at] > 0 && !x.uses(f, g, c) }
		chosen := func(r rule) bool { return x.chooses(r, g, c) }
		if !slices.ContainsFunc(x.fields, unused) && !slices.ContainsFunc(exclude, chosen) {
			g.combinations = append(g.combinations, combination{slices.Clone(c), slices.Clone(c)})
		}
	}
	from(x.fields)
}

// uses reports whether a combination's engine uses a field.
func (x *expansion) uses(f *Field, g *group, c []int) bool {
	return f.uses(x.plan.Kind(g.of(x.engine, c).Text))
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

// setups adds a group's cells, with those of the same start settings together, in the order of their first cells. Cells
// whose start settings include changes are setups of their own.
func (x *expansion) setups(m *Matrix, g *group) error {
	var order []string
	by := map[string][][]int{}
	for _, c := range g.combinations {
		k := ""
		for _, f := range x.fields {
			if f.Launch {
				k += fmt.Sprint(c.was[f.at], c.is[f.at], " ")
			}
		}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], c.is)
	}
	for _, k := range order {
		all := by[k]
		slices.SortStableFunc(all, x.byRequest) // include may have changed the order
		s := &Setup{ID: len(m.Setups) + 1, Plan: x.planOf(g, all)}
		for _, c := range all {
			s.Cells = append(s.Cells, x.cell(s, g, c))
			s.Cells[len(s.Cells)-1].ID = len(m.Cells) + len(s.Cells)
		}
		s.Plan.MaxTokens, s.Plan.Slots = 0, 0
		for _, c := range s.Cells {
			s.Plan.MaxTokens = max(s.Plan.MaxTokens, c.MaxTokens)
			if c.Traffic != nil {
				s.Plan.Slots = max(s.Plan.Slots, cmp.Or(c.Traffic.Concurrency, openSlots))
			}
		}
		for _, f := range x.fields {
			if !f.ofSection() {
				continue
			}
			set := engine.Settings{Timeout: time.Duration(x.plan.Timeout)}
			if err := f.kind.CheckSection(s.Plan.Sections[f.kind.Section], set); err != nil {
				return err
			}
		}
		m.Setups, m.Cells = append(m.Setups, s), append(m.Cells, s.Cells...)
	}
	return nil
}

// byRequest compares combinations by what needs no launch of its own.
func (x *expansion) byRequest(a, b []int) int {
	for _, f := range x.fields {
		if f.Launch || a[f.at] == b[f.at] {
			continue
		}
		return a[f.at] - b[f.at]
	}
	return 0
}

// planOf is the plan of cells with the same start settings.
func (x *expansion) planOf(g *group, cells [][]int) Plan {
	p := x.plan
	p.Axes, p.Models, p.Include, p.Exclude, p.Reference, p.Traffic, p.from = Axes{}, nil, nil, nil, nil, nil, source{}
	p.Deployment, p.Forms, p.Engines = g.deployment, g.forms, nil
	p.Sections = maps.Clone(p.Sections)
	for _, f := range x.fields {
		f.setSingle(&p, g.of(f, cells[0]))
	}
	for i, name := range g.values[x.engine.at] { // in the plan's order
		if slices.ContainsFunc(cells, func(c []int) bool { return c[x.engine.at] == i }) {
			p.Engines = append(p.Engines, name.Text)
		}
	}
	return p
}

// starts is how many of a deployment's fields, the first, programs are started with.
const starts = 4

// deploys adds to a cell the fields that its engine is started with in which groups of its model differ.
func (x *expansion) deploys(g *group, c *record.Cell) {
	for i := range starts {
		field := func(g *group) string { return fmt.Sprint(reflect.ValueOf(g.deployment).Field(i)) }
		if slices.ContainsFunc(x.groups, func(o *group) bool {
			return o.values[x.model.at][0] == g.values[x.model.at][0] && field(o) != field(g)
		}) {
			name, _, _ := strings.Cut(reflect.TypeFor[Deployment]().Field(i).Tag.Get("yaml"), ",")
			c.Settings = with(c.Settings, name, cmp.Or(field(g), "none"), true)
		}
	}
}

// cell is the cell of a combination.
func (x *expansion) cell(s *Setup, g *group, indexes []int) record.Cell {
	p, asked := x.plan, x.asked[g.of(x.prompt, indexes).N]
	shared := p.Isolation == Shared
	c := record.Cell{Setup: s.ID, PromptID: asked.PromptID, Prompt: asked.Prompt, InputTokens: asked.InputTokens,
		Repetitions: p.Repetitions, Chat: p.Chat, Reused: p.Isolation == Reused || shared,
		Shared: shared}
	for _, f := range x.fields {
		if f.Read != nil && x.uses(f, g, indexes) && (f.kind == nil || x.varied(f)) {
			f.Read(g.of(f, indexes), &c)
		}
	}
	x.deploys(g, &c)
	c.Traffic = p.traffic(g.of(x.batch, indexes).N, g.of(x.clients, indexes).N, &c, p.Source(&c))
	if c.Traffic == nil {
		return c
	}
	if !x.mixed(&c) && p.Traffic.complete() { // measured alone, for comparison with the mix
		c.Traffic.Mix = nil
	}
	for _, k := range c.Traffic.Mix {
		c.MaxTokens = max(c.MaxTokens, k.MaxTokens)
	}
	return c
}

// varied reports whether cells differ in a field, or the plan has a list of it.
func (x *expansion) varied(f *Field) bool {
	first := x.groups[0].values[f.at][0]
	return x.listed[f.at] || slices.ContainsFunc(x.groups, func(g *group) bool {
		return slices.ContainsFunc(g.values[f.at], func(v Value) bool { return v != first })
	})
}
