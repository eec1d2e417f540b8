package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"llmparity/internal/engine"
	"llmparity/internal/gates"
	"llmparity/internal/nearest"
)

// reader reads a document's tree into Go values. The library's decoder does not fit: it accepts 2.5 and "2" as whole
// numbers, reads the text 0.10 as 0.1, refuses a group that overrides a merged field, and supports neither aliases of
// fields nor a single value for a list.
type reader struct {
	kinds  engine.Kinds // engines whose sections are allowed
	values int          // read so far
}

// selfReader reads itself. path is the field as written.
type selfReader interface {
	read(r *reader, n *node, path string) error
}

// scalar reads its text; wanted describes it, with an example.
type scalar interface {
	parse(text string) error
	wanted() string
}

// shorthand is a group that may be written as the value of one of its fields alone.
type shorthand interface{ alone() (field any) }

// valid checks itself after it was read.
type valid interface{ Valid() error }

// wrong is an error at a node. path is the field; empty: the document.
func wrong(n ast.Node, path, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	if n == nil || n.GetToken() == nil {
		return errors.New(text)
	}
	return &yaml.SyntaxError{Message: text, Token: n.GetToken()}
}

// mistyped is the error for a value of the wrong type.
func mistyped(n *node, path, wanted string) error {
	is := "empty"
	switch {
	case n.grouped():
		is = groupOfSettings
	case n.listed():
		is = "a list"
	case !n.null():
		value := n.GetToken().Value
		if len(value) > 60 {
			value = value[:60] + "…"
		}
		is = strconv.Quote(value)
	}
	return wrong(n, path, "must be %s, not %s", wanted, is)
}

// unknownField is the error for a field that does not exist; names are those that do.
func unknownField(e entry, path string, names []string) error {
	return wrong(e.key, "", "unknown field %q; %s", join(path, e.name),
		cmp.Or(nearest.Question(e.name, names), "docs/reference/plan.md lists the fields"))
}

// value reads a node into a Go value.
func (r *reader) value(n *node, into reflect.Value, path string) (err error) {
	if r.values++; r.values > maxValues {
		return wrong(n, path, tooMany, maxValues)
	}
	if into.Kind() == reflect.Pointer {
		if n.null() {
			return nil
		}
		made := reflect.New(into.Type().Elem())
		into.Set(made)
		return r.value(n, made.Elem(), path)
	}
	to := into.Addr().Interface()
	_, formed := to.(scalar)
	check, checks := to.(valid)
	switch kind := into.Kind(); {
	case selfReaderOf(to) != nil:
		return selfReaderOf(to).read(r, n, path)
	case kind == reflect.Struct:
		err = r.group(n, into, path)
	case kind == reflect.Slice:
		return r.list(n, into, path)
	case !n.null() || formed || checks || strings.HasSuffix(path, "]"): // else an empty field means its default
		err = simple(n, into, path)
	}
	if checks && err == nil {
		return n.placed(path, check.Valid())
	}
	return err
}

// list reads a list, or a single value as a list.
func (r *reader) list(n *node, into reflect.Value, path string) error {
	entries, each := []*node{n}, func(int) string { return path }
	switch kind := into.Type().Elem().Kind(); {
	case n.null():
		return nil
	case n.listed():
		entries, each = n.list, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	case n.grouped() && kind != reflect.Struct && kind != reflect.Map:
		return mistyped(n, path, "a list")
	}
	made := reflect.MakeSlice(into.Type(), len(entries), len(entries))
	for i, e := range entries {
		if err := r.value(e, made.Index(i), each(i)); err != nil {
			return err
		}
	}
	into.Set(made)
	return nil
}

// simple reads a single value. The library converts it after its type was checked.
func simple(n *node, into reflect.Value, path string) error {
	text, single := n.single()
	if to, ok := into.Addr().Interface().(scalar); ok {
		if !single {
			return mistyped(n, path, to.wanted())
		}
		if to.parse(strings.TrimSpace(text)) != nil {
			return wrong(n, path, "%.60q is not %s", text, to.wanted())
		}
		return nil
	}
	if into.Kind() == reflect.String {
		if !single {
			return mistyped(n, path, "text")
		}
		into.SetString(text)
		return nil
	}
	v, ok := n.number()
	wanted, isWhole := "a number", v == math.Trunc(v)
	switch into.Kind() {
	case reflect.Bool:
		wanted = "true or false"
		_, ok = n.Node.(*ast.BoolNode)
	case reflect.Int, reflect.Int64:
		wanted, ok = "a whole number", ok && isWhole
	case reflect.Uint64:
		wanted, ok = "a whole number of at least 0", ok && isWhole && v >= 0
	}
	if !ok || yaml.NodeToValue(n.Node, into.Addr().Interface()) != nil {
		return mistyped(n, path, wanted)
	}
	return nil
}

// powers are numbers such as 70e9, which the parser reads as text.
var powers = regexp.MustCompile(`^[+-]?[0-9]+[eE][+-]?[0-9]{1,3}$`)

