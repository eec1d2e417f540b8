// Package schematest generates JSON Schemas from Go types for tests, and validates documents against them. Published
// schemas must be equal to the generated ones, so a new field fails a test until its schema is updated.
//
// Descriptions are the comments of Go fields; enums are the constants of named string types. It follows encoding/json
// for plain structs. A type with its own MarshalJSON needs an entry in Options.
package schematest

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/kit/check"
)

// Options has what the Go types lack.
type Options struct {
	ID    string // id of the documents, as in their schema field
	Title string
	// Open are named string types with values beyond their constants.
	Open []reflect.Type
	// Nullable are fields, as Type.json_name, whose lists and maps may be null.
	Nullable []string
	// OneOf are structs of which exactly one of the pointers is set.
	OneOf []reflect.Type
	// Const are fields, as Type.json_name, with a single value.
	Const map[string]string
	// Types are schemas of types whose fields don't tell.
	Types map[reflect.Type]string
	// Written describes documents that people write, with optional fields and other notations of values.
	Written *Written
}

// Written describes documents that people write, in JSON.
type Written struct {
	Tag    string                  // tag with the fields' names, instead of json
	Types  map[reflect.Type]string // schemas of types that unmarshal themselves; Own stands for the generated schema
	Fields map[string]string       // likewise of fields, as Type.name
	// further fields, as Type.name, that the Go type lacks
	Other map[string]string
	More  map[reflect.Type]string // members of a struct's schema
	Defs  map[string]string       // definitions that those refer to, as #/$defs/name
}

