package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"llmparity/internal/axis"
	"llmparity/internal/engine"
	"llmparity/internal/kit/document"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
)

// Entry of include or exclude names cells by values of axes, e.g. {engine: webllm, context: [1024, 2048]}.
type Entry map[string][]string

// cellNames are the fields, in the order in which they are written, with more that kinds of engines have.
func cellNames(more []string) []string {
	out := []string{axis.Model, axis.Engine}
	for _, f := range Fields(nil) {
		if f.Name == axis.Threads {
			out = append(out, more...)
		}
		if !slices.Contains(out, f.Name) {
			out = append(out, f.Name)
		}
	}
	return append(out, axis.Input)
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

// among is the one of these fields that has a name, by any of its names; empty: none.
func among(names []string, called string) string {
	own := axisOf(called)
	if i := slices.IndexFunc(names, func(name string) bool { return listOf(name) == own }); i >= 0 {
		return names[i]
	}
	return ""
}

// read accepts single values and lists, and the names of either.
func (c *Entry) read(r *reader, n *document.Node, path string) error {
	if err := n.Group(path, ""); err != nil {
		return err
	}
	*c = Entry{}
	names := cellNames(ofKinds(r.kinds))
	for _, e := range n.Fields {
		at, name := document.Join(path, e.Name), among(names, e.Name)
		if name == "" {
			return e.Unknown(path, names)
		}
		var values []string
		if (*c)[name] != nil {
			return document.Wrong(e.Key, at, "duplicate field")
		}
		if err := r.To(e.Value, &values, at); err != nil {
			return err
		}
		if len(values) == 0 {
			return document.Wrong(e.Key, at, "no value")
		}
		(*c)[name] = values
	}
	if len(*c) == 0 {
		return document.Wrong(n, path, "empty; name cells, e.g. {engine: webllm}")
	}
	return nil
}

// Refer names the reference cell by values of axes.
func (p *Plan) Refer(values map[string]string) error {
	p.Reference = Entry{}
	names := cellNames(ofKinds(p.kinds))
	for called, value := range values {
		name := among(names, called)
		if name == "" {
			return fmt.Errorf("unknown axis %q%s; axes: %s", called, nearest.Question(called, names),
				strings.Join(names, ", "))
		}
		p.Reference[name] = []string{value}
	}
	return nil
}

// one returns the entry's values by axis, as records have them: one value for each axis, which some cell must have.
func (c Entry) one(path string, cells []record.Cell) (map[string]string, error) {
	all := make([]*record.Cell, len(cells))
	for i := range cells {
		all[i] = &cells[i]
	}
	var out map[string]string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		x, values := axis.Named(name), c[name]
		if len(values) != 1 {
			return nil, fmt.Errorf("%s.%s: %d values; a reference cell has one", path, name, len(values))
		}
		known, matches := x.Among(all, values[0])
		if !matches {
			return nil, fmt.Errorf("%s.%s: no cell has %s; available: %s", path, name, values[0],
				strings.Join(known, ", "))
		}
		if out == nil {
			out = map[string]string{}
		}
		out[x.Name] = values[0]
	}
	return out, nil
}

// MarshalYAML writes the fields in order.
func (c Entry) MarshalYAML() (any, error) {
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
	named   map[*Field][]Value
}

