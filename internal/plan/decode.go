package plan

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"llmparity/internal/nearest"
)

// Limits of a document. A plan is written by hand or by a small program: what is beyond them would only fill memory.
const (
	maxText     = 1 << 20
	maxDepth    = 40      // of groups and lists in one another
	maxRepeated = 100_000 // values that aliases repeat, all together
)

// aside begins the names of fields that nobody reads: a place for anchors.
const aside = "x-"

// reader carries a YAML document over into Go values. It goes by the document's tree and not by the library's decoder
// so that every error has its line and its field, and that an alias costs what it repeats.
type reader struct {
	anchors  map[string]ast.Node
	within   int // aliases that are being followed
	repeated int // values that they led to
	places   places
}

// places tell of fields and entries of lists, by their names here, where they are and how they were written.
type places map[string]place

type place struct {
	line int
	name string
}

// find gives the line of what an error begins with, or of the nearest that holds it, and the error with the name as it
// was written.
func (p places) find(err string) (int, string) {
	path, _, _ := strings.Cut(err, ":")
	for ; path != ""; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		if at, ok := p[path]; ok {
			return at.line, at.name + err[len(path):]
		}
	}
	return 0, err
}

// put notes a place below another.
func (p places) put(path string, line int, within, written string) {
	name := written
	if at, ok := p[within]; ok {
		name = at.name + strings.TrimPrefix(written, within)
	}
	p[path] = place{line, name}
}

// node is what reads itself.
type node interface {
	read(r *reader, n ast.Node, path string) error
}

// errUnreadable is the error of a document on which the parser panics: some do that nobody writes by hand.
var errUnreadable = errors.New("this YAML can't be read: write plain lists and values, without tags")

// survive makes that error of a panic.
func survive(err *error) {
	if r := recover(); r != nil {
		*err = errUnreadable
	}
}

// decode reads a document.
func decode(text []byte, into any) (_ places, err error) {
	defer survive(&err)
	body, err := tree(text)
	if err != nil {
		return nil, err
	}
	r := &reader{anchors: map[string]ast.Node{}, places: places{}}
	ast.Walk(r, body)
	err = r.value(body, reflect.ValueOf(into).Elem(), "")
	var at *yaml.SyntaxError
	if errors.As(err, &at) {
		_, at.Message = r.places.find(at.Message)
	}
	return r.places, err
}

// tree is the document's one body.
func tree(text []byte) (ast.Node, error) {
	file, err := parsed(text, "a plan")
	if err != nil {
		return nil, err
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType && d.Body.Type() != ast.DirectiveType {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, errors.New("it is empty: a plan has at least engines, a model and prompts")
	case 1:
		return bodies[0], nil
	}
	return nil, wrong(bodies[1], "", "a second document begins; one file is one plan")
}

// parsed is a text's tree, where it is neither too long nor too deep; what says what it is.
func parsed(text []byte, what string) (*ast.File, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes; %s has at most %d", len(text), what, maxText)
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(text), "\ufeff"))
	if err := shallow(tokens); err != nil {
		return nil, err
	}
	return parser.Parse(tokens, 0)
}

// shallow refuses what is nested so deeply that the parser, which calls itself, would not come back.
func shallow(tokens token.Tokens) error {
	flow, entries, last := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != last {
			entries, last = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.TagType, token.AnchorType:
			entries++
		case token.CollectEntryType:
			entries = 0
		}
		if flow > maxDepth || entries > maxDepth || t.Position.IndentNum > 20*maxDepth {
			return &yaml.SyntaxError{Message: fmt.Sprintf("it is nested more than %d deep", maxDepth), Token: t}
		}
	}
	return nil
}

// Visit gathers anchors.
func (r *reader) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		r.anchors[a.Name.GetToken().Value] = a.Value
	}
	return r
}

// wrong is an error at a node. path is the field; empty: the whole.
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

// mistyped is the error of a value that is of another kind than wanted.
func mistyped(n ast.Node, path, wanted string) error {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return wrong(n, path, "a group of settings stands where %s is wanted", wanted)
	case *ast.SequenceNode:
		return wrong(n, path, "a list stands where %s is wanted", wanted)
	case *ast.NullNode:
		return wrong(n, path, "nothing stands where %s is wanted", wanted)
	}
	value := n.GetToken().Value
	if len(value) > 60 {
		value = value[:60] + "…"
	}
	return wrong(n, path, "%q stands where %s is wanted", value, wanted)
}

