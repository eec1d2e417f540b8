package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/engine"
	"llmparity/internal/nearest"
)

// Say puts in what a plan says of an engine, in place of what it said.
func (p *Plan) Say(section string, said engine.Section) {
	p.Sections = maps.Clone(p.Sections) // copies of the plan share it
	if p.Sections == nil {
		p.Sections = map[string]engine.Section{}
	}
	p.Sections[section] = said
}

// Like reads a plan that may have the sections that p may have.
func (p Plan) Like(text []byte, file string) (Plan, error) { return Parse(text, file, p.kinds...) }

// section reads an entry of a plan that is a section, or a key of one that stands at the top; ok tells whether it is.
func (r *reader) section(e entry) (ok bool, err error) {
	for _, k := range r.kinds.Sections() {
		switch {
		case k.Root:
			ok, err = r.setting(k, e, "")
		case k.Section == e.name:
			ok, err = true, r.settings(k, e)
		}
		if ok {
			return true, err
		}
	}
	return false, nil
}

func (r *reader) settings(k *engine.Kind, e entry) error {
	n, err := r.follow(e.value, e.name)
	if err != nil || n.Type() == ast.NullType {
		return err
	}
	entries, err := r.entries(n, e.name)
	if err != nil {
		return err
	}
	r.said(k)
	written := map[string]bool{}
	for _, of := range entries {
		at := join(e.name, of.name)
		ok, err := r.setting(k, of, e.name)
		switch {
		case err != nil:
			return err
		case !ok:
			return wrong(of.key, at, "unknown field; did you mean %s?", nearest.Of(of.name, keys(k), 1)[0])
		case written[canonical(of.name)]:
			return wrong(of.key, at, "it is said twice")
		}
		written[canonical(of.name)] = true
	}
	return nil
}

// said is the section of a kind, as far as it was read.
func (r *reader) said(k *engine.Kind) engine.Section {
	if r.sections == nil {
		r.sections = map[string]engine.Section{}
	}
	if r.sections[k.Section] == nil {
		r.sections[k.Section] = engine.Section{}
	}
	return r.sections[k.Section]
}

// setting reads a field of an engine's, if it is one.
func (r *reader) setting(k *engine.Kind, e entry, path string) (ok bool, err error) {
	for _, f := range k.Config().Fields() {
		if f.Key == "" || f.Key != canonical(e.name) {
			continue
		}
		v := reflect.ValueOf(f.To).Elem()
		v.SetZero()
		if err := r.value(e.value, v, join(path, e.name)); err != nil {
			return true, err
		}
		if !v.IsZero() {
			r.said(k)[f.Key] = v.Interface()
		}
		return true, nil
	}
	return false, nil
}

// keys are those of a kind's section.
func keys(k *engine.Kind) []string {
	var out []string
	for _, f := range k.Config().Fields() {
		if f.Key != "" {
			out = append(out, f.Key)
		}
	}
	return out
}

// top are the names of sections and of keys that stand at the top of a plan.
func top(kinds engine.Kinds) []string {
	var out []string
	for _, k := range kinds.Sections() {
		if k.Root {
			out = append(out, keys(k)...)
		} else {
			out = append(out, k.Section)
		}
	}
	return out
}

// written are the sections as they stand at the top of a plan.
func (p Plan) written() map[string]any {
	out := map[string]any{}
	for name, said := range p.Sections {
		if k, _ := p.kinds.Of(name); k == nil || !k.Root {
			out[name] = said
			continue
		}
		for key, value := range said {
			out[key] = value
		}
	}
	return out
}

// validateSections looks at what is said to engines.
func (p Plan) validateSections() error {
	for _, k := range p.kinds.Sections() {
		said, ok := p.Sections[k.Section]
		if !ok {
			continue
		}
		if err := k.CheckSection(said, engine.Settings{Timeout: time.Duration(p.Timeout)}); err != nil {
			return err
		}
		for _, f := range k.Config().Fields() {
			if _, both := said[f.Key]; both && f.Axis != "" && p.says(f.Axis) {
				return fmt.Errorf("%s: %s says it too; leave one out", k.Field(f.Key), strings.TrimSuffix(f.Axis, "s"))
			}
		}
	}
	return nil
}

// says tells whether a plan has values of an axis.
func (p Plan) says(list string) bool {
	one, lists := p.KVDType, func(x Axes) []string { return x.KVDTypes }
	if list == engine.AxisVersion {
		one, lists = p.WebLLMVersion, func(x Axes) []string { return x.WebLLMVersions }
	}
	return one != "" || len(lists(p.Axes)) > 0 ||
		slices.ContainsFunc(p.Models, func(g Group) bool { return len(lists(g.Axes)) > 0 })
}

// unsay takes away the fields of sections that say the same as an axis.
func (p *Plan) unsay(list string) {
	for _, k := range p.kinds.Sections() {
		for _, f := range k.Config().Fields() {
			if _, ok := p.Sections[k.Section][f.Key]; ok && f.Axis == list {
				said := maps.Clone(p.Sections[k.Section])
				delete(said, f.Key)
				p.Say(k.Section, said)
			}
		}
	}
}

// concerns tells whether an axis says something to an engine. One that it says nothing to is not asked the same again
// for each of its values, but for the first.
func concerns(kinds engine.Kinds, a axis, name string) bool {
	if a != ofVersion && a != ofThreads {
		return true
	}
	k, _ := kinds.Of(name)
	if k == nil { // one that is not known may have threads
		return a == ofThreads
	}
	return slices.Contains(k.Axes, a.list())
}

// concerned are the engines that an axis says something to, for people.
func concerned(kinds engine.Kinds, a axis) string {
	var out []string
	for _, k := range kinds {
		if slices.Contains(k.Axes, a.list()) {
			out = append(out, k.Shown())
		}
	}
	return strings.Join(out, " or ")
}