// rules reads the entries of include or exclude.
func (x *expansion) rules(field string, list []Entry) (out []rule, err error) {
	if len(list) > mostRules {
		return nil, fmt.Errorf("%s: %d entries; the maximum is %d. Use lists in entries to combine some", field, len(list),
			mostRules)
	}
	names := append(cellNames(ofKinds(x.plan.kinds))[1:], axis.Model)
	for i, c := range list {
		r := rule{fmt.Sprintf("%s[%d]", field, i), field == "include", map[*Field][]Value{}}
		for _, name := range names {
			if err := x.names(&r, name, c[name]); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// sets reports whether an entry sets the values of a field instead of choosing cells by them.
func (x *expansion) sets(r rule, f *Field) bool { return r.include && !x.listed[f.at] }

// called is the field with a name in entries; nil: the plan has no such axis. A build is a value of the version.
func (x *expansion) called(name string) *Field {
	if name == axis.Input {
		return x.prompt
	}
	for _, f := range x.fields {
		if f.entry() == name {
			return f
		}
	}
	for _, f := range x.fields {
		if f.ofVersion() && f.set.Key != "" && f.kind.Field(f.set.Key) == name {
			return f
		}
	}
	return nil
}

// names reads an entry's values of a field.
func (x *expansion) names(r *rule, name string, values []string) error {
	f := x.called(name)
	switch {
	case values == nil:
		return nil
	case f == nil:
		return fmt.Errorf("%s.%s: not an axis of this plan; add a list to the plan", r.path, name)
	case r.named[f] != nil:
		other := axis.Prompt
		if f != x.prompt {
			other = f.entry()
		}
		return fmt.Errorf("%s.%s: cannot be combined with %s; remove one", r.path, name, other)
	}
	for i, text := range values {
		v, err := x.named(f, name, text, r.include)
		has := func(g *group) bool { return slices.Contains(g.values[f.at], v) }
		switch {
		case err != nil:
			return fmt.Errorf("%s.%s: %w", r.path, name, err)
		case !r.include && !slices.ContainsFunc(x.groups, has):
			return fmt.Errorf("%s.%s: no cell has %s; available: %s", r.path, name, text, x.those(f, name))
		case i > 0 && x.sets(*r, f):
			return fmt.Errorf("%s.%s: not an axis of this plan, so only one value can be set; "+
				"add a list to the plan for several", r.path, name)
		}
		r.named[f] = append(r.named[f], v)
	}
	return nil
}

// named parses a value of an entry.
func (x *expansion) named(f *Field, name, text string, include bool) (Value, error) {
	v, err := f.value(text)
	switch {
	case f.ofSection():
		all := x.groups[0].values[f.at]
		i := slices.IndexFunc(all, func(v Value) bool { return v.Text == text })
		if i < 0 {
			return v, fmt.Errorf("no cell has %s; available: %s", text, x.those(f, name))
		}
		return all[i], nil
	case f.ofVersion():
		if name != f.Name {
			v.N = 1
		}
		return v, nil
	case err != nil:
		return v, err
	case f.Text():
		return v, f.known(v)
	case name == axis.Prompt && len(x.plan.Prompts) == 0:
		return Value{}, errors.New("the plan only has input_lengths; use input_length")
	case name == axis.Prompt:
		return Value{"", v.N - 1}, within(v.N, 1, len(x.plan.Prompts))
	}
	least := 1
	if f.Launch && f.one != nil { // 0 is the default
		least = 0
	}
	if err := within(v.N, least, mostTokens); err != nil || f != x.prompt {
		return v, err
	}
	if _, there := x.tokens[v.N]; there || include {
		v.N = x.length(v.N)
	} else {
		v.N = -1
	}
	return v, nil
}

// those lists a field's first distinct values in a message.
func (x *expansion) those(f *Field, name string) string {
	var out []string
	for _, g := range x.groups {
		for _, v := range g.values[f.at] {
			text := v.Text
			switch {
			case name == axis.Prompt:
				text = strconv.Itoa(v.N + 1)
			case text == "", text == strconv.Itoa(f.none):
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

// chooses reports whether a rule names a combination. It has no value of a field that its engine does not use.
func (x *expansion) chooses(r rule, g *group, c []int) bool {
	for f, values := range r.named {
		if !x.sets(r, f) && (!slices.Contains(values, g.of(f, c)) || !x.uses(f, g, c)) {
			return false
		}
	}
	return true
}

// include applies entries to the cells that they choose; the last entry wins. An entry that chooses no cell adds a
// group.
func (x *expansion) include(rules []rule) error {
	own := x.groups
	for _, r := range rules {
		found := false
		for _, g := range own {
			for _, c := range g.combinations {
				if x.chooses(r, g, c.was) {
					found = true
					x.set(r, g, c.is)
				}
			}
		}
		if !found {
			if err := x.add(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// set sets a combination's values of the fields that the rule does not choose by.
func (x *expansion) set(r rule, g *group, c []int) {
	for f, values := range r.named {
		if !x.sets(r, f) {
			continue
		}
		all := &g.values[f.at]
		if c[f.at] = slices.Index(*all, values[0]); c[f.at] < 0 { // behind the others
			c[f.at] = len(*all)
			*all = append(slices.Clip(*all), values[0])
		}
	}
}

// add makes a group of an entry that chooses no cell: the values that it names, all engines unless it names some, and
// the first value of all other fields.
func (x *expansion) add(r rule) error {
	models := r.named[x.model]
	if models == nil {
		models = x.groups[0].values[x.model.at]
	}
	for _, model := range models {
		like := x.groups[0]
		if i := slices.IndexFunc(x.groups, func(g *group) bool { return g.values[x.model.at][0] == model }); i >= 0 {
			like = x.groups[i]
		}
		g := &group{values: make([][]Value, len(x.fields)), forms: like.forms, deployment: like.deployment}
		for _, f := range x.fields {
			switch values := like.values[f.at]; {
			case f == x.model:
				g.values[f.at] = []Value{model}
			case r.named[f] != nil:
				g.values[f.at] = r.named[f]
			case f == x.engine:
				g.values[f.at] = values
			case len(values) == 0:
				return fmt.Errorf("%s: adds a cell without a prompt; set input_length", r.path)
			default:
				g.values[f.at] = values[:1]
			}
		}
		x.groups = append(x.groups, g)
		if err := x.fits(r.path); err != nil {
			return err
		}
		x.combine(g, nil)
	}
	return nil
}
