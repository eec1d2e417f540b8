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
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"llmparity/internal/engine"
	"llmparity/internal/nearest"
)

// Limits of a document, against using up memory.
const (
	maxText   = 1 << 20
	maxDepth  = 40      // of nested groups and lists
	maxValues = 100_000 // after expanding aliases
)

// aside is the prefix of fields that are ignored, for anchors.
const aside = "x-"

// reader reads a document's tree into Go values. The library's decoder does not fit: it accepts 2.5 and "2" as whole
// numbers, reads the text 0.10 as 0.1, refuses a group that overrides a merged field, and supports neither aliases of
// fields nor a single value for a list.
type reader struct {
	root     ast.Node
	kinds    engine.Kinds // engines whose sections are allowed
	sections map[string]engine.Section
	anchors  map[string]ast.Node
	values   int // read so far
	depth    int // of merged groups
}

// node reads itself. path is the field as written.
type node interface {
	read(r *reader, n ast.Node, path string) error
}

// errUnreadable is the error for documents on which the parser panics.
var errUnreadable = errors.New("cannot parse this YAML; use plain lists and values without tags")

// survive turns a panic into errUnreadable.
func survive(err *error) {
	if r := recover(); r != nil {
		*err = errUnreadable
	}
}

// open parses a text with one document. what names it in errors.
func open(text []byte, what string) (*reader, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("too large: %d bytes; the maximum is %d", len(text), maxText)
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(text), "\ufeff"))
	if err := shallow(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, err
	}
	r := &reader{anchors: map[string]ast.Node{}}
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType || d.Body.Type() == ast.DirectiveType {
			continue
		}
		if r.root != nil {
			return nil, wrong(d.Body, "", "second document; a file is one %s", what)
		}
		r.root = d.Body
	}
	if r.root == nil {
		return nil, fmt.Errorf("empty; a %s is expected", what)
	}
	ast.Walk(r, r.root)
	return r, nil
}

// shallow refuses deep nesting, on which the recursive parser would use up the stack.
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
			return &yaml.SyntaxError{Message: fmt.Sprintf("nested more than %d levels deep", maxDepth), Token: t}
		}
	}
	return nil
}

