package protocol

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/record"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":1,"event":"done"}`: "",
		`{"id":1,"event":"token","token":5,"text":"\u00e9","more":[1,{}]}`:  "",
		` {"id":1,"event":"done","reported":{"ms":1e3},"prompt_ids":null} `: "",
		`Loading model…`:                                   "not a JSON object",
		``:                                                 "not a JSON object",
		`[1]`:                                              "not a JSON object",
		`{"id":1,"event":"done"`:                           "not a JSON object",
		`{"id":1,"event":"done"} {}`:                       "not a JSON object",
		"{\"id\":1,\"event\":\"\xff\"}":                    "UTF-8",
		`{"event":"done"}`:                                 `"id" is missing`,
		`{"id":-1,"event":"done"}`:                         `"id" is missing`,
		`{"id":"1","event":"done"}`:                        `"id" has the wrong type (string)`,
		`{"id":1.5,"event":"done"}`:                        `"id" has the wrong type (number 1.5)`,
		`{"id":1}`:                                         `"event"`,
		`{"id":1,"event":"finished"}`:                      `"event" is "finished"`,
		`{"id":1,"event":"token","token":-1}`:              `"token" is negative`,
		`{"id":1,"event":"token","text":7}`:                `"text" has the wrong type (number)`,
		`{"id":1,"event":"done","weights":"rounded"}`:      `"weights" is "rounded"; use same_bits`,
		`{"id":1,"event":"done","generated":-3}`:           "a count is negative",
		`{"id":1,"event":"done","prompt_ids":[1,-2]}`:      `"prompt_ids"`,
		`{"id":1,"event":"done","reported":{"ms":NaN}}`:    "not a JSON object",
		`{"id":1,"event":"done","reported":{"ms":1e999}}`:  `"reported" has the wrong type (number 1e999)`,
		`{"id":1,"event":"done","reported":{"ms":"fast"}}`: `"reported" has the wrong type (string)`,
		`{"id":1,"event":"error"}`:                         "lacks \"message\"",
		`{"id":1,"event":"stage"}`:                         "lacks its name",
		`{"id":99999999999999999999,"event":"x"}`:          `"id" has the wrong type (number`,
	} {
		_, err := parse([]byte(line))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// The tables of the documentation have every field.
func TestEveryFieldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/howto/add-an-engine.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(line, "| `") {
			table[name] = true
		}
	}
	fields := reflect.TypeFor[message]()
	for i := range fields.NumField() {
		name := fields.Field(i).Tag.Get("json")
		own := name == "row" || name == "rows" // only built-in engines get such requests
		if !own && !table[name] {
			t.Errorf("no row of docs/howto/add-an-engine.md is for %q of the answers", name)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[caps](), reflect.TypeFor[record.Device](),
		reflect.TypeFor[model]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			ours := name == "op" || name == "origin" // the first is a request's, the other is never an engine's
			if !ours && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/howto/add-an-engine.md says nothing of %q in %s", name, of.Name())
			}
		}
	}
}

func TestScoreLines(t *testing.T) {
	for name, c := range map[string]struct{ line, wrong string }{
		"right":     {`{"id":3,"event":"token","token":7,"logprob":-2.5,"top":[{"token":5,"logprob":-0.5},{"token":7,"logprob":-2.5}]}`, ""},
		"too small": {`{"id":3,"event":"token","token":7,"top":[{"token":5,"logprob":-0.5},{"token":8,"logprob":-2.5}]}`, ""},
		"no token":  {`{"id":3,"event":"token","logprob":-2.5,"top":[]}`, `must have the forced "token" 7`},
		"one candidate": {`{"id":3,"event":"token","token":7,"logprob":-2.5,"top":[{"token":5,"logprob":-0.5}]}`,
			"at least 2"},
		"incomplete candidate": {`{"id":3,"event":"token","token":7,"top":[{"token":5},{"token":7,"logprob":-2.5}]}`,
			`lacks "token" or "logprob"`},
		"no probability": {`{"id":3,"event":"token","token":7,"logprob":0.5,"top":[{"token":5,"logprob":-1},{"token":7,"logprob":-2.5}]}`, "forced token is 0.5"},
	} {
		m, err := parse([]byte(c.line))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sc, err := m.score(4, 7)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if err != nil || sc.Position != 4 || sc.Forced != 7 || sc.Chosen() != 5 || len(sc.Top) != 2 ||
			math.IsNaN(sc.LogProb) != (name == "too small") {
			t.Errorf("%s: %+v, %v", name, sc, err)
		}
	}
	hello := message{Name: "a", Version: "1", Device: &record.Device{Class: "cpu"}, Caps: caps{Scores: true}}
	if err := hello.checkHello(""); err == nil || !strings.Contains(err.Error(), `"scores" without "ids"`) {
		t.Errorf("scores without ids: %v", err)
	}
}

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
