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
	do := nearest.Question(e.name, names)
	if do == "" {
		do = "docs/reference/plan.md lists the fields"
	}
	return wrong(e.key, "", "unknown field %q; %s", join(path, e.name), do)
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