// Of generates the schema of v's type.
func Of(t testing.TB, v any, o Options) []byte {
	t.Helper()
	g := &generator{t: t, o: o, defs: map[string]object{}, names: map[reflect.Type]string{},
		sources: map[string]source{}}
	typ := reflect.TypeOf(v)
	ref := g.schema(typ)
	root := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "urn:" + strings.ReplaceAll(o.ID, "/", ":")},
		{"title", o.Title}}
	if text := g.source(typ).types[typ.Name()]; text != "" {
		root = append(root, member{"description", text})
	}
	named := slices.Clone(o.Nullable)
	if o.Written != nil {
		for name, text := range o.Written.Defs {
			if _, taken := g.defs[name]; taken {
				t.Fatalf("duplicate definition %s", name)
			}
			g.defs[name] = g.raw(text)
		}
		named = slices.AppendSeq(named, maps.Keys(o.Written.Fields))
	}
	var defs object
	for _, name := range slices.Sorted(maps.Keys(g.defs)) {
		defs = append(defs, member{name, g.defs[name]})
	}
	for _, path := range named {
		if !slices.Contains(g.used, path) {
			t.Fatalf("no field %s", path)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	check.Err(t, e.Encode(append(append(root, ref...), member{"$defs", defs})))
	if o.Written != nil { // parts of it are on one line
		var even bytes.Buffer
		check.Err(t, json.Indent(&even, b.Bytes(), "", "  "))
		return even.Bytes()
	}
	return b.Bytes()
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

type generator struct {
	t       testing.TB
	o       Options
	defs    map[string]object
	names   map[reflect.Type]string
	sources map[string]source // by package
	used    []string          // fields named in options
}

func (g *generator) schema(t reflect.Type) object {
	if text := g.o.Types[t]; text != "" {
		return g.raw(text)
	}
	if g.o.Written != nil && g.o.Written.Types[t] != "" {
		return g.written(t, g.o.Written.Types[t], g.reference)
	}
	if t == reflect.TypeFor[time.Time]() {
		return object{{"type", "string"}, {"format", "date-time"}}
	}
	for _, is := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(is) || reflect.PointerTo(t).Implements(is) {
			g.t.Fatalf("%s marshals itself; add its schema to Options", t)
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.schema(t.Elem())
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	case reflect.String:
		s := object{{"type", "string"}}
		if values := g.source(t).constants[t.Name()]; len(values) > 0 && !slices.Contains(g.o.Open, t) {
			s = append(s, member{"enum", values})
		}
		return s
	case reflect.Slice:
		return object{{"type", "array"}, {"items", g.schema(t.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", g.schema(t.Elem())}}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return g.reference(t)
	}
	g.t.Fatalf("no schema for %s", t)
	return nil
}

// Own stands in a schema for the generated schema of the type.
const Own = `{"own": true}`

// written returns a schema from Written, with the generated one for Own.
func (g *generator) written(t reflect.Type, text string, schema func(reflect.Type) object) object {
	if strings.Contains(text, Own) {
		own, err := schema(t).MarshalJSON()
		check.Err(g.t, err)
		text = strings.ReplaceAll(text, Own, string(own))
	}
	return g.raw(text)
}

// raw parses a schema.
func (g *generator) raw(text string) (out object) {
	d := json.NewDecoder(strings.NewReader(text))
	_, err := d.Token()
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		out = append(out, member{fmt.Sprint(name), value})
	}
	if err != nil {
		g.t.Fatalf("%s: %v", text, err)
	}
	return out
}

// reference generates a struct's definition once.
func (g *generator) reference(t reflect.Type) object {
	name, known := g.names[t]
	if !known {
		name = g.free(t)
		g.names[t] = name
		g.defs[name] = nil // reserved, in case the type contains itself
		g.defs[name] = g.structure(t)
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// free returns the type's name, with its package if the name is taken.
func (g *generator) free(t reflect.Type) string {
	if _, taken := g.defs[t.Name()]; !taken {
		return t.Name()
	}
	return t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:] + "." + t.Name()
}

func (g *generator) structure(t reflect.Type) object {
	var properties object
	var required, pointers []string
	g.fields(t, &properties, &required, &pointers)
	s := object{{"type", "object"}}
	if text := g.source(t).types[t.Name()]; text != "" {
		s = append(s, member{"description", text})
	}
	s = append(s, member{"additionalProperties", false})
	if w := g.o.Written; w != nil {
		for _, path := range slices.Sorted(maps.Keys(w.Other)) {
			if of, name, _ := strings.Cut(path, "."); of == t.Name() {
				properties = append(properties, member{name, g.raw(w.Other[path])})
			}
		}
		return append(append(s, member{"properties", properties}), g.raw(cmp.Or(w.More[t], "{}"))...)
	}
	s = append(s, member{"properties", properties})
	if len(required) > 0 {
		s = append(s, member{"required", required})
	}
	if slices.Contains(g.o.OneOf, t) {
		var each []object
		for _, p := range pointers {
			each = append(each, object{{"required", []string{p}}})
		}
		s = append(s, member{"oneOf", each})
	}
	return s
}

func (g *generator) fields(t reflect.Type, properties *object, required, pointers *[]string) {
	tag := "json"
	if g.o.Written != nil {
		tag = g.o.Written.Tag
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get(tag), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			of, into := f.Type, required
			if of.Kind() == reflect.Pointer {
				of, into = of.Elem(), new([]string) // absent if it is nil
			}
			g.fields(of, properties, into, pointers)
			continue
		}
		name = cmp.Or(name, f.Name)
		path := t.Name() + "." + name
		optional := strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")
		s := g.field(path, f.Type, optional)
		if text := g.source(t).fields[t.Name()+"."+f.Name]; text != "" {
			s = append(object{{"description", text}}, s...)
		}
		*properties = append(*properties, member{name, s})
		if f.Type.Kind() == reflect.Pointer {
			*pointers = append(*pointers, name)
		}
		if !optional {
			*required = append(*required, name)
		}
	}
}

// field returns the schema of a field, from its type and the options. Pointers without omitempty may be null.
func (g *generator) field(path string, t reflect.Type, optional bool) object {
	if value, ok := g.o.Const[path]; ok {
		return object{{"const", value}}
	}
	var s object
	if g.o.Written != nil && g.o.Written.Fields[path] != "" {
		g.used = append(g.used, path)
		s = g.written(t, g.o.Written.Fields[path], g.schema)
	} else {
		s = g.schema(t)
	}
	if g.has(g.o.Nullable, path) || t.Kind() == reflect.Pointer && !optional {
		return object{{"anyOf", []object{s, {{"type", "null"}}}}}
	}
	return s
}

func (g *generator) has(list []string, path string) bool {
	if slices.Contains(list, path) {
		g.used = append(g.used, path)
		return true
	}
	return false
}
