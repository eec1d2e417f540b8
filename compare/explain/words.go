// Package explain has what sentences of a comparison share: how numbers and lists are written, and the answers of the
// reproducibility checklist. It judges nothing by statistics, and knows a run by its record alone.
package explain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/stats"
)

// Plural is the word for so many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Few writes at most so many names.
func Few(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", Few(names[:most]), len(names)-most)
	}
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}

// Some joins no more than so many.
func Some(words []string, most int) string {
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}

// Percent writes a share in full.
func Percent(share float64) string {
	return strconv.FormatFloat(stats.Round(100*share, 6), 'g', -1, 64)
}

// WithUnit writes a figure with its unit, where it has one.
func WithUnit(v float64, unit string) string {
	if unit == "" {
		return Short(v)
	}
	return Short(v) + " " + unit
}

// AppendNew appends what is not in a list yet.
func AppendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// Short writes a figure for a sentence: four digits, more where the whole number has more, never an exponent.
func Short(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 0
	for x := math.Abs(v); x < 1000 && digits < 3; x *= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
