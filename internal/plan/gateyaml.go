package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/nearest"
)

// gateText is a gate as written, without its limits, whose fields are figures.
type gateText struct {
	gates.Gate `yaml:",inline"`
	Unknown    gates.Level   `yaml:"unknown"` // the former name of inconclusive
	UnderTest  []string      `yaml:"under_test"`
	Detect     string        `yaml:"detect"`
	Changes    figureChanges `yaml:"vs_baseline"`
}

// ParseGate reads a file with the contents of "gate" in a plan, with or without that word. Errors begin with file and
// line.
func ParseGate(text []byte, file string) (*gates.Gate, error) { return parseGate(text, file, false) }

// GateIn reads the gate of a plan and ignores the rest; nil if it has none.
func GateIn(text []byte, file string) (*gates.Gate, error) { return parseGate(text, file, true) }

func parseGate(text []byte, file string, inPlan bool) (*gates.Gate, error) {
	return read(text, file, "gate", func(body *node) (*gates.Gate, error) {
		if !body.grouped() {
			return nil, mistyped(body, "gate", "a group such as {peak_pss_mb: {max: 900}}")
		}
		for _, e := range body.fields {
			if e.name == "gate" && (inPlan || len(body.fields) == 1) {
				body, inPlan = e.value, false
			}
		}
		if inPlan {
			return nil, nil
		}
		g := &gates.Gate{}
		return g, (*gateNode)(g).read(&reader{}, body, "gate")
	})
}

// Types of package gates, which does not depend on YAML, with methods to read them.
type (
	gateNode   gates.Gate
	changeNode gates.Change
	parityNode gates.Parity
)

// selfReaderOf returns a value that reads itself; nil: it does not.
func selfReaderOf(v any) selfReader {
	switch v := v.(type) {
	case selfReader:
		return v
	case *gates.Gate:
		return (*gateNode)(v)
	case *gates.Change:
		return (*changeNode)(v)
	case *gates.Parity:
		return (*parityNode)(v)
	}
	return nil
}

func (g *gateNode) read(r *reader, n *node, path string) error {
	if !n.grouped() {
		return mistyped(n, path, groupOfSettings)
	}
	t := gateText{}
	known := fieldsOf(reflect.ValueOf(&t).Elem())
	var fields []entry
	for _, e := range n.fields {
		row, err := figure.Find(e.name)
		switch {
		case err == nil:
			var limits []gates.Limit
			err = r.value(e.value, reflect.ValueOf(&limits).Elem(), join(path, e.name))
			for _, l := range limits {
				l.Figure = row
				g.Limits = append(g.Limits, l)
			}
		case known[e.name].IsValid():
			fields, err = append(fields, e), nil
		default:
			names := slices.Concat(slices.Sorted(maps.Keys(known)), figure.Typed())
			err = wrong(e.key, "", "unknown figure or field %q; the nearest are %s", join(path, e.name),
				strings.Join(nearest.Of(e.name, names, 3), ", "))
		}
		if err != nil {
			return err
		}
	}
	if err := r.fields(fields, known, path); err != nil {
		return err
	}
	t.Gate.Limits, t.Gate.Changes = g.Limits, t.Changes
	*g = gateNode(t.Gate)
	g.Inconclusive = cmp.Or(t.Inconclusive, t.Unknown)
	for _, list := range t.UnderTest {
		for name := range strings.SplitSeq(list, ",") {
			g.UnderTest = append(g.UnderTest, strings.TrimSpace(name))
		}
	}
	var err error
	if t.Inconclusive != "" && t.Unknown != "" {
		err = errors.New("unknown: cannot be combined with inconclusive; remove it")
	} else if g.Detect, err = gates.ParseRegression(t.Detect); err != nil {
		err = fmt.Errorf("detect: %w", err)
	} else {
		err = (*gates.Gate)(g).Valid()
	}
	return n.placed(path, err)
}

// figureChanges are written as a group whose fields are figures.
type figureChanges []gates.Change

func (all *figureChanges) read(r *reader, n *node, path string) error {
	if !n.grouped() {
		return mistyped(n, path, "a group such as {decode_tps: -5%}")
	}
	for _, e := range n.fields {
		row, err := figure.Find(e.name)
		if err != nil {
			return wrong(e.key, path, "%s", err)
		}
		var list []gates.Change
		if err := r.value(e.value, reflect.ValueOf(&list).Elem(), join(path, e.name)); err != nil {
			return err
		}
		for i, c := range list {
			c.Figure = row
			if err := c.Valid(); err != nil {
				return n.placed(path, fmt.Errorf("%s[%d]: %w", e.name, i, err))
			}
			*all = append(*all, c)
		}
	}
	return nil
}

func (c *changeNode) read(r *reader, n *node, path string) (err error) {
	t := gates.ChangeText{}
	if text, ok := n.single(); ok {
		t.Change = text
	} else if err := r.group(n, reflect.ValueOf(&t).Elem(), path); err != nil {
		return err
	}
	if t.Change == "" {
		return wrong(n.begin(), path, "change missing; use a share such as -5%%")
	}
	c.Scope, c.Level = t.Scope, t.Level
	if c.Change, err = gates.ParseShare(t.Change); err != nil {
		err = fmt.Errorf("change: %w", err)
	} else if c.Detect, err = gates.ParseRegression(t.Detect); err != nil {
		err = fmt.Errorf("detect: %w", err)
	}
	return n.placed(path, err)
}

func (p *parityNode) read(r *reader, n *node, path string) (err error) {
	if !n.grouped() {
		return mistyped(n, path, "a group such as {min_agreement: 100%}")
	}
	t := gates.ParityText{}
	if err := r.group(n, reflect.ValueOf(&t).Elem(), path); err != nil {
		return err
	}
	p.FirstDiffers, p.With, p.Scope, p.Level = t.FirstDiffers, t.With, t.Scope, t.Level
	if t.MinAgreement != "" {
		if p.MinAgreement, err = gates.ParseShare(t.MinAgreement); err != nil {
			return n.placed(path, fmt.Errorf("min_agreement: %w", err))
		}
	}
	return n.placed(path, (*gates.Parity)(p).Valid())
}