// number is the approximate value of a finite number.
func (n *node) number() (float64, bool) {
	switch x := n.Node.(type) {
	case *ast.IntegerNode:
		v, err := strconv.ParseFloat(fmt.Sprint(x.Value), 64)
		return v, err == nil
	case *ast.FloatNode:
		return x.Value, !math.IsInf(x.Value, 0)
	case *ast.StringNode:
		if x.Token.Type == token.StringType && powers.MatchString(x.Value) {
			v, err := strconv.ParseFloat(x.Value, 64)
			return v, err == nil
		}
	}
	return 0, false
}

// single is the text of a single value as written.
func (n *node) single() (string, bool) {
	switch x := n.Node.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		return x.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// group reads a struct, or the value that stands for one.
func (r *reader) group(n *node, into reflect.Value, path string) error {
	if n.grouped() {
		return r.fields(n.fields, fieldsOf(into), path)
	}
	switch to := into.Addr().Interface().(type) {
	case shorthand:
		return r.value(n, reflect.ValueOf(to.alone()).Elem(), path)
	case *gates.Limit:
		return mistyped(n, path, "a limit such as {max: 900}")
	}
	return mistyped(n, path, groupOfSettings)
}

// fields reads entries into values by name. A list in the field of a single value sets the axis, and the other way
// round.
func (r *reader) fields(entries []entry, to map[string]reflect.Value, path string) error {
	said := map[string]string{} // names as written, by axis
	for _, e := range entries {
		if path == "" && strings.HasPrefix(e.name, "x-") { // ignored: a place for anchors
			continue
		}
		at, axis, name := join(path, e.name), axisOf(e.name), canonical(e.name)
		if said[axis] != "" {
			return wrong(e.key, at, "cannot be combined with %s; remove one", said[axis])
		}
		said[axis] = e.name
		into, known := to[name]
		if list, has := to[axis]; has && (!known || e.value.listed()) {
			into, known = list, true
		}
		if !known {
			return unknownField(e, path, slices.Collect(maps.Keys(to)))
		}
		if err := r.value(e.value, into, at); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf are a struct's fields by their names in YAML, including those of inline structs.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name != "-" && name != "" {
			out[name] = v.FieldByIndex(f.Index)
		}
	}
	return out
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

// section is what is read of an engine's section.
type section struct {
	kind   *engine.Kind
	fields map[string]reflect.Value
	said   bool
}

func (s *section) read(r *reader, n *node, path string) error {
	switch {
	case n.null():
		return nil
	case !n.grouped():
		return mistyped(n, path, groupOfSettings)
	}
	s.said = true
	return r.fields(n.fields, s.fields, path)
}

// sections adds the sections of all engines to the fields of a plan: groups, and settings at the top level.
func (r *reader) sections(to map[string]reflect.Value) (out []*section) {
	for _, k := range r.kinds.Sections() {
		s := &section{kind: k, fields: map[string]reflect.Value{}}
		for _, f := range k.Config().Fields() {
			if f.Key != "" {
				s.fields[f.Key] = reflect.ValueOf(f.To).Elem()
				s.fields[f.Key].SetZero() // a missing one means the engine's default, not the flag's
			}
		}
		if out = append(out, s); k.Root {
			maps.Copy(to, s.fields)
		} else {
			to[k.Section] = reflect.ValueOf(s).Elem()
		}
	}
	return out
}

// axes reads a group with axes, among them versions of engines, which are no fields of its type. A single version is
// a list, unless it is the plan's.
func (r *reader) axes(n *node, into reflect.Value, x *Axes, p *Plan, path string) error {
	if !n.grouped() {
		return mistyped(n, path, groupOfSettings)
	}
	to := fieldsOf(into)
	lists, ones := map[string]*[]string{}, map[string]*string{}
	for _, name := range r.kinds.VersionAxes() {
		lists[name], ones[name] = new([]string), new(string)
		to[listOf(name)] = reflect.ValueOf(lists[name]).Elem()
		if p != nil {
			to[name] = reflect.ValueOf(ones[name]).Elem()
		}
	}
	var sections []*section
	if p != nil {
		sections = r.sections(to)
	}
	if err := r.fields(n.fields, to, path); err != nil {
		return err
	}
	for name, list := range lists {
		x.VersionLists = with(x.VersionLists, name, *list, len(*list) > 0)
		if p != nil {
			p.Versions = with(p.Versions, name, *ones[name], *ones[name] != "")
		}
	}
	for _, s := range sections {
		said := engine.Section{}
		for key, v := range s.fields {
			if !v.IsZero() {
				said[key] = v.Interface()
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
	return slices.ContainsFunc(axes(p.kinds), func(a axis) bool {
		one, _ := p.one(a)
		return a.list(p.kinds) == list && (one.text != "" ||
			slices.ContainsFunc(p.scopes(), func(s scope) bool { return len(s.values(a, p.kinds)) > 0 }))
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
