package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"llmparity/internal/engine"
	"llmparity/internal/nearest"
)

// aside is the prefix of fields that are ignored, for anchors.
const aside = "x-"

// reader reads a document's tree into Go values. The library's decoder does not fit: it accepts 2.5 and "2" as whole
// numbers, reads the text 0.10 as 0.1, refuses a group that overrides a merged field, and supports neither aliases of
// fields nor a single value for a list.
type reader struct {
	kinds    engine.Kinds // engines whose sections are allowed
	sections map[string]engine.Section
	values   int // read so far
}

// selfReader reads itself. path is the field as written.
type selfReader interface {
	read(r *reader, n *node, path string) error
}

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
	is := ""
	switch {
	case n.grouped():
		is = "a group of settings"
	case n.listed():
		is = "a list"
	case n.null():
		is = "empty"
	default:
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
	do := nearest.Question(e.name, names)
	if do == "" {
		do = "docs/reference/plan.md lists the fields"
	}
	return wrong(e.key, "", "unknown field %q; %s", join(path, e.name), do)
}

// value reads a node into a Go value.
func (r *reader) value(n *node, into reflect.Value, path string) error {
	if r.values++; r.values > maxValues {
		return wrong(n, path, tooMany, maxValues)
	}
	if into.Kind() == reflect.Pointer {
		if n.null() {
			return nil
		}
		made := reflect.New(into.Type().Elem())
		if err := r.value(n, made.Elem(), path); err != nil {
			return err
		}
		into.Set(made)
		return nil
	}
	if x := selfReaderOf(into.Addr().Interface()); x != nil {
		return x.read(r, n, path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return r.group(n, into, path)
	case reflect.Slice:
		return r.list(n, into, path)
	}
	if n.null() && !strings.HasSuffix(path, "]") { // an empty field means its default
		return nil
	}
	return simple(n, into, path)
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
	if into.Kind() == reflect.String {
		text, ok := n.single()
		if !ok {
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
		switch v := x.Value.(type) {
		case int64:
			return float64(v), true
		case uint64:
			return float64(v), true
		}
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

// group reads a struct's fields.
func (r *reader) group(n *node, into reflect.Value, path string) error {
	if !n.grouped() {
		return mistyped(n, path, groupOfSettings)
	}
	return r.fields(n.fields, into, path)
}

// fields reads entries into a struct. A list in the field of a single value sets the axis, and the other way round.
func (r *reader) fields(entries []entry, into reflect.Value, path string) error {
	fields := fieldsOf(into.Type())
	said := map[string]string{} // names as written, by axis
	for _, e := range entries {
		at, axis := join(path, e.name), axisOf(e.name)
		if path == "" && strings.HasPrefix(e.name, aside) {
			continue
		}
		if before, twice := said[axis]; twice {
			if before == e.name {
				return wrong(e.key, at, "duplicate field")
			}
			return wrong(e.key, at, "cannot be combined with %s; remove one", before)
		}
		said[axis] = e.name
		if err := r.entry(e, fields, into, path); err != nil {
			return err
		}
	}
	return nil
}

// entry reads an entry into its field, or into an engine's section.
func (r *reader) entry(e entry, fields map[string][]int, into reflect.Value, path string) error {
	at, name := join(path, e.name), canonical(e.name)
	_, known := fields[name]
	if _, has := fields[listOf(name)]; has && (!known || e.value.listed()) {
		name = listOf(name)
	}
	if index, ok := fields[name]; ok {
		return r.value(e.value, into.FieldByIndex(index), at)
	}
	ok, err := r.version(e, into, at)
	if !ok && path == "" {
		ok, err = r.section(e)
	}
	if ok {
		return err
	}
	names := slices.Sorted(maps.Keys(fields))
	if path == "" {
		names = append(names, top(r.kinds)...)
	} else if _, model := fields["input_lengths"]; model {
		names = append(names, versions(r.kinds)...)
	}
	return unknownField(e, path, names)
}

// fieldsOf are a struct's fields by their names in YAML, including those of inline structs.
func fieldsOf(t reflect.Type) map[string][]int {
	out := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name != "-" && name != "" {
			out[name] = f.Index
		}
	}
	return out
}
