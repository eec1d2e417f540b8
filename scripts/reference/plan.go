package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"llmparity/assets/plans"
	"llmparity/docs/reference/schemas"
	"llmparity/internal/bench/plan"
	"llmparity/internal/figure"
	"llmparity/internal/kinds"
)

// schema is the part of JSON Schema that the plan's uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	Description string             `json:"description"`
	Type        any                `json:"type"` // a name, or several
	Pattern     string             `json:"pattern"`
	Const       any                `json:"const"`
	Enum        []any              `json:"enum"`
	Items       *schema            `json:"items"`
	OneOf       []*schema          `json:"oneOf"`
	AnyOf       []*schema          `json:"anyOf"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
}

// minimal is a plan that leaves out what has a default.
const minimal = "name: x\nengines: [llamacpp]\nmodel: tiny\nprompts: [x]\nmax_tokens: 8\n"

// planPage lists every field of a plan, by section, from the published schema.
func planPage() ([]byte, error) {
	text, err := schemas.Text("plan")
	if err != nil {
		return nil, err
	}
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	defaults, err := planDefaults()
	if err != nil {
		return nil, err
	}
	p := printer{defs: s.Defs}
	p.WriteString("# Plan\n\nThis page lists every field of a plan, from its [schema](schemas/plan.schema.json). " +
		"[Write a plan](../howto/write-a-plan.md) explains how to use the fields.\n" +
		"A field that takes a list also takes one value. Flags of `llmparity run` override the plan.\n\n## Plan\n\n")
	top := s.Defs["Plan"]
	p.table(top, defaults)
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		if inline := top.Properties[name]; inline.Properties != nil {
			fmt.Fprintf(&p, "\n## %s\n\n", name)
			p.table(inline, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
		if name != "Plan" && name != "values" {
			p.section(name)
		}
	}
	p.WriteString("\n## Presets\n\n`llmparity run --preset NAME` runs a plan that comes with the program.\n\n| preset | what it measures |\n|---|---|\n")
	for _, name := range plans.Names() {
		what, err := plans.What(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&p, "| `%s` | %s |\n", name, cell(what))
	}
	return p.Bytes(), nil
}

// planDefaults are the values that a plan gets if it leaves a field out.
func planDefaults() (map[string]any, error) {
	p, err := plan.Parse([]byte(minimal), "minimal.yaml", kinds.All...)
	if err != nil {
		return nil, err
	}
	text, err := p.YAML()
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = yaml.Unmarshal(text, &out)
	for line := range strings.Lines(minimal) {
		name, _, _ := strings.Cut(line, ":")
		delete(out, name)
	}
	return out, err
}

type printer struct {
	bytes.Buffer
	defs map[string]*schema
}

// section prints a definition under its own heading.
func (p *printer) section(name string) {
	d := p.defs[name]
	fmt.Fprintf(p, "\n## %s\n\n", strings.ToLower(name))
	if d.Description != "" {
		text := strings.TrimPrefix(d.Description, name+" is ")
		fmt.Fprintf(p, "%s%s\n\n", strings.ToUpper(text[:1]), text[1:])
	}
	if name == "cells" {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(d.Properties)) {
			names = append(names, "`"+n+"`")
		}
		fmt.Fprintf(p, "Selects cells by these fields, each with a value or a list: %s.\n", strings.Join(names, ", "))
		return
	}
	forms := d.forms()
	if len(forms) == 0 {
		fmt.Fprintf(p, "%s.\n", p.typed(d))
		return
	}
	merged := &schema{Properties: map[string]*schema{}}
	for _, f := range forms {
		maps.Copy(merged.Properties, f.Properties)
		if len(forms) == 1 {
			merged.Required = f.Required
		}
	}
	p.table(merged, nil)
}

// forms are the objects that a definition allows.
func (s *schema) forms() []*schema {
	if s.Properties != nil {
		return []*schema{s}
	}
	var out []*schema
	for _, f := range slices.Concat(s.OneOf, s.AnyOf) {
		out = append(out, f.forms()...)
	}
	return out
}

// table prints the fields of an object: first those that have a meaning of their own, then other names for them.
func (p *printer) table(of *schema, defaults map[string]any) {
	var same, axes []string
	p.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		s := of.Properties[name]
		if f, err := figure.Find(name); err == nil && (s.Ref == "#/$defs/limit" || s.Ref == "#/$defs/change") {
			if f == figure.Of(figure.PeakPSS) && name == f.Name {
				fmt.Fprintf(p, "| FIGURE | %s |  | Limits of one figure. FIGURE is the figure's name or column in the [list of figures](figures.md). |\n", p.typed(s))
			}
			continue
		}
		if s.Ref == "#/$defs/values" {
			axes = append(axes, name)
			continue
		}
		if to, ok := strings.CutPrefix(s.Description, "of "); ok && of.Properties[to] != nil {
			same = append(same, fmt.Sprintf("`%s`: a list of `%s`", name, to))
			continue
		}
		if of.Properties[s.Description] != nil {
			same = append(same, fmt.Sprintf("`%s`: the same as `%s`", name, s.Description))
			continue
		}
		def := ""
		if slices.Contains(of.Required, name) {
			def = "required"
		} else if v, ok := defaults[name]; ok {
			def = "`" + flow(v) + "`"
		}
		fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", name, p.typed(s), def, cell(s.Description))
	}
	p.axes(axes)
	if len(same) > 0 {
		fmt.Fprintf(p, "\nOther names: %s.\n", strings.Join(same, "; "))
	}
}

// axes prints the fields that restrict a check to cells. Most are those of entries of include and exclude.
func (p *printer) axes(names []string) {
	var more []string
	for _, name := range names {
		if p.defs["cells"].Properties[name] == nil {
			more = append(more, "`"+name+"`")
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(p, "| AXIS | value or list |  | Check only cells with this value, or one of these. AXIS is a field of "+
			"[cells](#cells), or one of %s. |\n", strings.Join(more, ", "))
	}
}

// flow is a value in a line of YAML.
func flow(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s: %v", k, m[k]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// typed names the type of a value.
func (p *printer) typed(s *schema) string {
	switch {
	case s.Ref != "":
		name := strings.ToLower(s.Ref[strings.LastIndex(s.Ref, "/")+1:])
		return "[" + name + "](#" + name + ")"
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Enum != nil:
		var out []string
		for _, v := range s.Enum {
			if v != "" {
				out = append(out, fmt.Sprintf("`%v`", v))
			}
		}
		return strings.Join(out, ", ")
	case strings.Contains(s.Pattern, "µs"):
		return "duration, as in `90s`"
	case strings.HasSuffix(s.Pattern, "%$"):
		return "percent, as in `5%`"
	case s.Items != nil:
		return "list of " + p.typed(s.Items)
	case s.Properties != nil:
		return "section"
	case s.OneOf != nil || s.AnyOf != nil:
		var out []string
		for _, f := range slices.Concat(s.OneOf, s.AnyOf) {
			text := p.typed(f)
			if inner, ok := strings.CutPrefix(text, "list of "); ok && slices.Contains(out, inner) {
				text = "or a list of them"
			}
			if text != "null" && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
		return strings.Join(out, ", ")
	}
	names, ok := s.Type.([]any)
	if !ok {
		names = []any{s.Type}
	}
	var out []string
	for _, n := range names {
		switch n {
		case "null", nil:
		case "string":
			out = append(out, "text")
		case "boolean":
			out = append(out, "`true`, `false`")
		default:
			out = append(out, fmt.Sprint(n))
		}
	}
	if len(out) == 0 {
		return "null"
	}
	return strings.Join(out, " or ")
}