// Visit collects anchors.
func (r *reader) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		r.anchors[a.Name.GetToken().Value] = a.Value
	}
	return r
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
func mistyped(n ast.Node, path, wanted string) error {
	is := ""
	switch {
	case grouped(n):
		is = "a group of settings"
	case n.Type() == ast.SequenceType:
		is = "a list"
	case n.Type() == ast.NullType:
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

// follow resolves anchors and aliases. Every value passes through here, so that aliases which contain themselves come
// to an end.
func (r *reader) follow(n ast.Node, path string) (ast.Node, error) {
	for {
		if r.values++; r.values > maxValues {
			return nil, wrong(n, path, "more than %d values after expanding aliases", maxValues)
		}
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			name := x.Value.GetToken().Value
			value, ok := r.anchors[name]
			if !ok {
				return nil, wrong(n, path, "unknown anchor &%s", name)
			}
			n = value
		case *ast.TagNode:
			return nil, wrong(n, path, "tags such as %s are not supported", x.Start.Value)
		default:
			return n, nil
		}
	}
}

// value reads a node into a Go value.
func (r *reader) value(n ast.Node, into reflect.Value, path string) error {
	n, err := r.follow(n, path)
	if err != nil {
		return err
	}
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
	if x := nodeOf(into.Addr().Interface()); x != nil {
		return x.read(r, n, path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return r.group(n, into, path)
	case reflect.Slice:
		return r.list(n, into, path)
	}
	if n.Type() == ast.NullType && !strings.HasSuffix(path, "]") { // an empty field means its default
		return nil
	}
	return simple(n, into, path)
}

// list reads a list, or a single value as a list.
func (r *reader) list(n ast.Node, into reflect.Value, path string) error {
	entries, each := []ast.Node{n}, func(int) string { return path }
	switch x := n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		entries, each = x.Values, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	case *ast.MappingNode, *ast.MappingValueNode:
		if kind := into.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.Map {
			return mistyped(n, path, "a list")
		}
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
func simple(n ast.Node, into reflect.Value, path string) error {
	if into.Kind() == reflect.String {
		text, ok := single(n)
		if !ok {
			return mistyped(n, path, "text")
		}
		into.SetString(text)
		return nil
	}
	v, ok := number(n)
	wanted, isWhole := "a number", v == math.Trunc(v)
	switch into.Kind() {
	case reflect.Bool:
		wanted = "true or false"
		_, ok = n.(*ast.BoolNode)
	case reflect.Int, reflect.Int64:
		wanted, ok = "a whole number", ok && isWhole
	case reflect.Uint64:
		wanted, ok = "a whole number of at least 0", ok && isWhole && v >= 0
	}
	if !ok || yaml.NodeToValue(n, into.Addr().Interface()) != nil {
		return mistyped(n, path, wanted)
	}
	return nil
}

// powers are numbers such as 70e9, which the parser reads as text.
var powers = regexp.MustCompile(`^[+-]?[0-9]+[eE][+-]?[0-9]{1,3}$`)

// number is the approximate value of a finite number.
func number(n ast.Node) (float64, bool) {
	switch x := n.(type) {
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

// entry is a field as written.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// entries are a group's fields, including merged ones.
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
		if !v.Key.IsMergeKey() {
			own = append(own, entry{v.Key.GetToken().Value, v.Key, v.Value})
			continue
		}
		from, err := r.merged(v.Value, path)
		if err != nil {
			return nil, err
		}
		merged = append(merged, from...)
	}
	for _, m := range merged {
		if !slices.ContainsFunc(own, func(e entry) bool { return axisOf(e.name) == axisOf(m.name) }) {
			own = append(own, m)
		}
	}
	return own, nil
}

// merged are the fields of a group, or of several, that are merged into another.
func (r *reader) merged(n ast.Node, path string) ([]entry, error) {
	if r.depth++; r.depth > maxDepth {
		return nil, wrong(n, path, "group merged into itself, or nested too deeply")
	}
	defer func() { r.depth-- }()
	n, err := r.follow(n, path)
	if err != nil {
		return nil, err
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.entries(n, path)
	}
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

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// group reads a struct's fields.
func (r *reader) group(n ast.Node, into reflect.Value, path string) error {
	entries, err := r.entries(n, path)
	if err != nil {
		return err
	}
	return r.fields(entries, into, path)
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
	at := join(path, e.name)
	if index, ok := fields[r.field(e, fields)]; ok {
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

// field is the name of an entry's field.
func (r *reader) field(e entry, fields map[string][]int) string {
	name := canonical(e.name)
	_, known := fields[name]
	_, has := fields[listOf(name)]
	if value, err := r.follow(e.value, ""); has && err == nil {
		if _, list := value.(*ast.SequenceNode); list || !known {
			return listOf(name)
		}
	}
	return name // an error in the value is reported when it is read
}

// fieldsOf are a struct's fields by their names in YAML, including those of inline structs.
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

// pathPart is a name, or the number of a list's entry.
var pathPart = regexp.MustCompile(`[^.\[\]]+|\[[0-9]+\]`)

// find returns the place of the field that a message begins with, or of the group that contains it, and the message
// with that field's name as written; nil: not found.
func (r *reader) find(n ast.Node, message string) (at ast.Node, text string) {
	path, _, _ := strings.Cut(message, ":")
	known, written := "", ""
	for _, part := range pathPart.FindAllString(path, -1) {
		value, err := r.follow(n, "")
		if err != nil {
			break
		}
		if number, of := strings.CutPrefix(part, "["); of {
			known += part
			i, _ := strconv.Atoi(strings.TrimSuffix(number, "]"))
			// else a value stands for a list of it
			if list, ok := value.(*ast.SequenceNode); ok && i < len(list.Values) {
				n, written = list.Values[i], written+part
				at = begin(n)
			}
			continue
		}
		entries, err := r.entries(value, "")
		i := slices.IndexFunc(entries, func(e entry) bool { return axisOf(e.name) == axisOf(part) })
		if err != nil || i < 0 {
			break
		}
		at, n = entries[i].key, entries[i].value
		known, written = join(known, part), join(written, entries[i].name)
	}
	return at, written + message[len(known):]
}

// fieldFirst matches a message that begins with a field.
var fieldFirst = regexp.MustCompile(`^[a-z_]+(\[[0-9]+\])?: `)

// placed adds the place to an error of a group, which may begin with one of its fields.
func (r *reader) placed(group ast.Node, path string, err error) error {
	if err == nil {
		return nil
	}
	at, text := r.find(group, err.Error())
	if at == nil {
		at = begin(group)
	}
	if fieldFirst.MatchString(text) {
		return wrong(at, "", "%s.%s", path, text)
	}
	return wrong(at, path, "%s", text)
}

// has reports whether the document has a field.
func (r *reader) has(field string) bool {
	at, _ := r.find(r.root, field)
	return at != nil
}

// grouped reports whether a value is a group.
func grouped(n ast.Node) bool {
	_, ok := n.(ast.MapNode)
	return ok
}

// begin is the first node of a value: of a group, its first field.
func begin(n ast.Node) ast.Node {
	switch x := n.(type) {
	case *ast.MappingNode:
		if len(x.Values) > 0 && !x.IsFlowStyle {
			return x.Values[0].Key
		}
	case *ast.MappingValueNode:
		return x.Key
	}
	return n
}
