package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"llmparity/internal/engine"
	"llmparity/internal/kit/document"
)

// Cells names cells by values of axes, e.g. {engine: webllm, context: [1024, 2048]}.
type Cells map[string][]string

// cellNames are the fields, in the order in which they are written, with more that kinds of engines have.
func cellNames(more []string) []string {
	return slices.Concat([]string{"model", "engine", "context", "dtype", "kv_cache_dtype", "weights"}, more,
		[]string{"threads", "start", "batch_size", "concurrency", "prompt", "output_length", "input_length"})
}

// ofKinds are the fields that kinds of engines have: versions, and those of sections.
func ofKinds(kinds engine.Kinds) []string {
	out := kinds.VersionAxes()
	for _, k := range kinds.Sections() {
		for _, f := range k.Config().Fields() {
			if f.Key != "" {
				out = append(out, k.Field(f.Key))
			}
		}
	}
	return out
}

// read accepts single values and lists, and the names of either.
func (c *Cells) read(r *reader, n *document.Node, path string) error {
	if err := n.Group(path, ""); err != nil {
		return err
	}
	*c = Cells{}
	names := cellNames(ofKinds(r.kinds))
	for _, e := range n.Fields {
		at, own := document.Join(path, e.Name), axisOf(e.Name)
		i := slices.IndexFunc(names, func(name string) bool { return listOf(name) == own })
		if i < 0 {
			return e.Unknown(path, names)
		}
		var values []string
		if (*c)[names[i]] != nil {
			return document.Wrong(e.Key, at, "duplicate field")
		}
		if err := r.To(e.Value, &values, at); err != nil {
			return err
		}
		if len(values) == 0 {
			return document.Wrong(e.Key, at, "no value")
		}
		(*c)[names[i]] = values
	}
	if len(*c) == 0 {
		return document.Wrong(n, path, "empty; name cells, e.g. {engine: webllm}")
	}
	return nil
}

// MarshalYAML writes the fields in order.
func (c Cells) MarshalYAML() (any, error) {
	var out yaml.MapSlice
	more := slices.DeleteFunc(slices.Sorted(maps.Keys(c)),
		func(name string) bool { return slices.Contains(cellNames(nil), name) })
	for _, name := range cellNames(more) {
		var values []any
		for _, text := range c[name] {
			if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
				values = append(values, n)
			} else {
				values = append(values, text)
			}
		}
		switch len(values) {
		case 0:
		case 1:
			out = append(out, yaml.MapItem{Key: name, Value: values[0]})
		default:
			out = append(out, yaml.MapItem{Key: name, Value: values})
		}
	}
	return out, nil
}

// mostRules is the maximum number of entries of include and of exclude.
const mostRules = 1000

// rule is an entry of include or exclude.
type rule struct {
	path    string
	include bool
	axes    map[axis][]value // values named
}

