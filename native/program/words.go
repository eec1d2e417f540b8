package program

import (
	"errors"
	"regexp"
	"strings"
)

// A word of a command, and the parts of it that are quoted or escaped.
var (
	word    = regexp.MustCompile(`(?s)(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+`)
	quoted  = regexp.MustCompile(`(?s)\\.|'[^']*'|"(?:[^"\\]|\\.)*"`)
	escaped = regexp.MustCompile(`(?s)\\(.)`)
)

// Words splits a command into words. Spaces separate them; quotes and backslashes work as in a shell, and nothing
// else does.
func Words(text string) (words []string, err error) {
	if strings.TrimSpace(word.ReplaceAllString(text, "")) != "" {
		return nil, errors.New("unclosed quote, or a backslash at the end")
	}
	for _, w := range word.FindAllString(text, -1) {
		words = append(words, quoted.ReplaceAllStringFunc(w, func(part string) string {
			switch inner := part[1:]; part[0] {
			case '\'':
				return inner[:len(inner)-1]
			case '"':
				return escaped.ReplaceAllString(inner[:len(inner)-1], "$1")
			default:
				return inner
			}
		}))
	}
	return words, nil
}
