package document

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"llmparity/internal/kit/nearest"
)

// Node is a value of a document. Anchors and aliases are resolved, and groups are merged.
type Node struct {
	ast.Node
	Fields []Entry // of a group
	list   []*Node // of a list
	same   func(name string) string
}

// Entry is a field as written.
type Entry struct {
	Name  string
	Key   ast.Node
	Value *Node
}

// Unknown is the error for a field that does not exist; names are those that do.
func (e Entry) Unknown(path string, names []string) error {
	return Wrong(e.Key, "", "unknown field %q; %s", Join(path, e.Name),
		cmp.Or(nearest.Question(e.Name, names), "docs/reference/plan.md lists the fields"))
}

// Join returns the path of a group's field.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Wrong is an error at a node. path is the field; empty: the document.
func Wrong(n ast.Node, path, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	if n == nil || n.GetToken() == nil {
		return errors.New(text)
	}
	return &yaml.SyntaxError{Message: text, Token: n.GetToken()}
}

// Group refuses a node that is not a group; wanted describes one, with an example.
func (n *Node) Group(path, wanted string) error {
	if n.grouped() {
		return nil
	}
	return n.mistyped(path, cmp.Or(wanted, groupOfSettings))
}

const groupOfSettings = "a group of settings"

func (n *Node) grouped() bool {
	_, ok := n.Node.(ast.MapNode)
	return ok
}

func (n *Node) listed() bool { return n.Type() == ast.SequenceType }

// Null reports whether there is no value.
func (n *Node) Null() bool { return n.Type() == ast.NullType }

// mistyped is the error for a value of the wrong type.
func (n *Node) mistyped(path, wanted string) error {
	is := "empty"
	switch {
	case n.grouped():
		is = groupOfSettings
	case n.listed():
		is = "a list"
	case !n.Null():
		value := n.GetToken().Value
		if len(value) > 60 {
			value = value[:60] + "…"
		}
		is = strconv.Quote(value)
	}
	return Wrong(n, path, "must be %s, not %s", wanted, is)
}

// powers are numbers such as 70e9, which the parser reads as text.
var powers = regexp.MustCompile(`^[+-]?[0-9]+[eE][+-]?[0-9]{1,3}$`)

// number is the approximate value of a finite number.
func (n *Node) number() (float64, bool) {
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

// Single is the text of a single value as written.
func (n *Node) Single() (string, bool) {
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

// pathPart is a name, or the number of a list's entry.
var pathPart = regexp.MustCompile(`[^.\[\]]+|\[[0-9]+\]`)

// find returns the place of the field that a message begins with, or of the group that contains it, and the message
// with that field's name as written; nil: not found.
func (n *Node) find(message string) (at ast.Node, text string) {
	path, _, _ := strings.Cut(message, ":")
	known, written := "", ""
	for _, part := range pathPart.FindAllString(path, -1) {
		if number, of := strings.CutPrefix(part, "["); of {
			known += part
			i, _ := strconv.Atoi(strings.TrimSuffix(number, "]"))
			if i < len(n.list) { // else a value stands for a list of it
				n, written = n.list[i], written+part
				at = n.Begin()
			}
			continue
		}
		i := slices.IndexFunc(n.Fields, func(e Entry) bool { return n.same(e.Name) == n.same(part) })
		if i < 0 {
			break
		}
		known, written = Join(known, part), Join(written, n.Fields[i].Name)
		at, n = n.Fields[i].Key, n.Fields[i].Value
	}
	return at, written + message[len(known):]
}

// fieldFirst matches a message that begins with a field.
var fieldFirst = regexp.MustCompile(`^[a-z_]+(\[[0-9]+\])?: `)

// Placed adds the place to an error of a group, which may begin with one of its fields.
func (n *Node) Placed(path string, err error) error {
	if err == nil {
		return nil
	}
	at, text := n.find(err.Error())
	if path == "" {
		return Wrong(at, "", "%s", text)
	}
	at = cmp.Or(at, n.Begin())
	if fieldFirst.MatchString(text) {
		return Wrong(at, "", "%s.%s", path, text)
	}
	return Wrong(at, path, "%s", text)
}

// Has reports whether a group has a field.
func (n *Node) Has(field string) bool {
	at, _ := n.find(field)
	return at != nil
}

// Begin is where a value begins: a group at its first field.
func (n *Node) Begin() ast.Node {
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
