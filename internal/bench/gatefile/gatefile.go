// Package gatefile reads gates from YAML: that of a plan, and files of their own. Package gates has what they mean.
//
// It can't know which axes a plan has: the reader of plans says so.
package gatefile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/document"
)

// Axes are those that restrict checks to cells.
type Axes interface {
	Names() []string                                      // to suggest
	Named(field string) string                            // the axis of a field, by any of its names; empty: none
	Values(axis string, texts []string) ([]string, error) // as a plan has them
}

// reader reads the fields of gates.
type reader struct {
	document.Reader
	axes Axes
}

// Reading returns the function that reads a gate; nil: into is none.
func Reading(into any, axes Axes) func(n *document.Node, path string) error {
	g, ok := into.(*gates.Gate)
	if !ok {
		return nil
	}
	r := &reader{document.Reader{Name: func(field string) string { return field }}, axes}
	r.Own = r.own
	return func(n *document.Node, path string) error { return r.gate(g, n, path) }
}

// own returns the function that reads a value of a type with a form of its own; nil: there is none.
func (r *reader) own(into any) func(n *document.Node, path string) error {
	switch v := into.(type) {
	case *figureChanges:
		return func(n *document.Node, path string) error { return v.read(r, n, path) }
	case *gates.Limit:
		return func(n *document.Node, path string) error { return r.check(n, v, &v.Scope, path) }
	case *gates.Parity:
		return func(n *document.Node, path string) error { return r.check(n, v, &v.Scope, path) }
	case *gates.Scores:
		return func(n *document.Node, path string) error { return r.check(n, v, &v.Scope, path) }
	case *gates.Change:
		return func(n *document.Node, path string) error { return r.change(v, n, path) }
	}
	return nil
}

// Parse reads a file with the contents of "gate" in a plan, with or without that word; inPlan, the gate of a plan,
// ignoring the rest: nil if it has none. Errors begin with file and line. same returns one name for all names of a
// field.
func Parse(text []byte, file string, inPlan bool, same func(string) string, axes Axes) (*gates.Gate, error) {
	return document.Read(text, file, "gate", same, func(body *document.Node) (*gates.Gate, error) {
		if err := body.Group("gate", "a group such as {peak_pss_mb: {max: 900}}"); err != nil {
			return nil, err
		}
		whole := body
		for _, e := range body.Fields {
			if e.Name == "gate" && (inPlan || len(body.Fields) == 1) {
				body, inPlan = e.Value, false
			}
		}
		if !inPlan && body == whole {
			if err := otherFile(body); err != nil {
				return nil, err
			}
		}
		if inPlan {
			return nil, nil
		}
		g := &gates.Gate{}
		return g, Reading(g, axes)(body, "gate")
	})
}

// gateText is a gate as written, without its limits, whose fields are figures.
type gateText struct {
	gates.Gate `yaml:",inline"`
	UnderTest  []string      `yaml:"under_test"`
	Detect     string        `yaml:"detect"`
	Changes    figureChanges `yaml:"vs_baseline"`
}

// otherFile says so of a plan, and of a file without any check, of which only the first field would be named.
func otherFile(body *document.Node) error {
	const do = "; --thresholds needs the contents of a gate, such as peak_pss_mb: {max: 900}"
	known, names := document.FieldsOf(&gateText{}), []string{}
	for _, e := range body.Fields {
		if slices.Contains([]string{"gate", "prompts", "input_lengths"}, e.Name) {
			return document.Wrong(e.Key, "", "this is a plan"+do)
		}
		if _, err := figure.Find(e.Name); err != nil && !known[e.Name].IsValid() {
			names = append(names, e.Name)
		}
	}
	if len(names) < 2 || len(names) < len(body.Fields) { // one may be a typing error
		return nil
	}
	return document.Wrong(body.Begin(), "", "there are no checks here, but %s"+do, strings.Join(names[:2], ", "))
}

