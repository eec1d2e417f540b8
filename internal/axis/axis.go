// Package axis has a row for everything in which cells can differ: its name, its value in a recorded cell, and what may
// be compared across it. Labels, comparability, gates, sweeps and tables derive from the table.
//
// Values are what a plan requested, as records have it. What engines report of themselves is in compare/evidence, and
// how a plan varies an axis is a Field of internal/bench/plan.
package axis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// Role is what an axis describes. A gate finds a cell of the baseline run by its task; settings can be under test.
type Role int

// Roles.
const (
	Task        Role = iota // what is asked of an engine
	Setting                 // what it is started with
	Measurement             // how it is measured
)

// Across says what is compared of two cells with other values of an axis.
type Across int

// What is compared.
const (
	All       Across = iota // everything, unless there are cells that differ less
	OnRequest               // ratios only with --allow-different, marked
	Nothing                 // nothing: outputs cannot be the same; the reason is reported
	Unpaired                // nothing: the two are not set side by side
)

// Axis is something in which cells can differ.
type Axis struct {
	Name   string // field of a single value in plans, as in include
	By     string // its name in --by and in results, if that is another
	Title  string // one value: "context window"
	Phrase string // many values: "contexts", "kinds of start"
	Label  string // a value in a cell's label, as a format for fmt: "context %s"
	Unset  string // the value of cells that request none; empty: they have no value
	Role   Role
	Across Across
	Own    bool   // one engine alone has it: its values are no difference between engines
	Part   string // the axis whose value includes its own; that one stands for it in labels and comparisons

	Of     func(*record.Cell) string  // the requested value, for people; empty: none
	Number func(*record.Cell) float64 // its position in sweeps; NaN: none; nil: values are not numbers
	Same   func(a, b *record.Cell) bool
	Key    func(*record.Cell) string // identifies the value exactly; nil: Of does
	Rest   func(*record.Cell) string // of a Part: identifies the rest of the other axis's value
	Word   func(*record.Cell) string // replaces Label
	Names  map[string]string         // values in sentences, which list them instead of their number
}

// ByName is the axis's name in --by and in results.
func (a *Axis) ByName() string { return cmp.Or(a.By, a.Name) }

// Value is a cell's value for people, requested or not.
func (a *Axis) Value(c *record.Cell) string { return cmp.Or(a.Of(c), a.Unset) }

// In is a cell's value in a label; empty: none.
func (a *Axis) In(c *record.Cell) string {
	if a.Word != nil {
		return a.Word(c)
	}
	v := a.Value(c)
	if a.Own { // other cells' labels have what they request
		v = a.Of(c)
	}
	if v == "" || a.Label == "" {
		return v
	}
	return fmt.Sprintf(a.Label, v)
}

// Equal reports whether two cells have the same value.
func (a *Axis) Equal(x, y *record.Cell) bool {
	switch {
	case a.Same != nil:
		return a.Same(x, y)
	case a.Key != nil:
		return a.Key(x) == a.Key(y)
	}
	return a.Number != nil && a.Number(x) == a.Number(y) || a.Of(x) == a.Of(y)
}

// Matches reports whether a cell has a value that is written as in a plan. A prompt is its number, or its text; a model
// is its name, its file or its dtype.
func (a *Axis) Matches(c *record.Cell, text string) bool {
	switch a.Name {
	case Model:
		return modelMatches(&c.Model, text)
	case Prompt:
		return text == c.Prompt || text == strconv.Itoa(c.PromptID)
	}
	if a.Number != nil {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return a.Number(c) == v
		}
	}
	return text == a.Of(c) || text == a.Value(c)
}

// Among lists the values of some cells, each once, and reports whether one matches a text.
func (a *Axis) Among(cells []*record.Cell, text string) (values []string, matches bool) {
	for _, c := range cells {
		matches = matches || a.Matches(c, text)
		v := a.Value(c)
		if a.Name == Model && c.Model.File != "" { // quantised files of one model share their name
			v = c.Model.File
		}
		if v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values, matches
}

// Of returns the axes of some cells: the table, and engines' own fields that the cells' plans varied, by name.
func Of(cells ...*record.Cell) []*Axis {
	var keys map[string]bool
	for _, c := range cells {
		for key := range c.Settings {
			if keys == nil {
				keys = map[string]bool{}
			}
			keys[key] = true
		}
	}
	if keys == nil {
		return table
	}
	out := slices.Clone(table)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, OfField(key))
	}
	return out
}

