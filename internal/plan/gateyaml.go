package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/fault"
	"llmparity/internal/figure"
	"llmparity/internal/nearest"
)

// gateText is a gate as it is written, beside its limits, which have figures' names.
type gateText struct {
	Level        GateLevel     `yaml:"level"`
	Failed       GateLevel     `yaml:"failed"`
	Gone         GateLevel     `yaml:"gone"`
	Inconclusive GateLevel     `yaml:"inconclusive"`
	Unknown      GateLevel     `yaml:"unknown"` // the former name of inconclusive
	NoBaseline   string        `yaml:"no_baseline"`
	UnderTest    []string      `yaml:"under_test"`
	Detect       string        `yaml:"detect"`
	Baseline     string        `yaml:"baseline"`
	Changes      figureChanges `yaml:"vs_baseline"`
	Parity       *GateParity   `yaml:"parity"`
}

// changeText and parityText are checks as they are written.
type changeText struct {
	Change    string `yaml:"change"`
	Detect    string `yaml:"detect,omitempty"`
	GateScope `yaml:",inline"`
	Level     GateLevel `yaml:"level,omitempty"`
}

type parityText struct {
	MinAgreement string `yaml:"min_agreement,omitempty"`
	FirstDiffers int    `yaml:"first_divergence,omitempty"`
	With         string `yaml:"with,omitempty"`
	GateScope    `yaml:",inline"`
	Level        GateLevel `yaml:"level,omitempty"`
}

// ParseGate reads a file of thresholds: what stands below `gate:` in a plan, with or without that word. file names it
// in errors, which carry the line.
func ParseGate(text []byte, file string) (*Gate, error) { return parseGate(text, file, false) }

// GateIn reads the gate of a plan's text alone, whatever else stands there; nil where it has none.
func GateIn(text []byte, file string) (*Gate, error) { return parseGate(text, file, true) }

func parseGate(text []byte, file string, inPlan bool) (*Gate, error) {
	g, err := decodeGate(text, inPlan)
	if err != nil {
		return nil, yamlFault(err, file)
	}
	if err := g.Validate(); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "%s", file)
	}
	return g, nil
}

func decodeGate(text []byte, inPlan bool) (g *Gate, err error) {
	defer survive(&err)
	r, err := open(text, "gate")
	if err != nil {
		return nil, err
	}
	if !grouped(r.root) {
		return nil, mistyped(r.root, "gate", "a group such as `peak_pss_mb: {max: 900}`")
	}
	entries, err := r.entries(r.root, "gate")
	if err != nil {
		return nil, err
	}
	body := r.root
	for _, e := range entries {
		if e.name == "gate" && (inPlan || len(entries) == 1) {
			body, inPlan = e.value, false
		}
	}
	if inPlan {
		return nil, nil
	}
	if body, err = r.follow(body, "gate"); err != nil {
		return nil, err
	}
	g = &Gate{}
	return g, g.read(r, body, "gate")
}

func (g *Gate) read(r *reader, n ast.Node, path string) error {
	entries, err := r.entries(n, path)
	if err != nil {
		return err
	}
	t := gateText{}
	known := fieldsOf(reflect.TypeOf(t))
	var fields []entry
	for _, e := range entries {
		row, err := figure.Find(e.name)
		if err == nil {
			err = g.readLimits(r, row, e.value, join(path, e.name))
		} else if fields = append(fields, e); known[e.name] != nil {
			err = nil
		} else {
			names := slices.Concat(slices.Sorted(maps.Keys(known)), figure.Typed())
			err = wrong(e.key, join(path, e.name), "there is no figure and no field %q of a gate; the nearest are %s",
				e.name, strings.Join(nearest.Of(e.name, names, 3), ", "))
		}
		if err != nil {
			return err
		}
	}
	if err := r.fields(fields, reflect.ValueOf(&t).Elem(), path); err != nil {
		return err
	}
	g.Level, g.Failed, g.Gone, g.Baseline, g.NoBaseline = t.Level, t.Failed, t.Gone, t.Baseline, t.NoBaseline
	g.Inconclusive, g.OldName = cmp.Or(t.Inconclusive, t.Unknown), t.Unknown != ""
	g.Changes, g.Parity = t.Changes, t.Parity
	for _, list := range t.UnderTest {
		for name := range strings.SplitSeq(list, ",") {
			g.UnderTest = append(g.UnderTest, strings.TrimSpace(name))
		}
	}
	if t.Inconclusive != "" && t.Unknown != "" {
		err = errors.New("unknown: inconclusive says it too; leave it out")
	} else if g.Detect, err = regression(t.Detect); err != nil {
		err = fmt.Errorf("detect: %w", err)
	} else {
		err = g.valid()
	}
	return r.placed(n, path, err)
}

func (g *Gate) readLimits(r *reader, f *figure.Row, n ast.Node, path string) error {
	var limits []GateLimit
	err := r.value(n, reflect.ValueOf(&limits).Elem(), path)
	for _, l := range limits {
		l.Figure = f
		g.Limits = append(g.Limits, l)
	}
	return err
}