// gate reads a gate. Package gates does not depend on YAML.
func (r *reader) gate(g *gates.Gate, n *document.Node, path string) error {
	if err := n.Group(path, ""); err != nil {
		return err
	}
	t := gateText{}
	known := document.FieldsOf(&t)
	var fields []document.Entry
	for _, e := range n.Fields {
		row, err := figure.Find(e.Name)
		switch {
		case err == nil:
			var limits []gates.Limit
			err = r.To(e.Value, &limits, document.Join(path, e.Name))
			for _, l := range limits {
				if l.Change != "" && err == nil {
					c := gates.Change{Figure: row, Scope: l.Scope, Level: l.Level}
					if c.Change, err = gates.ParseShare(l.Change); err == nil {
						err = c.Valid()
					}
					err = e.Value.Placed(document.Join(path, e.Name), err)
					g.Changes = append(g.Changes, c)
				}
				if l.Min != nil || l.Max != nil {
					l.Figure, l.Change = row, ""
					g.Limits = append(g.Limits, l)
				}
			}
		case known[e.Name].IsValid():
			fields, err = append(fields, e), nil
		default:
			names := figure.Nearest(e.Name, slices.Sorted(maps.Keys(known))...)
			err = document.Wrong(e.Key, "", "unknown figure or field %q; the nearest are %s",
				document.Join(path, e.Name), strings.Join(names, ", "))
		}
		if err != nil {
			return err
		}
	}
	if err := r.Into(fields, known, path); err != nil {
		return err
	}
	t.Gate.Limits, t.Gate.Changes = g.Limits, append(g.Changes, t.Changes...)
	*g = t.Gate
	for _, list := range t.UnderTest {
		for name := range strings.SplitSeq(list, ",") {
			g.UnderTest = append(g.UnderTest, strings.TrimSpace(name))
		}
	}
	var err error
	if g.Detect, err = gates.ParseRegression(t.Detect); err != nil {
		err = fmt.Errorf("detect: %w", err)
	} else {
		err = g.Valid()
	}
	return n.Placed(path, err)
}

// check reads a check whose other fields restrict it to cells, by the names of axes.
func (r *reader) check(n *document.Node, into any, to *gates.Scope, path string) error {
	known := document.FieldsOf(into)
	scope := gates.Scope{}
	var fields []document.Entry
	for _, e := range n.Fields {
		if known[e.Name].IsValid() {
			fields = append(fields, e)
			continue
		}
		name, at := r.axes.Named(e.Name), document.Join(path, e.Name)
		if name == "" {
			return e.Unknown(path, append(slices.Collect(maps.Keys(known)), r.axes.Names()...))
		}
		if scope[name] != nil {
			return document.Wrong(e.Key, at, "duplicate field")
		}
		values, err := r.scope(e, name, at)
		if err != nil {
			return err
		}
		scope[name] = values
	}
	if len(scope) > 0 {
		*to = scope
	}
	if len(n.Fields) == 0 { // it says what a check is
		return r.Struct(n, into, path)
	}
	if err := r.Into(fields, known, path); err != nil {
		return err
	}
	if check, ok := into.(interface{ Valid() error }); ok {
		return n.Placed(path, check.Valid())
	}
	return nil
}

// scope reads an axis's values, as a plan would.
func (r *reader) scope(e document.Entry, name, path string) (values []string, err error) {
	if err := r.To(e.Value, &values, path); err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, document.Wrong(e.Key, path, "no value")
	}
	if values, err = r.axes.Values(name, values); err != nil {
		return nil, document.Wrong(e.Key, path, "%s", err)
	}
	return values, nil
}

// figureChanges are written as a group whose fields are figures.
type figureChanges []gates.Change

func (all *figureChanges) read(r *reader, n *document.Node, path string) error {
	if err := n.Group(path, "a group such as {decode_tps: -5%}"); err != nil {
		return err
	}
	for _, e := range n.Fields {
		row, err := figure.Find(e.Name)
		if err != nil {
			return document.Wrong(e.Key, path, "%s", err)
		}
		var list []gates.Change
		if err := r.To(e.Value, &list, document.Join(path, e.Name)); err != nil {
			return err
		}
		for i, c := range list {
			c.Figure = row
			if err := c.Valid(); err != nil {
				return n.Placed(path, fmt.Errorf("%s[%d]: %w", e.Name, i, err))
			}
			*all = append(*all, c)
		}
	}
	return nil
}

func (r *reader) change(c *gates.Change, n *document.Node, path string) (err error) {
	t := gates.ChangeText{}
	if text, ok := n.Single(); ok {
		t.Change = text
	} else if err := r.check(n, &t, &t.Scope, path); err != nil {
		return err
	}
	if t.Change == "" {
		return document.Wrong(n.Begin(), path, "change missing; use a share such as -5%%")
	}
	c.Scope, c.Level = t.Scope, t.Level
	if c.Change, err = gates.ParseShare(t.Change); err != nil {
		err = fmt.Errorf("change: %w", err)
	} else if c.Detect, err = gates.ParseRegression(t.Detect); err != nil {
		err = fmt.Errorf("detect: %w", err)
	}
	return n.Placed(path, err)
}
