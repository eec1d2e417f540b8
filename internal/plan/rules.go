package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// masks tell of every value of a group's axes which rules it is among those of: a cell that is in one rule's values of
// every axis that this names is that rule's.
type masks struct {
	all  []uint64 // the group's rules
	axis [axisCount][][]uint64
}

// of gives the rules of a combination of a group; into is overwritten.
func (k *masks) of(c *combination, into []uint64) []uint64 {
	into = append(into[:0], k.all...)
	for a := range axisCount {
		for w, word := range k.axis[a][c[a]] {
			into[w] &= word
		}
	}
	return into
}

func none(words []uint64) bool {
	for _, w := range words {
		if w != 0 {
			return false
		}
	}
	return true
}

// rule is an entry of include or exclude.
type rule struct {
	path   string
	models []string // empty: any
	axes   [axisCount][]value
	matter [axisCount]bool // by which it chooses cells; an entry of include sets the others
}

// rules looks through include and exclude.
func (m *matrix) rules() error {
	for _, list := range []struct {
		name  string
		cells []Cells
	}{{"exclude", m.plan.Exclude}, {"include", m.plan.Include}} {
		if len(list.cells) > mostRules {
			return fmt.Errorf("%s: %d entries; give at most %d, each of which may name lists", list.name,
				len(list.cells), mostRules)
		}
		rules := make([]rule, 0, len(list.cells))
		for i, c := range list.cells {
			r, err := m.rule(fmt.Sprintf("%s[%d]", list.name, i), c, list.name == "include")
			if err != nil {
				return err
			}
			rules = append(rules, r)
		}
		if list.name == "exclude" {
			for _, g := range m.groups {
				g.out = g.mask(rules)
			}
			continue
		}
		if err := m.include(rules); err != nil {
			return err
		}
	}
	return nil
}

// rule reads an entry's values.
func (m *matrix) rule(path string, c Cells, include bool) (rule, error) {
	r := rule{path: path, models: c["model"]}
	for _, name := range cellNames() {
		values := c[name]
		if len(values) == 0 || name == "model" {
			continue
		}
		a := ofPrompt
		for b := range axisCount {
			if b.String() == name {
				a = b
			}
		}
		if a == ofPrompt && r.axes[a] != nil {
			return rule{}, fmt.Errorf("%s.input_length: prompt says it too; leave one out", path)
		}
		r.matter[a] = !include || m.listed[a]
		for i, text := range values {
			v, err := m.named(a, name, text, include)
			if err != nil {
				return rule{}, fmt.Errorf("%s.%s: %w", path, name, err)
			}
			if !include && !m.has(a, v) {
				return rule{}, fmt.Errorf("%s.%s: no cell has %s; there are %s", path, name, text, m.those(a, name))
			}
			if include && !r.matter[a] && i > 0 {
				return rule{}, fmt.Errorf(
					"%s.%s: it is no axis of this plan, so that one value is set; give the plan a list of it to have several", path, name)
			}
			r.axes[a] = append(r.axes[a], v)
		}
	}
	if include {
		return r, nil
	}
	for _, model := range r.models {
		if !slices.ContainsFunc(m.groups, func(g *group) bool { return g.model == model }) {
			return rule{}, fmt.Errorf("%s.model: no cell has %s; there are %s", path, model, m.models())
		}
	}
	return r, nil
}

// named is the value that an entry names.
func (m *matrix) named(a axis, name, text string, include bool) (value, error) {
	v := value{text: text}
	switch a {
	case ofDType, ofKVDType:
		v.text = dtype(text)
		return v, knownDType(a, v.text)
	case ofVersion, ofEngine:
		return v, nil
	case ofStart:
		return v, knownStart(text)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return v, fmt.Errorf("%q stands where a whole number is wanted", text)
	}
	if name == "prompt" {
		if len(m.plan.Prompts)+len(m.plan.Sources) == 0 {
			return v, errors.New("there are no prompts but those of input_lengths; name an input_length")
		}
		if n < 1 || n > len(m.plan.Prompts)+len(m.plan.Sources) {
			return v, fmt.Errorf("%d, there are prompts 1 to %d", n, len(m.plan.Prompts)+len(m.plan.Sources))
		}
		return value{"", n - 1}, nil
	}
	least := 1
	if a == ofContext || a == ofThreads {
		least = 0
	}
	if n < least || n > mostTokens {
		return v, fmt.Errorf("%d, from %d to %d are possible", n, least, mostTokens)
	}
	v = value{strconv.Itoa(n), n}
	if name == "input_length" {
		if _, there := m.tokens[n]; there || include {
			v.n = m.length(n)
		} else {
			v.n = -1
		}
	}
	return v, nil
}

// has tells whether any cell has a value.
func (m *matrix) has(a axis, v value) bool {
	return slices.ContainsFunc(m.groups, func(g *group) bool { return slices.Contains(g.values[a][:g.base[a]], v) })
}

