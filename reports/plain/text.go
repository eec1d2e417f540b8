package plain

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"llmparity/compare/evidence"
	"llmparity/compare/growth"
	"llmparity/internal/kit/safe"
	"llmparity/internal/record"
)

// Num writes a figure with about four digits, without an exponent where it can be true.
func Num(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 1e15: // nobody's figure, and wider than a terminal
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a >= 999.5 || a == math.Trunc(a):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Spread is the wider side of the interval in percent of the median, or the ends of a wide one, with a mark where there
// is something to know of the launches.
func Spread(f evidence.Figure) string {
	mark := ""
	if f.Marked() {
		mark = "!"
	}
	half, known := f.HalfWidth()
	switch {
	case f.Meaningless:
		return f.Note + mark
	case f.Interval == nil:
		return fmt.Sprintf("(n=%d)", f.N) + mark
	case !known || half > evidence.Lopsided:
		return fmt.Sprintf("(%s to %s)", Num(f.Interval.Lo), Num(f.Interval.Hi)) + mark
	}
	return "±" + strings.TrimSuffix(strconv.FormatFloat(100*half, 'f', 1, 64), ".0") + "%" + mark
}

// Line is a text that is safe to look at, in one line.
func Line(s string) string { return strings.ReplaceAll(safe.Text(s), "\n", `\n`) }

// Shorten cuts a line to so many characters.
func Shorten(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Wrap breaks a text into lines of so many characters, all but the first indented.
func Wrap(s, first, rest string, width int) string {
	var b strings.Builder
	b.WriteString(first)
	at, empty := utf8.RuneCountInString(first), true // the end of the line, and whether it has the indent alone
	next := func() {
		b.WriteString("\n" + rest)
		at, empty = utf8.RuneCountInString(rest), true
	}
	for word := range strings.FieldsSeq(Line(s)) {
		letters := utf8.RuneCountInString(word)
		if !empty && at+1+letters > width {
			next()
		}
		if !empty {
			b.WriteByte(' ')
			at++
		}
		for ; at+letters > width; next() { // a word that is longer than a line
			room := max(1, width-at)
			end := 0
			for range room {
				_, size := utf8.DecodeRuneInString(word[end:])
				end += size
			}
			b.WriteString(word[:end])
			word, letters = word[end:], letters-room
		}
		b.WriteString(word)
		at, empty = at+letters, false
	}
	return b.String() + "\n"
}

// Fold is the lines that Wrap makes of a text without an indent.
func Fold(s string, width int) []string {
	return strings.Split(strings.TrimSuffix(Wrap(s, "", "", width), "\n"), "\n")
}

// Size writes a size, with the number of launches if fewer than counted have it. Repetitions in one launch have some
// sizes only once.
func Size(f evidence.Figure, l evidence.Counts) string {
	switch {
	case !f.Known():
		return "–"
	case f.N < l.Counted && f.N != l.Opened:
		return fmt.Sprintf("%s (n=%d)", Mib(f.Center()), f.N)
	}
	return Mib(f.Center())
}

// Mib writes a size with at least a thousandth, because some parts are a few bytes.
func Mib(v float64) string {
	switch a := math.Abs(v); {
	case v < 0 && a < 0.0005:
		return ">-0.001"
	case v != 0 && a < 0.0005:
		return "<0.001"
	case v != 0 && a < 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return Num(v)
}

// Known is a figure, or why there is none.
func Known(f evidence.Figure) string {
	if !f.Known() {
		return f.Absent
	}
	return Num(f.Center())
}

// IntervalWords are the ends of a figure's interval, or why there is none.
func IntervalWords(f evidence.Figure) string {
	switch {
	case !f.Known():
		return ""
	case f.Interval == nil:
		return f.Note
	}
	return Num(f.Interval.Lo) + " to " + Num(f.Interval.Hi)
}

// Values are those of each launch.
func Values(f evidence.Figure) string {
	var all []string
	for _, v := range f.Values {
		all = append(all, Num(v.Value))
	}
	return strings.Join(all, ", ")
}

// OriginWords spells out an origin.
func OriginWords(o record.Origin) string {
	if o == record.OriginReported {
		return "reported by the engine"
	}
	return string(o)
}

// OrDash is a text, or a dash where it is empty.
func OrDash(s string) string { return cmp.Or(s, "–") }

// Joined joins the parts that are not empty.
func Joined(with string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, with)
}

// Rate writes bytes per token.
func Rate(v float64) string {
	if math.Abs(v) >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return Num(v)
}

// NoSpread is in place of an interval where all launches agree.
const NoSpread = "no spread"

// RateInterval are the ends of a slope's interval, or why there is none.
func RateInterval(r growth.Rate) string {
	if r.Interval == nil {
		return r.Note
	}
	if r.Interval.Lo == r.Interval.Hi {
		return NoSpread
	}
	return Rate(r.Interval.Lo) + " to " + Rate(r.Interval.Hi)
}

// Lines spells out characters that XML does not allow.
func Lines(texts []string) []string {
	var out []string
	for _, s := range texts {
		out = append(out, Line(s))
	}
	return out
}

// OrNone is a number, or a dash where it is not known.
func OrNone(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return Num(v)
}

// TitleCase capitalises an ASCII text.
func TitleCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
