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
	"time"
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
	// Absent are fields, as Type.json_name, that older documents lack although they are always written.
	Absent []string
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
func Of(v any, o Options) ([]byte, error) {
	g := &generator{o: o, defs: map[string]object{}, names: map[reflect.Type]string{}, sources: map[string]source{}}
	t := reflect.TypeOf(v)
	ref, err := g.schema(t)
	if err != nil {
		return nil, err
	}
	root := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "urn:" + strings.ReplaceAll(o.ID, "/", ":")},
		{"title", o.Title}}
	if text := g.comment(t); text != "" {
		root = append(root, member{"description", text})
	}
	if err := g.define(); err != nil {
		return nil, err
	}
	root = append(append(root, ref...), member{"$defs", g.sorted()})
	named := slices.Concat(o.Nullable, o.Absent)
	if o.Written != nil {
		named = slices.AppendSeq(named, maps.Keys(o.Written.Fields))
	}
	for _, path := range named {
		if !slices.Contains(g.used, path) {
			return nil, fmt.Errorf("no field %s", path)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	if o.Written != nil { // parts of it are on one line
		var even bytes.Buffer
		err := json.Indent(&even, b.Bytes(), "", "  ")
		return even.Bytes(), err
	}
	return b.Bytes(), nil
}

// define adds the definitions of Written.
func (g *generator) define() error {
	if g.o.Written == nil {
		return nil
	}
	for name, text := range g.o.Written.Defs {
		if _, taken := g.defs[name]; taken {
			return fmt.Errorf("duplicate definition %s", name)
		}
		var err error
		if g.defs[name], err = raw(text); err != nil {
			return err
		}
	}
	return nil
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
	o       Options
	defs    map[string]object
	names   map[reflect.Type]string
	sources map[string]source // by package
	used    []string          // fields named in options
}

func (g *generator) sorted() object {
	var out object
	names := make([]string, 0, len(g.defs))
	for name := range g.defs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, member{name, g.defs[name]})
	}
	return out
}

func (g *generator) schema(t reflect.Type) (object, error) {
	if text := g.o.Types[t]; text != "" {
		return raw(text)
	}
	if g.o.Written != nil && g.o.Written.Types[t] != "" {
		return g.written(t, g.o.Written.Types[t], g.reference)
	}
	if t == reflect.TypeFor[time.Time]() {
		return object{{"type", "string"}, {"format", "date-time"}}, nil
	}
	if marshals(t) {
		return nil, fmt.Errorf("%s marshals itself; add its schema to Options", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.schema(t.Elem())
	case reflect.Bool:
		return object{{"type", "boolean"}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{{"type", "integer"}}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}, nil
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}, nil
	case reflect.String:
		return g.text(t)
	case reflect.Slice, reflect.Array:
		return g.list(t)
	case reflect.Map:
		of, err := g.schema(t.Elem())
		return object{{"type", "object"}, {"additionalProperties", of}}, err
	case reflect.Interface:
		return object{}, nil
	case reflect.Struct:
		return g.reference(t)
	}
	return nil, fmt.Errorf("no schema for %s", t)
}

// Own stands in a schema for the generated schema of the type.
const Own = `{"own": true}`

// written returns a schema from Written, with the generated one for Own.
func (g *generator) written(t reflect.Type, text string, schema func(reflect.Type) (object, error)) (object, error) {
	if strings.Contains(text, Own) {
		own, err := schema(t)
		if err != nil {
			return nil, err
		}
		of, err := own.MarshalJSON()
		if err != nil {
			return nil, err
		}
		text = strings.ReplaceAll(text, Own, string(of))
	}
	return raw(text)
}

// raw parses a schema.
func raw(text string) (object, error) {
	var out object
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		out = append(out, member{fmt.Sprint(name), value})
	}
	return out, nil
}

func marshals(t reflect.Type) bool {
	for _, is := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(is) || reflect.PointerTo(t).Implements(is) {
			return true
		}
	}
	return false
}

func (g *generator) text(t reflect.Type) (object, error) {
	s := object{{"type", "string"}}
	if t.PkgPath() == "" || slices.Contains(g.o.Open, t) {
		return s, nil
	}
	src, err := g.source(t.PkgPath())
	if values := src.constants[t.Name()]; len(values) > 0 {
		s = append(s, member{"enum", values})
	}
	return s, err
}

