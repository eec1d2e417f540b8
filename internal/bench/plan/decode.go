package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/bench/gatefile"
	"llmparity/internal/engine"
	"llmparity/internal/kit/document"
)

// reader reads the fields of plans.
type reader struct {
	document.Reader
	kinds engine.Kinds // engines whose sections are allowed
}

func newReader(kinds engine.Kinds) *reader {
	r := &reader{document.Reader{Name: canonical}, kinds}
	r.Own = r.own
	return r
}

// own returns the function that reads a value of a type with a form of its own; nil: there is none.
func (r *reader) own(into any) func(n *document.Node, path string) error {
	switch v := into.(type) {
	case interface {
		read(*reader, *document.Node, string) error
	}:
		return func(n *document.Node, path string) error { return v.read(r, n, path) }
	}
	return gatefile.Reading(into, scopes{r.kinds})
}

// Say replaces a plan's section of an engine.
func (p *Plan) Say(section string, said engine.Section) {
	p.Sections = with(p.Sections, section, said, true)
}

// Like reads a plan that may have the same sections as p.
func (p Plan) Like(text []byte, file string) (Plan, error) { return Parse(text, file, p.kinds...) }

// Kind is what is known of an engine by its name; without fields if there is none.
func (p Plan) Kind(name string) *engine.Kind {
	k, _ := p.kinds.Of(name)
	return cmp.Or(k, &engine.Kind{})
}

// section is what is read of an engine's section. Fields of single values are read as lists.
type section struct {
	kind   *engine.Kind
	fields map[string]reflect.Value
	said   bool
}

func newSection(k *engine.Kind) *section {
	s := &section{kind: k, fields: map[string]reflect.Value{}}
	for _, f := range k.Config().Fields() {
		if t := reflect.TypeOf(f.To).Elem(); f.Key != "" && t.Kind() == reflect.Slice {
			s.fields[f.Key] = reflect.New(t).Elem()
		} else if f.Key != "" {
			s.fields[f.Key] = reflect.New(reflect.SliceOf(t)).Elem()
		}
	}
	return s
}

// value is a field of a plan's section; ok is false if it is missing, which means the engine's default, not the
// flag's. A list in the field of a single value is an axis.
func (s *section) value(f engine.Field) (v any, ok bool) {
	list := s.fields[f.Key]
	if list.Type() == reflect.TypeOf(f.To).Elem() || list.Len() > 1 {
		return list.Interface(), list.Len() > 0
	}
	if list.Len() == 0 || list.Index(0).IsZero() {
		return nil, false
	}
	return list.Index(0).Interface(), true
}

func (s *section) read(r *reader, n *document.Node, path string) error {
	if n.Null() {
		return nil
	}
	if err := n.Group(path, ""); err != nil {
		return err
	}
	s.said = true
	return r.Into(n.Fields, s.fields, path)
}

// sections adds the sections of all engines to the fields of a plan: groups, and settings at the top level.
func (r *reader) sections(to map[string]reflect.Value) (out []*section) {
	for _, k := range r.kinds.Sections() {
		s := newSection(k)
		to[k.Section] = reflect.ValueOf(s).Elem()
		if out = append(out, s); k.Root {
			s = newSection(k)
			maps.Copy(to, s.fields)
			out = append(out, s)
		}
	}
	return out
}

// axes reads a group with axes, among them versions of engines, which are no fields of its type. A single version is
// a list, unless it is the plan's.
func (r *reader) axes(n *document.Node, into any, x *Axes, p *Plan, path string) error {
	if err := n.Group(path, ""); err != nil {
		return err
	}
	to := document.FieldsOf(into)
	for _, name := range r.kinds.VersionAxes() {
		to[listOf(name)] = reflect.ValueOf(new([]string)).Elem()
		if p != nil {
			to[name] = reflect.ValueOf(new(string)).Elem()
		}
	}
	var sections []*section
	take := func() error { return nil }
	if g, ok := into.(*Group); ok {
		take = r.forms(g, n, to)
	}
	if p != nil {
		sections = r.sections(to)
	}
	if err := r.Into(n.Fields, to, path); err != nil {
		return err
	}
	if err := take(); err != nil {
		return n.Placed(path, err)
	}
	for _, name := range r.kinds.VersionAxes() {
		list := to[listOf(name)]
		x.VersionLists = with(x.VersionLists, name, list.Interface().([]string), list.Len() > 0)
		if p != nil {
			p.Versions = with(p.Versions, name, to[name].String(), to[name].Len() > 0)
		}
	}
	for _, s := range sections {
		said := engine.Section{}
		maps.Copy(said, p.Sections[s.kind.Section])
		for _, f := range s.kind.Config().Fields() {
			v, ok := any(nil), false
			if f.Key != "" {
				v, ok = s.value(f)
			}
			if _, twice := said[f.Key]; ok && twice {
				return n.Placed("", fmt.Errorf("%s: cannot be combined with %s.%[1]s; remove one", f.Key, s.kind.Section))
			} else if ok {
				said[f.Key] = v
			}
		}
		if s.said || len(said) > 0 {
			p.Say(s.kind.Section, said)
		}
	}
	return nil
}

// written returns the lists of versions as written in their group.
func (x Axes) written() map[string]any {
	out := map[string]any{}
	for name, list := range x.VersionLists {
		out[listOf(name)] = list
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
		if p.Kind(name).Root {
			maps.Copy(out, said)
		} else {
			out[name] = said
		}
	}
	return out
}

// validateSections refuses invalid sections; of lists it checks the first values, and Expand all combinations.
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
			builds := f.Axis == k.VersionList() && p.Versions[k.VersionAxis] == "" // further values of the list
			if _, both := said[f.Key]; both && f.Axis != "" && p.Says(f.Axis) && !builds {
				or := ""
				if f.Axis == k.VersionList() {
					or = ", or use " + f.Axis + ", and each is a cell"
				}
				return fmt.Errorf("%s: cannot be combined with %s; remove one%s", k.Field(f.Key),
					strings.TrimSuffix(f.Axis, "s"), or)
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
	return slices.ContainsFunc(Fields(p.kinds), func(f *Field) bool {
		one, _ := f.single(&p)
		return f.List == list && (one.Text != "" ||
			slices.ContainsFunc(p.scopes(), func(s scope) bool { return len(f.values(&s.Axes)) > 0 }))
	})
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