// versionField ends the names of fields with an engine's version.
const versionField = "_version"

// setting ends the names of engines' own fields that are named like another axis.
const setting = "_setting"

// taken reports whether an engine's own field needs another name than its key.
func taken(key string) bool {
	return key == Device || key == Run || strings.Contains(key, ".") ||
		slices.ContainsFunc(table, func(a *Axis) bool { return a.Name == key || a.By == key })
}

// OfField is the axis of an engine's own field. Plans name it by the engine's section, too: llamacpp.ubatch.
func OfField(key string) *Axis {
	name := key
	if taken(key) {
		name += setting
	}
	a := &Axis{Name: name, Title: key, Phrase: "values of " + key, Role: Setting, Own: true,
		Of:   func(c *record.Cell) string { return c.Settings[key] },
		Word: func(c *record.Cell) string { return ownWord(key, c.Settings[key]) },
		Number: func(c *record.Cell) float64 {
			if v, err := strconv.ParseFloat(c.Settings[key], 64); err == nil {
				return v
			}
			return math.NaN()
		}}
	if engine, ok := strings.CutSuffix(key, versionField); ok {
		a.Phrase, a.Number = "versions of "+engine, nil
		a.Word = a.Of
	}
	return a
}

// named is a value that stands before what it is of: "gpu kernels".
var named = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// switches say nothing without the field that they are of, behind it.
var switches = []string{"on", "off", "true", "false", "auto", "none"}

// ownWord is a value of an engine's own field in a label.
func ownWord(key, value string) string {
	field := strings.ReplaceAll(key, "_", " ")
	switch {
	case value == "" || strings.HasSuffix(key, bundleField):
		return value
	case named.MatchString(value) && !slices.Contains(switches, value):
		return value + " " + field
	}
	return field + " " + value
}

// bundleField ends the names of fields with a build of an engine, which takes the place of a version.
const bundleField = "_bundle"

// Build reports whether the axis is that of an engine's versions, or of builds in their place.
func (a *Axis) Build() bool { return a.Version() || a.Own && strings.HasSuffix(a.Name, bundleField) }

// Version reports whether the axis is that of an engine's versions.
func (a *Axis) Version() bool { return a.Own && strings.HasSuffix(a.Name, versionField) }

// Named returns the axis with a name, that of a plan's field or of --by: a row of the table, else an engine's own
// field.
func Named(name string) *Axis {
	for _, a := range table {
		if a.Name == name || a.By == name {
			return a
		}
	}
	if key, ok := strings.CutSuffix(name, setting); ok && taken(key) {
		return OfField(key)
	}
	if _, key, ok := strings.Cut(name, "."); ok {
		return OfField(key)
	}
	return OfField(name)
}

// Differ returns the axes for which keep returns true and in which two cells differ. It omits parts of other axes, and
// engines' own axes if the engines differ.
func Differ(a, b *record.Cell, keep func(*Axis) bool) []*Axis {
	var out []*Axis
	for _, x := range Of(a, b) {
		if x.Part == "" && keep(x) && !(x.Own && a.Engine != b.Engine) && !x.Equal(a, b) {
			out = append(out, x)
		}
	}
	return out
}

// Key is equal for cells with equal values of all axes for which keep returns true. Parts of other axes are omitted.
func Key(c *record.Cell, keep func(*Axis) bool) string {
	var out strings.Builder
	for _, x := range Of(c) {
		if x.Part != "" || !keep(x) {
			continue
		}
		v := x.Of(c)
		if x.Key != nil {
			v = x.Key(c)
		}
		if v != "" {
			fmt.Fprintf(&out, "%s=%q ", x.Name, v)
		}
	}
	return out.String()
}