// those lists an axis' values for a message.
func (m *matrix) those(a axis, name string) string {
	var out []string
	for _, g := range m.groups {
		for _, v := range g.values[a][:g.base[a]] {
			text := v.text
			switch {
			case name == "prompt":
				text = strconv.Itoa(v.n + 1)
			case a == ofContext && v.n == Unsaid, text == "", text == "0" && a != ofContext:
				text = "only one that is not named"
			}
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return few(out)
}

func (m *matrix) models() string {
	var out []string
	for _, g := range m.groups {
		if !slices.Contains(out, g.model) {
			out = append(out, g.model)
		}
	}
	return few(out)
}

// few writes the first of a list.
func few(list []string) string {
	if len(list) > 12 {
		return strings.Join(list[:12], ", ") + " …"
	}
	return strings.Join(list, ", ")
}

// mask looks up which of a group's values are in which rules.
func (g *group) mask(rules []rule) masks {
	words := (len(rules) + 63) / 64
	k := masks{all: make([]uint64, words)}
	for i, r := range rules {
		if len(r.models) == 0 || slices.Contains(r.models, g.model) {
			k.all[i/64] |= 1 << (i % 64)
		}
	}
	for a := range axisCount {
		k.axis[a] = make([][]uint64, len(g.values[a]))
		flat := make([]uint64, words*len(g.values[a]))
		for j, v := range g.values[a] {
			k.axis[a][j] = flat[j*words : (j+1)*words]
			for i := range rules {
				if rules[i].chooses(a, v) {
					k.axis[a][j][i/64] |= 1 << (i % 64)
				}
			}
		}
	}
	return k
}

// chooses tells whether a value is among those that the rule names. An engine that an axis says nothing to has no value
// of it.
func (r *rule) chooses(a axis, v value) bool {
	if a == ofEngine {
		for _, b := range []axis{ofVersion, ofThreads} {
			if r.matter[b] && r.axes[b] != nil && !concerns(b, v.text) {
				return false
			}
		}
	}
	return !r.matter[a] || r.axes[a] == nil || slices.Contains(r.axes[a], v)
}

// include sets what entries say of the cells that they choose. One that chooses none adds cells: a group of its own.
func (m *matrix) include(rules []rule) error {
	if len(rules) == 0 {
		return nil
	}
	found := m.chosen(rules)
	var setting []rule
	for i, r := range rules {
		if found[i] {
			setting = append(setting, r)
		}
	}
	for _, g := range m.groups {
		g.set = g.mask(setting)
		g.sets = make([][]change, len(setting))
		for i, r := range setting {
			for a := range axisCount {
				if r.axes[a] != nil && !r.matter[a] {
					g.sets[i] = append(g.sets[i], change{a, g.index(a, r.axes[a][0])})
				}
			}
		}
		g.set = g.mask(setting) // of the values that have come, too
	}
	for i, r := range rules {
		if !found[i] {
			if err := m.add(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// change of a cell's value.
type change struct {
	axis  axis
	index int
}

// index of a value, which is put behind the others where it is not there.
func (g *group) index(a axis, v value) int {
	if i := slices.Index(g.values[a], v); i >= 0 {
		return i
	}
	g.values[a] = append(slices.Clip(g.values[a]), v)
	g.out.axis[a] = append(g.out.axis[a], make([]uint64, len(g.out.all)))
	return len(g.values[a]) - 1
}

// chosen tells of each rule whether there is a cell that it chooses.
func (m *matrix) chosen(rules []rule) []bool {
	found, missing := make([]bool, len(rules)), len(rules)
	for _, g := range m.groups {
		k := g.mask(rules)
		var words []uint64
		for c := range g.cells() {
			words = k.of(c, words)
			if none(words) {
				continue
			}
			for i := range rules {
				if !found[i] && words[i/64]&(1<<(i%64)) != 0 {
					found[i] = true
					missing--
				}
			}
			if missing == 0 {
				return found
			}
		}
	}
	return found
}

// add makes a group of an entry that chooses no cell: what it names, of every engine unless it names those, and of all
// else the first value.
func (m *matrix) add(r rule) error {
	models := r.models
	if len(models) == 0 {
		models = []string{m.groups[0].model}
	}
	for _, model := range models {
		like := m.groups[0]
		if i := slices.IndexFunc(m.groups, func(g *group) bool { return g.model == model }); i >= 0 {
			like = m.groups[i]
		}
		g := &group{model: model, deployment: like.deployment, added: true}
		for a := range axisCount {
			switch {
			case r.axes[a] != nil:
				g.values[a] = slices.Clone(r.axes[a])
			case a == ofEngine:
				g.values[a] = slices.Clone(like.values[a][:like.base[a]])
			case like.base[a] == 0:
				return fmt.Errorf("%s: it chooses no cell and adds one that has nothing to ask: name an input_length",
					r.path)
			default:
				g.values[a] = slices.Clone(like.values[a][:1])
			}
			g.base[a] = len(g.values[a])
		}
		g.out = g.mask(nil)
		m.groups = append(m.groups, g)
	}
	if n := m.product(); n > MostCells {
		return fmt.Errorf("%s: with it there are %s cells, and %s are the most", r.path, grouped(n), grouped(MostCells))
	}
	return nil
}
