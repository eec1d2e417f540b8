package protocol

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		text string
		want Command
		err  string
	}{
		{"./my-engine", Command{"my-engine", []string{"./my-engine"}}, ""},
		{"my-engine --fast  -n 2 ", Command{"my-engine", []string{"my-engine", "--fast", "-n", "2"}}, ""},
		{`fast=./e "two words" a\ b 'it''s' ""`, Command{"fast", []string{"./e", "two words", "a b", "its", ""}}, ""},
		{`'C:\x y' "a\"b" '\'`, Command{"C-x-y", []string{`C:\x y`, `a"b`, `\`}}, ""},
		{"/opt/e=1/engine", Command{"engine", []string{"/opt/e=1/engine"}}, ""},
		{"./größe.py", Command{"gr-e.py", []string{"./größe.py"}}, ""},
		{"./…", Command{"engine", []string{"./…"}}, ""},
		{"", Command{}, "no program"},
		{"x=", Command{Name: "x"}, "no program"},
		{`""`, Command{Argv: []string{""}}, "no program"},
		{"./e 'a", Command{}, "quote"},
		{`./e \`, Command{}, "backslash"},
	} {
		got, err := ParseCommand(c.text)
		if c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want)) || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %q, %v; want %q, %q", c.text, got, err, c.want, c.err)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"./e --flag", `n=./e 'a b' "c\"" \ `, "=", "a=", "'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCommand(text)
		if err != nil {
			return
		}
		if len(c.Argv) == 0 || c.Argv[0] == "" || c.Name == "" || notNames.MatchString(c.Name) {
			t.Fatalf("%q: %q", text, c)
		}
		// Quoted, the words are themselves again.
		var quoted []string
		for _, w := range c.Argv {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		if again, err := split(strings.Join(quoted, " ")); err != nil || !reflect.DeepEqual(again, c.Argv) {
			t.Fatalf("%q: %q, then %q, %v", text, c.Argv, again, err)
		}
	})
}