func (l *GateLimit) read(r *reader, n ast.Node, path string) error {
	if !grouped(n) {
		return mistyped(n, path, "a limit such as {max: 900}")
	}
	if err := r.group(n, reflect.ValueOf(l).Elem(), path); err != nil {
		return err
	}
	return r.placed(n, path, l.valid())
}

func (l *GateLevel) read(_ *reader, n ast.Node, path string) error {
	if err := simple(n, reflect.ValueOf(l).Elem(), path); err != nil {
		return err
	}
	if err := l.valid(); err != nil {
		return wrong(n, path, "%s", err)
	}
	return nil
}

// figureChanges are written as a group, by their figures' names.
type figureChanges []GateChange

func (all *figureChanges) read(r *reader, n ast.Node, path string) error {
	if !grouped(n) {
		return mistyped(n, path, "a figure and a change such as {decode_tps: -5%}")
	}
	entries, err := r.entries(n, path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		row, err := figure.Find(e.name)
		if err != nil {
			return wrong(e.key, path, "%s", err)
		}
		var list []GateChange
		if err := r.value(e.value, reflect.ValueOf(&list).Elem(), join(path, e.name)); err != nil {
			return err
		}
		for i, c := range list {
			c.Figure = row
			if err := c.valid(); err != nil {
				return r.placed(n, path, fmt.Errorf("%s[%d]: %w", e.name, i, err))
			}
			*all = append(*all, c)
		}
	}
	return nil
}

func (c *GateChange) read(r *reader, n ast.Node, path string) error {
	t := changeText{}
	if text, ok := single(n); ok {
		t.Change = text
	} else if err := r.group(n, reflect.ValueOf(&t).Elem(), path); err != nil {
		return err
	}
	if t.Change == "" {
		return wrong(begin(n), path, "there is no change: give one such as -5%%")
	}
	c.GateScope, c.Level = t.GateScope, t.Level
	var err error
	if c.Change, err = ParseShare(t.Change); err != nil {
		err = fmt.Errorf("change: %w", err)
	} else if c.Detect, err = regression(t.Detect); err != nil {
		err = fmt.Errorf("detect: %w", err)
	}
	return r.placed(n, path, err)
}

// regression reads one that passing checks must rule out, which has no sign of its own; 0: none is named.
func regression(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := ParseShare(text)
	if err == nil && v == 0 {
		err = errors.New("no number of launches rules out a change of nothing: give a share such as 15%")
	}
	return v, cmp.Or(err, validDetect(v))
}

func (p *GateParity) read(r *reader, n ast.Node, path string) error {
	if !grouped(n) {
		return mistyped(n, path, "what parity must be, such as {min_agreement: 100%}")
	}
	t := parityText{}
	if err := r.group(n, reflect.ValueOf(&t).Elem(), path); err != nil {
		return err
	}
	p.FirstDiffers, p.With, p.GateScope, p.Level = t.FirstDiffers, t.With, t.GateScope, t.Level
	if t.MinAgreement != "" {
		var err error
		if p.MinAgreement, err = ParseShare(t.MinAgreement); err != nil {
			return r.placed(n, path, fmt.Errorf("min_agreement: %w", err))
		}
	}
	return r.placed(n, path, p.valid())
}

// MarshalYAML writes the section so that it is read again as the same.
func (g Gate) MarshalYAML() (any, error) {
	out := yaml.MapSlice{}
	put := func(name string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			out = append(out, yaml.MapItem{Key: name, Value: value})
		}
	}
	put("level", g.Level)
	put("failed", g.Failed)
	put("gone", g.Gone)
	put("inconclusive", g.Inconclusive)
	put("no_baseline", g.NoBaseline)
	put("under_test", strings.Join(g.UnderTest, ","))
	put("detect", shareOrNone(g.Detect))
	put("baseline", g.Baseline)
	var limits, changes yaml.MapSlice
	for _, l := range g.Limits {
		byFigure(&limits, l.Figure, l)
	}
	for _, c := range g.Changes {
		byFigure(&changes, c.Figure, changeText{signed(c.Change), shareOrNone(c.Detect), c.GateScope, c.Level})
	}
	out = append(out, limits...)
	put("vs_baseline", changes)
	if p := g.Parity; p != nil {
		put("parity", parityText{shareOrNone(p.MinAgreement), p.FirstDiffers, p.With, p.GateScope, p.Level})
	}
	return out, nil
}

// byFigure keeps checks of one figure under one name.
func byFigure(all *yaml.MapSlice, f *figure.Row, check any) {
	for i, item := range *all {
		if item.Key == f.Column.Name {
			(*all)[i].Value = append(item.Value.([]any), check)
			return
		}
	}
	*all = append(*all, yaml.MapItem{Key: f.Column.Name, Value: []any{check}})
}

func shareOrNone(v float64) string {
	if v == 0 {
		return ""
	}
	return share(v)
}
