package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"llmparity/compare/evidence"
)

// num writes a figure with about four digits, without an exponent where it can be true.
func num(v float64) string {
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

// spread is the wider side of the interval in percent of the median, with a mark where there is something to know of
// the launches.
func spread(f evidence.Figure) string {
	mark := ""
	if len(f.Warnings) > 0 {
		mark = "!"
	}
	half, known := f.HalfWidth()
	switch {
	case f.Interval == nil:
		return fmt.Sprintf("(n=%d)", f.N) + mark
	case !known:
		return fmt.Sprintf("[%s, %s]", num(f.Interval.Lo), num(f.Interval.Hi)) + mark
	}
	return "±" + strings.TrimSuffix(strconv.FormatFloat(100*half, 'f', 1, 64), ".0") + "%" + mark
}

// clean makes a text from a record safe to look at: what would move the cursor, hide text or turn its direction is
// spelt out.
func clean(s string) string {
	safe := func(r rune) bool { return r != utf8.RuneError && (r == '\n' || !hidden(r)) }
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case safe(r):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == utf8.RuneError:
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// line is clean in one line.
func line(s string) string { return strings.ReplaceAll(clean(s), "\n", `\n`) }

// shorten cuts a line to so many characters.
func shorten(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// wrap breaks a text into lines of so many characters, all but the first indented.
func wrap(s, first, rest string, width int) string {
	var b strings.Builder
	now, empty := first, true // what the line holds, and whether that is the indent alone
	for _, word := range strings.Fields(line(s)) {
		if !empty && utf8.RuneCountInString(now)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(now + "\n")
			now, empty = rest, true
		}
		if !empty {
			now += " "
		}
		now, empty = now+word, false
		for utf8.RuneCountInString(now) > width { // a word that is longer than a line
			letters := []rune(now)
			b.WriteString(string(letters[:width]) + "\n")
			now = rest + string(letters[width:])
		}
	}
	return b.String() + now + "\n"
}

// rounded keeps six decimals.
func rounded(v float64) *float64 {
	v = math.Round(v*1e6) / 1e6
	return &v
}