// follow gives what stands for a value: behind anchors and aliases. done is to be called when the value was read.
func (r *reader) follow(n ast.Node, path string) (value ast.Node, done func(), err error) {
	hops := 0
	for {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
			continue
		case *ast.AliasNode:
			name := x.Value.GetToken().Value
			value, ok := r.anchors[name]
			if !ok {
				return nil, nil, wrong(n, path, "there is no anchor &%s", name)
			}
			if hops++; r.within+hops > maxDepth {
				return nil, nil, wrong(n, path, "the alias *%s holds itself, or too many others", name)
			}
			n = value
			continue
		case *ast.TagNode:
			return nil, nil, wrong(n, path, "write plain lists and values, without tags such as %s", x.Start.Value)
		}
		break
	}
	r.within += hops
	if r.within > 0 {
		if r.repeated++; r.repeated > maxRepeated {
			return nil, nil, wrong(n, path, "aliases repeat more than %d values", maxRepeated)
		}
	}
	return n, func() { r.within -= hops }, nil
}

// value reads a node into a Go value.
func (r *reader) value(n ast.Node, into reflect.Value, path string) error {
	n, done, err := r.follow(n, path)
	if err != nil {
		return err
	}
	defer done()
	if into.Kind() == reflect.Pointer {
		if n.Type() == ast.NullType {
			return nil
		}
		made := reflect.New(into.Type().Elem())
		if err := r.value(n, made.Elem(), path); err != nil {
			return err
		}
		into.Set(made)
		return nil
	}
	switch x := into.Addr().Interface().(type) {
	case node:
		return x.read(r, n, path)
	case yaml.NodeUnmarshaler:
		return x.UnmarshalYAML(n)
	}
	switch into.Kind() {
	case reflect.Struct:
		return r.group(n, into, path)
	case reflect.Slice:
		return r.list(n, into, path)
	}
	if n.Type() == ast.NullType && !strings.HasSuffix(path, "]") { // a field that says nothing
		return nil
	}
	return simple(n, into, path)
}

// listed are a list's entries, or a single value as the only one; none of what says nothing.
func listed(n ast.Node) []ast.Node {
	switch x := n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		return x.Values
	}
	return []ast.Node{n}
}

// list reads a list, or a single value as a list of it.
func (r *reader) list(n ast.Node, into reflect.Value, path string) error {
	entries := listed(n)
	switch n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		if into.Type().Elem().Kind() != reflect.Struct && into.Type().Elem().Kind() != reflect.Map {
			return mistyped(n, path, "a list")
		}
	}
	made := reflect.MakeSlice(into.Type(), len(entries), len(entries))
	for i, e := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		if written := at; len(entries) == 1 && e == n {
			r.places.put(at, line(e), path, path)
		} else {
			r.places.put(at, line(e), path, written)
		}
		if err := r.value(e, made.Index(i), at); err != nil {
			return err
		}
	}
	into.Set(made)
	return nil
}

