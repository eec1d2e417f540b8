package plan

import (
	"cmp"
	"errors"
	"fmt"
	"llmparity/internal/fault"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a document, against using up memory.
const (
	maxText   = 1 << 20
	maxDepth  = 40      // of nested groups and lists
	maxValues = 100_000 // after expanding aliases
	tooMany   = "more than %d values after expanding aliases"
)

// node is a value of a document. Anchors and aliases are resolved, and groups are merged.
type node struct {
	ast.Node
	list   []*node // of a list
	fields []entry // of a group
}

// entry is a field as written.
type entry struct {
	name  string
	key   ast.Node
	value *node
}

const groupOfSettings = "a group of settings"

func (n *node) grouped() bool {
	_, ok := n.Node.(ast.MapNode)
	return ok
}

func (n *node) listed() bool { return n.Type() == ast.SequenceType }

func (n *node) null() bool { return n.Type() == ast.NullType }

// read reads a text with one document; what names it in errors, which begin with file and line, and have one line
// although the parser's quote the source.
func read[T any](text []byte, file, what string, from func(*node) (T, error)) (out T, err error) {
	defer func() {
		if recover() != nil {
			err = fault.New(fault.Usage, "", "%s: cannot parse this YAML; use plain lists and values without tags", file)
		}
	}()
	root, err := open(text, what)
	if err == nil {
		if out, err = from(root); err == nil {
			return out, nil
		}
	}
	var at yaml.Error // whose Error prints all of the source
	place, message := file, ""
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		place, message = fmt.Sprintf("%s:%d", file, at.GetToken().Position.Line), at.GetMessage()
	} else {
		message = err.Error()
	}
	var none T
	message, _, _ = strings.Cut(message, "\n")
	return none, fault.New(fault.Usage, "", "%s: %s", place, message)
}

// open parses a text with one document.
func open(text []byte, what string) (*node, error) {
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
	var root ast.Node
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType || d.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, wrong(d.Body, "", "second document; a file is one %s", what)
		}
		root = d.Body
	}
	if root == nil {
		return nil, fmt.Errorf("empty; a %s is expected", what)
	}
	return (&tree{anchors: map[string]*node{}}).node(root, "")
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

// tree makes the nodes of a document.
type tree struct {
	anchors map[string]*node // before the current value
	merged  int
}

// node makes the node of a value. path is its field as written.
func (t *tree) node(n ast.Node, path string) (made *node, err error) {
	made = &node{Node: n}
	switch x := n.(type) {
	case *ast.AnchorNode:
		made, err = t.node(x.Value, path)
		t.anchors[x.Name.GetToken().Value] = made
	case *ast.AliasNode:
		name := x.Value.GetToken().Value
		if made = t.anchors[name]; made == nil {
			err = wrong(n, path, "unknown anchor &%s", name)
		}
	case *ast.TagNode:
		err = wrong(n, path, "tags such as %s are not supported", x.Start.Value)
	case *ast.SequenceNode:
		for i, value := range x.Values {
			of, err := t.node(value, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			made.list = append(made.list, of)
		}
	case *ast.MappingNode:
		made.fields, err = t.fields(x.Values, path)
	case *ast.MappingValueNode:
		made.fields, err = t.fields([]*ast.MappingValueNode{x}, path)
	}
	return made, err
}

// fields are a group's fields, followed by merged ones that it does not set itself.
func (t *tree) fields(values []*ast.MappingValueNode, path string) ([]entry, error) {
	var own, merged []entry
	for _, v := range values {
		name := v.Key.GetToken().Value
		if !v.Key.IsMergeKey() {
			value, err := t.node(v.Value, join(path, name))
			if err != nil {
				return nil, err
			}
			own = append(own, entry{name, v.Key, value})
			continue
		}
		value, err := t.node(v.Value, path)
		if err != nil {
			return nil, err
		}
		from := value.list
		if !value.listed() {
			from = []*node{value}
		}
		for _, group := range from {
			if !group.grouped() {
				return nil, mistyped(group, path, groupOfSettings)
			}
			merged = append(merged, group.fields...)
		}
		if t.merged += len(merged); t.merged > maxValues {
			return nil, wrong(v.Key, path, tooMany, maxValues)
		}
	}
	said := map[string]bool{}
	for _, e := range own {
		said[axisOf(e.name)] = true
	}
	for _, e := range merged {
		if axis := axisOf(e.name); !said[axis] {
			said[axis], own = true, append(own, e)
		}
	}
	return own, nil
}

// pathPart is a name, or the number of a list's entry.
var pathPart = regexp.MustCompile(`[^.\[\]]+|\[[0-9]+\]`)

// find returns the place of the field that a message begins with, or of the group that contains it, and the message
// with that field's name as written; nil: not found.
func (n *node) find(message string) (at ast.Node, text string) {
	path, _, _ := strings.Cut(message, ":")
	known, written := "", ""
	for _, part := range pathPart.FindAllString(path, -1) {
		if number, of := strings.CutPrefix(part, "["); of {
			known += part
			i, _ := strconv.Atoi(strings.TrimSuffix(number, "]"))
			if i < len(n.list) { // else a value stands for a list of it
				n, written = n.list[i], written+part
				at = n.begin()
			}
			continue
		}
		i := slices.IndexFunc(n.fields, func(e entry) bool { return axisOf(e.name) == axisOf(part) })
		if i < 0 {
			break
		}
		known, written = join(known, part), join(written, n.fields[i].name)
		at, n = n.fields[i].key, n.fields[i].value
	}
	return at, written + message[len(known):]
}

// fieldFirst matches a message that begins with a field.
var fieldFirst = regexp.MustCompile(`^[a-z_]+(\[[0-9]+\])?: `)

// placed adds the place to an error of a group, which may begin with one of its fields.
func (n *node) placed(path string, err error) error {
	if err == nil {
		return nil
	}
	at, text := n.find(err.Error())
	at = cmp.Or(at, n.begin())
	if fieldFirst.MatchString(text) {
		return wrong(at, "", "%s.%s", path, text)
	}
	return wrong(at, path, "%s", text)
}

// has reports whether a group has a field.
func (n *node) has(field string) bool {
	at, _ := n.find(field)
	return at != nil
}

// begin is where a value begins: a group at its first field.
func (n *node) begin() ast.Node {
	switch x := n.Node.(type) {
	case *ast.MappingNode:
		if len(x.Values) > 0 && !x.IsFlowStyle {
			return x.Values[0].Key
		}
	case *ast.MappingValueNode:
		return x.Key
	}
	return n
}
