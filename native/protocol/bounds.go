package protocol

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
)

// What is kept of the names and words that an engine puts into the record: they stand in tables.
const (
	maxNames = 64
	maxWord  = 80 // characters
)

// tidy is an engine's word, as long as fits into a table, without line breaks and what else a terminal would obey.
func tidy(s string) string {
	return cut(fault.OneLine(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)), maxWord)
}

// bound keeps the first names of a table, by the alphabet, and tells how many were left out.
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

// words bounds a table of words.
func words(m map[string]string) (map[string]string, int) { return bound(m, tidy) }

// numbers bounds a table of numbers.
func numbers(m map[string]float64) (map[string]float64, int) {
	return bound(m, func(v float64) float64 { return v })
}

// cutShort says, once a launch, that an engine told more than is kept.
func (s *session) cutShort(where string, left int) {
	if left == 0 || s.said[where] {
		return
	}
	s.said[where] = true
	engine.Warn(s.probe, "too-many-names", "%s tells more in %q than the %d names that are kept: %d are left out",
		s.engine.Name(), where, maxNames, left)
}
