// Package document reads YAML into Go values and refuses what does not fit, with the line and the field. It limits the
// size and depth of a document, and how many values its aliases make.
//
// The library's decoder does not fit: it accepts 2.5 and "2" as whole numbers, reads the text 0.10 as 0.1, refuses a
// group that overrides a merged field, and supports neither aliases of fields nor a single value for a list.
package document

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"llmparity/internal/kit/fault"
)

// Limits of a document, against using up memory.
const (
	maxText   = 1 << 20
	maxDepth  = 40      // of nested groups and lists
	maxValues = 100_000 // after expanding aliases
	tooMany   = "more than %d values after expanding aliases"
)

// Read reads a text with one document. what names it in errors, which begin with file and line, and have one line
// although the parser's quote the source. Names with the same result of same are names of one field.
func Read[T any](text []byte, file, what string, same func(name string) string, from func(*Node) (T, error)) (
	out T, err error) {
	defer func() {
		if recover() != nil {
			err = fault.New(fault.Usage, "", "%s: cannot parse this YAML; use plain lists and values without tags", file)
		}
	}()
	root, err := open(text, what, same)
	if err == nil {
		if out, err = from(root); err == nil {
			return out, nil
		}
	}
	var none T
	return none, In(file, err)
}

// In adds to an error from a Node its file and line, and makes it one line.
func In(file string, err error) error {
	var at yaml.Error // whose Error prints all of the source
	place, message := file, ""
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		place, message = fmt.Sprintf("%s:%d", file, at.GetToken().Position.Line), at.GetMessage()
	} else {
		message = err.Error()
	}
	message, _, _ = strings.Cut(message, "\n")
	if strings.Contains(message, "'\t'") {
		message = "a tab; YAML is indented with spaces"
	}
	return fault.New(fault.Usage, "", "%s: %s", place, message)
}

// open parses a text with one document.
func open(text []byte, what string, same func(string) string) (*Node, error) {
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
			return nil, Wrong(d.Body, "", "second document; a file may have only one %s", what)
		}
		root = d.Body
	}
	if root == nil {
		return nil, fmt.Errorf("the file is empty; write a %s into it", what)
	}
	return (&tree{same: same, anchors: map[string]*Node{}}).node(root, "")
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
	same    func(string) string
	anchors map[string]*Node // before the current value
	merged  int
}

// node makes the node of a value. path is its field as written.
func (t *tree) node(n ast.Node, path string) (made *Node, err error) {
	made = &Node{Node: n, same: t.same}
	switch x := n.(type) {
	case *ast.AnchorNode:
		made, err = t.node(x.Value, path)
		t.anchors[x.Name.GetToken().Value] = made
	case *ast.AliasNode:
		name := x.Value.GetToken().Value
		if made = t.anchors[name]; made == nil {
			err = Wrong(n, path, "unknown anchor &%s", name)
		}
	case *ast.TagNode:
		err = Wrong(n, path, "tags such as %s are not supported", x.Start.Value)
	case *ast.SequenceNode:
		for i, value := range x.Values {
			of, err := t.node(value, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			made.list = append(made.list, of)
		}
	case *ast.MappingNode:
		made.Fields, err = t.fields(x.Values, path)
	case *ast.MappingValueNode:
		made.Fields, err = t.fields([]*ast.MappingValueNode{x}, path)
	}
	return made, err
}

// fields are a group's fields, followed by merged ones that it does not set itself.
func (t *tree) fields(values []*ast.MappingValueNode, path string) ([]Entry, error) {
	var own, merged []Entry
	for _, v := range values {
		name := v.Key.GetToken().Value
		if !v.Key.IsMergeKey() {
			value, err := t.node(v.Value, Join(path, name))
			if err != nil {
				return nil, err
			}
			own = append(own, Entry{name, v.Key, value})
			continue
		}
		value, err := t.node(v.Value, path)
		if err != nil {
			return nil, err
		}
		from := value.list
		if !value.listed() {
			from = []*Node{value}
		}
		for _, group := range from {
			if err := group.Group(path, ""); err != nil {
				return nil, err
			}
			merged = append(merged, group.Fields...)
		}
		if t.merged += len(merged); t.merged > maxValues {
			return nil, Wrong(v.Key, path, tooMany, maxValues)
		}
	}
	said := map[string]bool{}
	for _, e := range own {
		said[t.same(e.Name)] = true
	}
	for _, e := range merged {
		if field := t.same(e.Name); !said[field] {
			said[field], own = true, append(own, e)
		}
	}
	return own, nil
}