// rules reads the entries of include or exclude.
func (m *matrix) rules(field string, list []Cells) (out []rule, err error) {
	if len(list) > mostRules {
		return nil, fmt.Errorf("%s: %d entries; the maximum is %d. Use lists in entries to combine some", field, len(list),
			mostRules)
	}
	for i, c := range list {
		r := rule{fmt.Sprintf("%s[%d]", field, i), field == "include", map[axis][]value{}}
		for _, name := range append(cellNames(ofKinds(m.plan.kinds))[1:], "model") {
			if err := m.names(&r, name, c[name]); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// sets reports whether an entry sets the values of an axis instead of choosing cells by them.
func (m *matrix) sets(r rule, a axis) bool { return r.include && !m.listed[a] }

// names reads an entry's values of an axis.
func (m *matrix) names(r *rule, name string, texts []string) error {
	a := ofPrompt
	if name != "input_length" {
		i := slices.IndexFunc(m.axes, func(a axis) bool { own, _ := m.name(a); return own == name })
		switch {
		case i < 0 && texts != nil:
			return fmt.Errorf("%s.%s: not an axis of this plan; add a list to the plan", r.path, name)
		case i < 0:
			return nil
		}
		a = m.axes[i]
	} else if texts != nil && r.axes[a] != nil {
		return fmt.Errorf("%s.input_length: cannot be combined with prompt; remove one", r.path)
	}
	for i, text := range texts {
		v, err := m.named(a, name, text, r.include)
		has := func(g *group) bool { return slices.Contains(g.values[a], v) }
		switch {
		case err != nil:
			return fmt.Errorf("%s.%s: %w", r.path, name, err)
		case !r.include && !slices.ContainsFunc(m.groups, has):
			return fmt.Errorf("%s.%s: no cell has %s; available: %s", r.path, name, text, m.those(a, name))
		case i > 0 && m.sets(*r, a):
			return fmt.Errorf("%s.%s: not an axis of this plan, so only one value can be set; "+
				"add a list to the plan for several", r.path, name)
		}
		r.axes[a] = append(r.axes[a], v)
	}
	return nil
}

// named parses a value of an entry.
func (m *matrix) named(a axis, name, text string, include bool) (value, error) {
	v, err := a.value(text)
	if f := m.field(a); f != nil {
		if v.n = slices.IndexFunc(f.all(), func(v value) bool { return v.text == text }); v.n < 0 {
			err = fmt.Errorf("no cell has %s; available: %s", text, m.those(a, name))
		}
	}
	switch {
	case err != nil, a == ofEngine, a == ofModel, a >= axisCount:
		return v, err
	case a.texts():
		return v, a.known(v)
	case name == "prompt" && len(m.plan.Prompts) == 0:
		return value{}, errors.New("the plan only has input_lengths; use input_length")
	case name == "prompt":
		return value{"", v.n - 1}, within(v.n, 1, len(m.plan.Prompts))
	}
	least := 1
	if a == ofContext || a == ofThreads {
		least = 0
	}
	if err := within(v.n, least, mostTokens); err != nil || a != ofPrompt {
		return v, err
	}
	if _, there := m.tokens[v.n]; there || include {
		v.n = m.length(v.n)
	} else {
		v.n = -1
	}
	return v, nil
}

// those lists an axis' first distinct values in a message.
func (m *matrix) those(a axis, name string) string {
	var out []string
	for _, g := range m.groups {
		for _, v := range g.values[a] {
			text := v.text
			switch {
			case name == "prompt":
				text = strconv.Itoa(v.n + 1)
			case a == ofContext && v.n == Unsaid, text == "", text == "0" && a != ofContext:
				text = "only the default"
			}
			if slices.Contains(out, text) {
				continue
			}
			if len(out) == 12 {
				return strings.Join(out, ", ") + " …"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// chooses reports whether a rule names a cell. A cell has no value of an axis that its engine does not use.
func (m *matrix) chooses(r rule, g *group, c combination) bool {
	for a, values := range r.axes {
		if !m.sets(r, a) && (!slices.Contains(values, g.values[a][c[a]]) || !m.concerns(a, g.engine(c))) {
			return false
		}
	}
	return true
}

// include applies entries to the cells that they choose; the last entry wins. An entry that chooses no cell adds a
// group.
func (m *matrix) include(rules []rule) error {
	own := m.groups
	for _, r := range rules {
		found := false
		for _, g := range own {
			for _, c := range g.cells {
				if m.chooses(r, g, c.was) {
					found = true
					m.set(r, g, c.is)
				}
			}
		}
		if !found {
			if err := m.add(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// set sets a cell's values of the axes that the rule does not choose by.
func (m *matrix) set(r rule, g *group, c combination) {
	for a, values := range r.axes {
		if !m.sets(r, a) {
			continue
		}
		if c[a] = slices.Index(g.values[a], values[0]); c[a] < 0 { // behind the others
			c[a] = len(g.values[a])
			g.values[a] = append(slices.Clip(g.values[a]), values[0])
		}
	}
}

// add makes a group of an entry that chooses no cell: the values that it names, all engines unless it names some, and
// the first value of all other axes.
func (m *matrix) add(r rule) error {
	models := r.axes[ofModel]
	if models == nil {
		models = m.groups[0].values[ofModel]
	}
	for _, model := range models {
		like := m.groups[0]
		if i := slices.IndexFunc(m.groups, func(g *group) bool { return g.values[ofModel][0] == model }); i >= 0 {
			like = m.groups[i]
		}
		g := &group{values: make([][]value, len(m.axes)), forms: like.forms, deployment: like.deployment}
		for _, a := range m.axes {
			switch {
			case a == ofModel:
				g.values[a] = []value{model}
			case r.axes[a] != nil:
				g.values[a] = r.axes[a]
			case a == ofEngine:
				g.values[a] = like.values[a]
			case len(like.values[a]) == 0:
				return fmt.Errorf("%s: adds a cell without a prompt; set input_length", r.path)
			default:
				g.values[a] = like.values[a][:1]
			}
		}
		m.groups = append(m.groups, g)
		if err := m.fits(r.path); err != nil {
			return err
		}
		m.combine(g, nil)
	}
	return nil
}
