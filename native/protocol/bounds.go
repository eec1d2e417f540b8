package protocol

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
)

// Limits for names and words that an engine puts into the record, because they appear in tables.
const (
	maxNames = 64
	maxWord  = 80 // characters
)

// tidy shortens a word to what fits in a table and removes control characters.
func tidy(s string) string {
	return cut(fault.OneLine(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)), maxWord)
}

// bound keeps the first names of a table in alphabetical order, and returns how many were dropped.
func bound[V any](m map[string]V, value func(V) V) (kept map[string]V, left int) {
	if m == nil {
		return nil, 0
	}
	kept = map[string]V{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(kept) == maxNames {
			return kept, len(m) - maxNames
		}
		kept[tidy(name)] = value(m[name])
	}
	return kept, 0
}

// words limits a table of words.
func words(m map[string]string) (map[string]string, int) { return bound(m, tidy) }

// numbers limits a table of numbers.
func numbers(m map[string]float64) (map[string]float64, int) {
	return bound(m, func(v float64) float64 { return v })
}

// cutShort warns, once per launch, that names were dropped.
func (s *session) cutShort(where string, left int) {
	if left == 0 || s.said[where] {
		return
	}
	s.said[where] = true
	engine.Warn(s.probe, "too-many-names", "%s reports more than %[3]d names in %[2]q: %[4]d are dropped",
		s.engine.Name(), where, maxNames, left)
}