// line is where a node begins; of a group, where its first field does.
func line(n ast.Node) int {
	switch x := n.(type) {
	case *ast.MappingNode:
		if len(x.Values) > 0 && !x.IsFlowStyle {
			return line(x.Values[0])
		}
	case *ast.MappingValueNode:
		return x.Key.GetToken().Position.Line
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// simple reads a single value.
func simple(n ast.Node, into reflect.Value, path string) error {
	switch into.Kind() {
	case reflect.String:
		text, ok := single(n)
		if !ok {
			return mistyped(n, path, "a text")
		}
		into.SetString(text)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return mistyped(n, path, "true or false")
		}
		into.SetBool(b.Value)
	case reflect.Int, reflect.Int64:
		v, ok := whole(n)
		if !ok {
			return mistyped(n, path, "a whole number")
		}
		into.SetInt(v)
	case reflect.Uint64:
		if x, ok := n.(*ast.IntegerNode); ok {
			if v, ok := x.Value.(uint64); ok {
				into.SetUint(v)
				return nil
			}
		}
		v, ok := whole(n)
		if !ok || v < 0 {
			return mistyped(n, path, "a whole number, 0 or more,")
		}
		into.SetUint(uint64(v))
	case reflect.Float64:
		if f, ok := number(n); ok {
			into.SetFloat(f)
			return nil
		}
		v, ok := whole(n)
		if !ok {
			return mistyped(n, path, "a number")
		}
		into.SetFloat(float64(v))
	default:
		return wrong(n, path, "nothing can be read into a %s", into.Type())
	}
	return nil
}

// whole is a whole number, which may be written as in 4e3.
func whole(n ast.Node) (int64, bool) {
	switch x := n.(type) {
	case *ast.IntegerNode:
		switch v := x.Value.(type) {
		case int64:
			return v, true
		case uint64:
			return int64(min(v, math.MaxInt64)), v <= math.MaxInt64
		}
	}
	v, ok := number(n)
	return int64(v), ok && v == math.Trunc(v) && math.Abs(v) < 1<<53
}

// powers are numbers such as 70e9, which the parser takes for texts.
var powers = regexp.MustCompile(`^[+-]?[0-9]+[eE][+-]?[0-9]{1,3}$`)

// number is one with a fraction or a power of ten.
func number(n ast.Node) (float64, bool) {
	switch x := n.(type) {
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

// single is the text of a single value, as it is written.
func single(n ast.Node) (string, bool) {
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		return x.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// entry is a field as it is written.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// entries are a group's fields, with those that are merged into it.
func (r *reader) entries(n ast.Node, path string) ([]entry, error) {
	var values []*ast.MappingValueNode
	switch x := n.(type) {
	case *ast.MappingNode:
		values = x.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{x}
	default:
		return nil, mistyped(n, path, "a group of settings")
	}
	var own, merged []entry
	for _, v := range values {
		if v.Key.IsMergeKey() {
			from, err := r.merged(v.Value, path)
			if err != nil {
				return nil, err
			}
			merged = append(merged, from...)
			continue
		}
		name := v.Key.GetToken().Value
		if slices.ContainsFunc(own, func(e entry) bool { return e.name == name }) {
			return nil, wrong(v.Key, join(path, name), "it is said twice")
		}
		own = append(own, entry{name, v.Key, v.Value})
	}
	for _, m := range merged {
		if !slices.ContainsFunc(own, func(e entry) bool { return axisOf(e.name) == axisOf(m.name) }) {
			own = append(own, m)
		}
	}
	return own, nil
}

// merged are the fields of a group, or of several, that another takes up.
func (r *reader) merged(n ast.Node, path string) ([]entry, error) {
	n, done, err := r.follow(n, path)
	if err != nil {
		return nil, err
	}
	defer done()
	if list, ok := n.(*ast.SequenceNode); ok {
		var all []entry
		for _, each := range list.Values {
			more, err := r.merged(each, path)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	}
	return r.entries(n, path)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// group reads a struct's fields. A field of one value whose value is a list is that of the axis, and the other way
// round.
func (r *reader) group(n ast.Node, into reflect.Value, path string) error {
	entries, err := r.entries(n, path)
	if err != nil {
		return err
	}
	fields := fieldsOf(into.Type())
	said := map[string]string{} // by axis: how it was written
	for _, e := range entries {
		name := e.name
		at := join(path, name)
		if path == "" && strings.HasPrefix(name, aside) {
			continue
		}
		index, ok := fields[r.field(e, fields)]
		if !ok {
			return wrong(e.key, at, "unknown field%s", meant(name, fields))
		}
		axis := axisOf(name)
		if before, twice := said[axis]; twice {
			return wrong(e.key, at, "%s says it too; leave one out", before)
		}
		said[axis] = name
		written := at
		at = join(path, nameOf(into.Type(), index))
		r.places.put(at, line(e.key), path, written)
		if err := r.value(e.value, into.FieldByIndex(index), at); err != nil {
			return err
		}
	}
	return nil
}

// field is the name of the field that an entry is for.
func (r *reader) field(e entry, fields map[string][]int) string {
	name := canonical(e.name)
	value, done, err := r.follow(e.value, "")
	if err != nil {
		return name // whoever reads the value says it
	}
	done()
	_, known := fields[name]
	if _, list := value.(*ast.SequenceNode); list || !known {
		if _, ok := fields[listOf(name)]; ok {
			return listOf(name)
		}
	}
	return name
}

// meant offers the field that somebody may have had in mind.
func meant(name string, fields map[string][]int) string {
	names := make([]string, 0, len(fields))
	for f := range fields {
		names = append(names, f)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + nearest.Of(name, names, 1)[0] + "?"
}

// fieldsOf are a struct's fields by their names in YAML, with those of the structs that are inline.
func fieldsOf(t reflect.Type) map[string][]int {
	out := map[string][]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(options, "inline"):
			for inner, index := range fieldsOf(f.Type) {
				out[inner] = append([]int{i}, index...)
			}
		case name != "-" && name != "":
			out[name] = []int{i}
		}
	}
	return out
}

// nameOf is the name in YAML of a struct's field.
func nameOf(t reflect.Type, index []int) string {
	name, _, _ := strings.Cut(t.FieldByIndex(index).Tag.Get("yaml"), ",")
	return name
}
