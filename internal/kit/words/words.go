// Package words formats amounts and lines for people, in English. It knows only plurals in -s and -es.
package words

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Count formats a number of things: "1 layer", "2 launches".
func Count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"), strings.HasSuffix(what, "ss"):
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Size formats a number of bytes.
func Size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Timeout formats a time limit that is no less than d, as users write it: 4m.
func Timeout(d time.Duration) string { return fmt.Sprintf("%dm", (d+time.Minute-1)/time.Minute) }

// Folded breaks a line at 100 columns and indents what follows by two spaces.
func Folded(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if n := len([]rune(word)); column > 0 && column+1+n > 100 {
			b.WriteString("\n  ")
			column = 2
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len([]rune(word))
	}
	return b.String() + "\n"
}

var unknownCommit = regexp.MustCompile(`\S+ \((build \d+), commit unknown\)`)

// Version leaves out of a program's version what its build does not know: "build 11434" for "0.6.0-dev (build 11434,
// commit unknown)".
func Version(text string) string { return unknownCommit.ReplaceAllString(text, "$1") }
