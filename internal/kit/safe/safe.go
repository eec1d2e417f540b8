// Package safe shows texts that anyone may have written: names in records, subjects of commits, what a model generates.
// It changes nothing else about a text, and knows no HTML: templates see to that.
package safe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes a text safe to look at: what would move the cursor, hide text or turn its direction is
// spelt out.
func Text(s string) string {
	fine := func(r rune) bool { return r != utf8.RuneError && (r == '\n' || !hidden(r)) }
	if strings.IndexFunc(s, func(r rune) bool { return !fine(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case fine(r):
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

// Markdown makes a text one that is shown as it stands: no mark formats, no address becomes a link, no name calls
// anybody.
func Markdown(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\n", " "))
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case strings.ContainsRune("\\`*[]>|~&$", r), r == '_' && !within(s, i), i == firstMark(s):
			b.WriteString("\\" + string(r))
		case r == '@', r == ':' && strings.HasPrefix(s[i:], "://"), r == '.' && i >= 3 &&
			strings.EqualFold(s[i-3:i], "www"):
			b.WriteString(string(r) + "<!-- -->") // what comes behind it is no part of a name or an address
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// within tells whether a mark has letters or digits on both sides, where an underscore is one.
func within(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+1:])
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return letter(before) && letter(after)
}

// firstMark is where a text would begin a heading, a list or a rule; -1 where it does not.
func firstMark(s string) int {
	if s != "" && strings.ContainsRune("#+-=", rune(s[0])) {
		return 0
	}
	rest := strings.TrimLeft(s, "0123456789")
	if at := len(s) - len(rest); at > 0 && rest != "" && (rest[0] == '.' || rest[0] == ')') &&
		(len(rest) == 1 || rest[1] == ' ') {
		return at
	}
	return -1
}
