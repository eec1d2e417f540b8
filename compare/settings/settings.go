// Package settings compares what engines report of their settings.
//
// It cannot tell whether a difference matters: package compare says which pairs of cells it concerns.
package settings

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
)

// Table has the settings of all sides.
type Table struct {
	// Sides are engines; of several runs, the engines of each.
	Sides []string `json:"sides"`
	// Rows are settings that several sides report, or all of them where there is one side.
	Rows []Setting `json:"rows"`
	// Only are settings that one of several sides reports. They are no differences.
	Only []Setting `json:"only"`

	values map[string][][]string // by name, of each side
}

// Setting is one setting of all sides.
type Setting struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Values []string `json:"values"` // of each side; empty: it does not report the setting
	Same   bool     `json:"same"`   // all sides that report it have the same value
}

// Known titles of settings, and the names of settings that another engine calls differently.
var (
	titles = map[string]string{"weights_dtype": "weights dtype", "kv_dtype": "KV cache dtype",
		"weights": "weights compared", "model_file": "model file",
		"activations_dtype": "activations dtype", "context": "context window", "ubatch": "prefill batch",
		"ignore_eos": "after end of text", "mmap": "memory-mapped weights", "repacking": "repacked weights",
		"gpu_layers": "layers on the GPU", "threads_batch": "threads for prefill", "warmup": "engine's own warm-up",
		"garbage": "garbage collection", "profile": "browser profile", "window": "browser window",
		"thread": "page or worker", "parallel": "slots"}
	names = map[string]string{"prefill_chunk": "ubatch"}
)

// decisive are settings that change the arithmetic or how much memory is reserved, whatever the engine.
var decisive = []string{"weights_dtype", "kv_dtype", "activations_dtype", "context"}

// Decisive reports whether a setting is one of those.
func Decisive(name string) bool { return slices.Contains(decisive, name) }

// Of has what an engine reports of itself, by common names; with its version and those of the parts that readers know
// by name.
func Of(s *evidence.Setup, versions bool) map[string]string {
	out := map[string]string{}
	if s.Engine == nil {
		return out
	}
	for name := range s.Engine.Policy {
		if v := s.Says(name); v != "" {
			out[cmp.Or(names[name], name)] = v
		}
	}
	set := func(name, value string) {
		if value != "" {
			out[name] = value
		}
	}
	set("weights", s.Weights().String())
	set("model_library", s.ModelLibrary().String())
	if versions {
		out["version"] = s.Engine.Version
		set("origin", s.Engine.Origin)
		set("browser", s.Browser())
	}
	return out
}

// Title is a setting's name for people.
func Title(name string) string { return cmp.Or(titles[name], strings.ReplaceAll(name, "_", " ")) }

// Add takes in what one cell of a side reports.
func (t *Table) Add(side string, reported map[string]string) {
	t.Sides = explain.AppendNew(t.Sides, side)
	at := slices.Index(t.Sides, side)
	if t.values == nil {
		t.values = map[string][][]string{}
	}
	for name, v := range reported {
		for len(t.values[name]) <= at {
			t.values[name] = append(t.values[name], nil)
		}
		t.values[name][at] = explain.AppendNew(t.values[name][at], v)
	}
}

// Close makes the rows of what was taken in, the decisive settings first.
func (t *Table) Close() {
	t.Rows, t.Only = []Setting{}, []Setting{}
	rank := func(name string) int {
		if at := slices.Index(decisive, name); at >= 0 {
			return at
		}
		return len(decisive)
	}
	order := func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(t.values), order) {
		row := Setting{Name: name, Title: Title(name), Values: make([]string, len(t.Sides)), Same: true}
		reported, first := 0, ""
		for at, of := range t.values[name] {
			if len(of) == 0 {
				continue
			}
			slices.SortFunc(of, byNumber)
			row.Values[at] = explain.Some(of, 5)
			if reported++; reported == 1 {
				first = row.Values[at]
			}
			row.Same = row.Same && len(of) == 1 && row.Values[at] == first
		}
		if reported > 1 || len(t.Sides) == 1 {
			t.Rows = append(t.Rows, row)
		} else {
			t.Only = append(t.Only, row)
		}
	}
}

// byNumber sorts values that are numbers by their size.
func byNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}