func (g *generator) list(t reflect.Type) (object, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return object{{"type", "string"}, {"contentEncoding", "base64"}}, nil
	}
	of, err := g.schema(t.Elem())
	s := object{{"type", "array"}, {"items", of}}
	if t.Kind() == reflect.Array {
		s = append(s, member{"minItems", t.Len()}, member{"maxItems", t.Len()})
	}
	return s, err
}

// reference generates a struct's definition once.
func (g *generator) reference(t reflect.Type) (object, error) {
	name, known := g.names[t]
	if !known {
		name = g.free(t)
		g.names[t] = name
		g.defs[name] = nil // reserved, in case the type contains itself
		def, err := g.structure(t)
		if err != nil {
			return nil, err
		}
		g.defs[name] = def
	}
	return object{{"$ref", "#/$defs/" + name}}, nil
}

// free returns the type's name, with its package if the name is taken.
func (g *generator) free(t reflect.Type) string {
	if t.Name() == "" {
		return fmt.Sprintf("anonymous%d", len(g.defs))
	}
	if _, taken := g.defs[t.Name()]; !taken {
		return t.Name()
	}
	return t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:] + "." + t.Name()
}

func (g *generator) structure(t reflect.Type) (object, error) {
	var properties object
	var required, pointers []string
	if err := g.fields(t, &properties, &required, &pointers); err != nil {
		return nil, err
	}
	s := object{{"type", "object"}}
	if text := g.comment(t); text != "" {
		s = append(s, member{"description", text})
	}
	if properties, err := g.others(t, properties); err != nil {
		return nil, err
	} else if s = append(s, member{"additionalProperties", false},
		member{"properties", properties}); g.o.Written != nil {
		more, err := raw(cmp.Or(g.o.Written.More[t], "{}"))
		return append(s, more...), err
	}
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
	return s, nil
}

// others adds fields that the Go type lacks.
func (g *generator) others(t reflect.Type, properties object) (object, error) {
	if g.o.Written == nil {
		return properties, nil
	}
	for _, path := range slices.Sorted(maps.Keys(g.o.Written.Other)) {
		of, name, _ := strings.Cut(path, ".")
		if of != t.Name() {
			continue
		}
		s, err := raw(g.o.Written.Other[path])
		if err != nil {
			return nil, err
		}
		properties = append(properties, member{name, s})
	}
	return properties, nil
}

// tag returns the name of a field.
func (g *generator) tag(f reflect.StructField) (name, rest string) {
	name, rest, _ = strings.Cut(f.Tag.Get("json"), ",")
	if g.o.Written != nil {
		name, rest, _ = strings.Cut(f.Tag.Get(g.o.Written.Tag), ",")
	}
	return name, rest
}

func (g *generator) fields(t reflect.Type, properties *object, required, pointers *[]string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest := g.tag(f)
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			of, into := f.Type, required
			if of.Kind() == reflect.Pointer {
				of, into = of.Elem(), new([]string) // absent if it is nil
			}
			if err := g.fields(of, properties, into, pointers); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		path := t.Name() + "." + name
		s, err := g.field(path, f.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		optional := strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")
		s = g.adapted(path, f.Type, s, optional)
		if text, err := g.fieldComment(t, f.Name); err != nil {
			return err
		} else if text != "" {
			s = append(object{{"description", text}}, s...)
		}
		*properties = append(*properties, member{name, s})
		if f.Type.Kind() == reflect.Pointer {
			*pointers = append(*pointers, name)
		}
		if !optional && !g.has(g.o.Absent, path) {
			*required = append(*required, name)
		}
	}
	return nil
}

// field returns the schema of a field, from its type or the options.
func (g *generator) field(path string, t reflect.Type) (object, error) {
	if g.o.Written != nil && g.o.Written.Fields[path] != "" {
		g.used = append(g.used, path)
		return g.written(t, g.o.Written.Fields[path], g.schema)
	}
	return g.schema(t)
}

// adapted applies the options to a field's schema. Pointers without omitempty may be null.
func (g *generator) adapted(path string, t reflect.Type, s object, optional bool) object {
	if value, ok := g.o.Const[path]; ok {
		return object{{"const", value}}
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
