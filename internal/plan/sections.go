package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
)

// written returns the lists of versions.
func (x Axes) written() map[string]any {
	out := map[string]any{}
	for name, list := range x.VersionLists {
		out[listOf(name)] = list
	}
	return out
}

// Say replaces a plan's section of an engine.
func (p *Plan) Say(section string, said engine.Section) {
	p.Sections = with(p.Sections, section, said, true)
}

// Like reads a plan that may have the same sections as p.
func (p Plan) Like(text []byte, file string) (Plan, error) { return Parse(text, file, p.kinds...) }

// section reads an engine's section, or a field of one that is written at the top level. ok is false for other entries.
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
	switch {
	case e.value.null():
		return nil
	case !e.value.grouped():
		return mistyped(e.value, e.name, groupOfSettings)
	}
	r.said(k)
	for _, of := range e.value.fields {
		ok, err := r.setting(k, of, e.name)
		if err != nil {
			return err
		}
		if !ok {
			return unknownField(of, e.name, keys(k))
		}
	}
	return nil
}

// said is the section of a kind read so far.
func (r *reader) said(k *engine.Kind) engine.Section {
	if r.sections == nil {
		r.sections = map[string]engine.Section{}
	}
	if r.sections[k.Section] == nil {
		r.sections[k.Section] = engine.Section{}
	}
	return r.sections[k.Section]
}

// setting reads a field of an engine, if it is one.
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

// keys are the fields of a kind's section.
func keys(k *engine.Kind) []string {
	var out []string
	for _, f := range k.Config().Fields() {
		if f.Key != "" {
			out = append(out, f.Key)
		}
	}
	return out
}

// top are the names of sections, fields and versions at the top level of a plan.
func top(kinds engine.Kinds) []string {
	out := versions(kinds)
	for _, k := range kinds.Sections() {
		if k.Root {
			out = append(out, keys(k)...)
		} else {
			out = append(out, k.Section)
		}
	}
	return out
}

// versions are the names of axes of versions.
func versions(kinds engine.Kinds) (out []string) {
	for _, name := range kinds.VersionAxes() {
		out = append(out, name, listOf(name))
	}
	return out
}

// written returns sections and versions as written at the top level of a plan.
func (p Plan) written() map[string]any {
	out := p.Axes.written()
	for name, version := range p.Versions {
		out[name] = version
	}
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
			if _, both := said[f.Key]; both && f.Axis != "" && p.Says(f.Axis) {
				return fmt.Errorf("%s: cannot be combined with %s; remove one", k.Field(f.Key), strings.TrimSuffix(f.Axis, "s"))
			}
		}
	}
	return nil
}

// Unversion removes an axis of versions.
func (p *Plan) Unversion(axis string) {
	p.Versions, p.VersionLists = with(p.Versions, axis, "", false), with(p.VersionLists, axis, nil, false)
}

// Says reports whether a plan has values of an axis, named by its list.
func (p Plan) Says(list string) bool {
	for _, a := range axes(p.kinds) {
		if a.list(p.kinds) != list {
			continue
		}
		one, _ := p.one(a)
		return one.text != "" || slices.ContainsFunc(p.scopes(),
			func(s scope) bool { return len(s.values(a, p.kinds)) > 0 })
	}
	return false
}

// unsay removes the fields of sections that set the same as an axis.
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

// version reads an axis of an engine's versions, if the entry is one. A single value of a model in models becomes a
// list.
func (r *reader) version(e entry, into reflect.Value, path string) (ok bool, err error) {
	axes := into.FieldByName("Axes")
	i := slices.IndexFunc(r.kinds.VersionAxes(), func(name string) bool { return listOf(name) == axisOf(e.name) })
	if !axes.IsValid() || i < 0 {
		return false, nil
	}
	name := r.kinds.VersionAxes()[i]
	if plan := into.FieldByName("Versions"); e.name == name && !e.value.listed() && plan.IsValid() {
		var text string
		err = r.value(e.value, reflect.ValueOf(&text).Elem(), path)
		to := plan.Addr().Interface().(*map[string]string)
		*to = with(*to, name, text, text != "")
		return true, err
	}
	var values []string
	err = r.value(e.value, reflect.ValueOf(&values).Elem(), path)
	x := axes.Addr().Interface().(*Axes)
	x.VersionLists = with(x.VersionLists, name, values, len(values) > 0)
	return true, err
}
