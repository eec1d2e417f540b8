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

// words keeps the first names of a table in alphabetical order, and returns how many were dropped.
func words(m map[string]string) (kept map[string]string, left int) {
	kept = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(kept) == maxNames {
			return kept, len(m) - maxNames
		}
		kept[tidy(name)] = tidy(m[name])
	}
	return kept, 0
}

// cutShort warns, once per launch, that names were dropped.
func (s *session) cutShort(left int) {
	if left == 0 || s.said["policy"] {
		return
	}
	s.said["policy"] = true
	engine.Warn(s.probe, "too-many-names", "%s reports more than %d names in \"policy\": %d are dropped",
		s.engine.Name(), maxNames, left)
}
