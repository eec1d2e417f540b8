package protocol

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
)

// Prefix is what names of such engines begin with, in plans and in records.
const Prefix = "exec:"

// Command is an engine as a user names it behind Prefix: a program with its arguments, which a name may stand before.
type Command struct {
	Name string   // in records, behind Prefix: the one that was given, else the program's own
	Argv []string // the program and its arguments
}

// named is a name with its equals sign: no path, and no program that has such a sign in its name.
var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,63})=`)

// notNames are what names have a dash for: some of a record's files are called after engines.
var notNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// ParseCommand reads PATH, PATH ARGUMENTS… or NAME=PATH ARGUMENTS…. Words are parted by blanks; quotes and a backslash
// work as in a shell, nothing else does.
func ParseCommand(text string) (Command, error) {
	var c Command
	if m := named.FindStringSubmatch(text); m != nil {
		c.Name, text = m[1], text[len(m[0]):]
	}
	var err error
	if c.Argv, err = split(text); err != nil {
		return c, err
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return c, errors.New("no program is named")
	}
	if c.Name == "" {
		c.Name = strings.Trim(notNames.ReplaceAllString(filepath.Base(c.Argv[0]), "-"), "-")
	}
	if c.Name == "" {
		c.Name = "engine"
	}
	return c, nil
}

// split parts a text into words.
func split(text string) ([]string, error) {
	var (
		words  []string
		word   strings.Builder
		within bool // a word, though it may be empty
		quote  rune // that is open
		escape bool
	)
	for _, r := range text {
		switch {
		case escape:
			word.WriteRune(r)
			escape = false
		case r == '\\' && quote != '\'':
			escape, within = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, within = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if within {
				words = append(words, word.String())
				word.Reset()
				within = false
			}
		default:
			word.WriteRune(r)
			within = true
		}
	}
	switch {
	case quote != 0:
		return nil, errors.New("a quote is not closed")
	case escape:
		return nil, errors.New("a backslash is its last character")
	case within:
		words = append(words, word.String())
	}
	return words, nil
}
