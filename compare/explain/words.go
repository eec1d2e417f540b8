// Package explain has the sentences of a comparison: warnings, reasons, the reproducibility checklist, and how numbers
// and lists are written. It only formats; other packages decide what applies.
package explain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/stats"
)

// Plural chooses the word for n.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Some joins the first words and gives the number of the others.
func Some(words []string, most int) string {
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}

// Percent writes a share in percent.
func Percent(share float64) string {
	return strconv.FormatFloat(stats.Round(100*share, 6), 'g', -1, 64)
}

// WithUnit writes a figure with its unit.
func WithUnit(v float64, unit string) string {
	if unit == "" {
		return Short(v)
	}
	return Short(v) + " " + unit
}

// CI writes an interval in parentheses; empty without one.
func CI(i *stats.Interval, write func(float64) string) string {
	if i == nil {
		return ""
	}
	return " (" + Interval(i, write) + ")"
}

// Interval writes an interval.
func Interval(i *stats.Interval, write func(float64) string) string {
	lo, hi := write(i.Lo), write(i.Hi)
	if lo == hi {
		const least = 0.001
		return fmt.Sprintf("%.3g%% CI within ±%s", 100*i.Confidence, Share(max(least, (i.Hi-i.Lo)/(i.Hi+i.Lo))))
	}
	return fmt.Sprintf("%.3g%% CI %s to %s", 100*i.Confidence, lo, hi)
}

// AppendNew appends v unless the list has it.
func AppendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// Short writes a figure for a sentence: four digits, or all digits of the integer part, without an exponent.
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

// Amount writes a figure for a sentence: three digits, or the whole number with its thousands separated.
func Amount(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 9.995:
		return trimmed(v, 1)
	case a >= 0.9995:
		return trimmed(v, 2)
	case a >= 0.001:
		return trimmed(v, 3)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func trimmed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if v == math.Trunc(v) {
		s, _, _ = strings.Cut(s, ".")
	}
	return s
}

func thousands(s string) string {
	for at := len(s) - 3; at > 0 && s[at-1] != '-' && at <= len(s); at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Share writes a share in percent, with two digits.
func Share(share float64) string {
	if p := math.Abs(100 * share); p >= 9.95 || p == 0 {
		return strconv.FormatFloat(100*share, 'f', 0, 64) + "%"
	}
	return strings.Replace(strconv.FormatFloat(100*share, 'f', 1, 64), "-0.0", "0.0", 1) + "%"
}

// And joins names; beyond so many it gives their number.
func And(names []string, most int) string {
	switch n := len(names); {
	case n > most:
		return Some(names, most)
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Cut shortens a text to so many characters, at the end of a word.
func Cut(s string, most int) string {
	letters := []rune(s)
	if len(letters) <= most {
		return s
	}
	cut := string(letters[:most])
	if at := strings.LastIndexByte(cut, ' '); at > most/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " .,;:") + "…"
}

// Capital capitalises a text that does not begin with a name.
func Capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Lower is a text that begins a sentence as a part of another one.
func Lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// Sentence fills in a format for fmt and capitalises it, unless it begins with what is filled in: a name.
func Sentence(format string, args ...any) string { return fmt.Sprintf(Capital(format), args...) }
