package protocol

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"llmparity/native/program"
)

// Prefix begins the names of external engines, in plans and in records.
const Prefix = "exec:"

// Command is an external engine as a user types it after Prefix: a program with arguments, optionally with a name.
type Command struct {
	Name string   // in records, after Prefix: as given, else that of the program
	Argv []string // the program and its arguments
}

// named matches a name with its equals sign, but no path.
var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,63})=`)

// notNames matches what is replaced by a dash, because names are part of file names in records.
var notNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// ParseCommand parses PATH, PATH ARGUMENTS… or NAME=PATH ARGUMENTS…. Spaces separate words; quotes and backslashes
// work as in a shell, and nothing else does.
func ParseCommand(text string) (Command, error) {
	var c Command
	if m := named.FindStringSubmatch(text); m != nil {
		c.Name, text = m[1], text[len(m[0]):]
	}
	var err error
	if c.Argv, err = program.Words(text); err != nil {
		return c, err
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return c, errors.New("no program named")
	}
	if c.Name == "" {
		c.Name = strings.Trim(notNames.ReplaceAllString(filepath.Base(c.Argv[0]), "-"), "-")
	}
	if c.Name == "" {
		c.Name = "engine"
	}
	return c, nil
}
