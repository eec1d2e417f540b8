package document

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Reader reads nodes into Go values by the names of their fields in YAML.
type Reader struct {
	// Own returns the function that reads a value of a type of its own; nil: the Reader reads it.
	Own func(into any) func(n *Node, path string) error
	// Name is our name of a field that others call differently.
	Name   func(string) string
	values int // read so far
}

// wanted describes itself in errors, with an example.
type wanted interface{ Wanted() string }

// Scalar reads its text.
type Scalar interface {
	Parse(text string) error
	wanted
}

// Shorthand is a group that may be written as the value of one of its fields alone.
type Shorthand interface{ Alone() (field any) }

// valid checks itself after it was read.
type valid interface{ Valid() error }

// To reads a node into what into points to.
func (r *Reader) To(n *Node, into any, path string) error {
	return r.value(n, reflect.ValueOf(into).Elem(), path)
}

// value reads a node into a Go value.
func (r *Reader) value(n *Node, into reflect.Value, path string) (err error) {
	if r.values++; r.values > maxValues {
		return Wrong(n, path, tooMany, maxValues)
	}
	if into.Kind() == reflect.Pointer {
		if n.Null() {
			return nil
		}
		made := reflect.New(into.Type().Elem())
		into.Set(made)
		return r.value(n, made.Elem(), path)
	}
	to := into.Addr().Interface()
	if own := r.Own(to); own != nil {
		return own(n, path)
	}
	_, formed := to.(Scalar)
	check, checks := to.(valid)
	switch kind := into.Kind(); {
	case kind == reflect.Struct:
		err = r.Struct(n, to, path)
	case kind == reflect.Slice:
		return r.list(n, into, path)
	case !n.Null() || formed || checks || strings.HasSuffix(path, "]"): // else an empty field means its default
		err = simple(n, into, path)
	}
	if checks && err == nil {
		return n.Placed(path, check.Valid())
	}
	return err
}

// list reads a list, or a single value as a list.
func (r *Reader) list(n *Node, into reflect.Value, path string) error {
	entries, each := []*Node{n}, func(int) string { return path }
	switch kind := into.Type().Elem().Kind(); {
	case n.Null():
		return nil
	case n.listed():
		entries, each = n.list, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	case n.grouped() && kind != reflect.Struct && kind != reflect.Map:
		return n.mistyped(path, "a list")
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
func simple(n *Node, into reflect.Value, path string) error {
	text, single := n.Single()
	if to, ok := into.Addr().Interface().(Scalar); ok {
		if !single {
			return n.mistyped(path, to.Wanted())
		}
		if to.Parse(strings.TrimSpace(text)) != nil {
			return Wrong(n, path, "%.60q is not %s", text, to.Wanted())
		}
		return nil
	}
	if into.Kind() == reflect.String {
		if !single {
			return n.mistyped(path, "text")
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
		return n.mistyped(path, wanted)
	}
	return nil
}

// Struct reads a group into the struct that into points to, or the value that stands for the group.
func (r *Reader) Struct(n *Node, into any, path string) error {
	if n.grouped() {
		return r.Into(n.Fields, FieldsOf(into), path)
	}
	if to, ok := into.(Shorthand); ok {
		return r.To(n, to.Alone(), path)
	}
	if described, ok := into.(wanted); ok {
		return n.Group(path, described.Wanted())
	}
	return n.Group(path, "")
}

// Into reads entries into values by name. A list in the field of a single value sets the field of a list, and the
// other way round.
func (r *Reader) Into(entries []Entry, to map[string]reflect.Value, path string) error {
	said := map[string]string{} // names as written, by field
	for _, e := range entries {
		if path == "" && strings.HasPrefix(e.Name, "x-") { // ignored: a place for anchors
			continue
		}
		at, list := Join(path, e.Name), e.Value.same(e.Name)
		if said[list] != "" {
			return Wrong(e.Key, at, "cannot be combined with %s; remove one", said[list])
		}
		said[list] = e.Name
		into, known := to[r.Name(e.Name)]
		if of, has := to[list]; has && (!known || e.Value.listed() || e.Value.grouped() && groups(of)) {
			into, known = of, true
		}
		if !known {
			return e.Unknown(path, slices.Collect(maps.Keys(to)))
		}
		if err := r.value(e.Value, into, at); err != nil {
			return err
		}
	}
	return nil
}

// groups reports whether a value is a list of groups.
func groups(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct
}

// FieldsOf are the fields of the struct that of points to by their names in YAML, including those of inline structs.
func FieldsOf(of any) map[string]reflect.Value {
	v, out := reflect.ValueOf(of).Elem(), map[string]reflect.Value{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name != "-" && name != "" {
			out[name] = v.FieldByIndex(f.Index)
		}
	}
	return out
}
