package protocol

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":1,"event":"done"}`: "",
		`{"id":1,"event":"token","token":5,"text":"\u00e9","more":[1,{}]}`:  "",
		` {"id":1,"event":"done","reported":{"ms":1e3},"prompt_ids":null} `: "",
		`Loading model…`:                                   "no JSON object",
		``:                                                 "no JSON object",
		`[1]`:                                              "no JSON object",
		`{"id":1,"event":"done"`:                           "no JSON object",
		`{"id":1,"event":"done"} {}`:                       "no JSON object",
		"{\"id\":1,\"event\":\"\xff\"}":                    "UTF-8",
		`{"id":1,"event":"done","id":2}`:                   `"id" stands in it twice`,
		`{"event":"done"}`:                                 `"id" is missing`,
		`{"id":-1,"event":"done"}`:                         `"id" is missing`,
		`{"id":"1","event":"done"}`:                        `"id" is a string there`,
		`{"id":1.5,"event":"done"}`:                        `"id" is a number 1.5 there`,
		`{"id":1}`:                                         `"event"`,
		`{"id":1,"event":"finished"}`:                      `"event" is "finished"`,
		`{"id":1,"event":"token","token":-1}`:              `"token" is negative`,
		`{"id":1,"event":"token","text":7}`:                `"text" is a number there`,
		`{"id":1,"event":"done","generated":-3}`:           "a count is negative",
		`{"id":1,"event":"done","prompt_ids":[1,-2]}`:      `"prompt_ids"`,
		`{"id":1,"event":"done","reported":{"ms":NaN}}`:    "no JSON object",
		`{"id":1,"event":"done","reported":{"ms":1e999}}`:  `"reported" is a number 1e999 there`,
		`{"id":1,"event":"done","reported":{"ms":"fast"}}`: `"reported" is a string there`,
		`{"id":1,"event":"error"}`:                         "without a \"message\"",
		`{"id":1,"event":"stage"}`:                         "without its name",
		`{"id":99999999999999999999,"event":"x"}`:          `"id" is a number`,
	} {
		_, err := parse([]byte(line))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"id":1,"event":"done","protocol":1,"name":"a","version":"1","device":{"class":"cpu"},"caps":{"ids":true}}`,
		`{"id":2,"event":"token","token":5,"text":"a","t_ns":12}`,
		`{"id":2,"event":"error","class":"oom","message":"m"}`,
		`{"id":2,"event":"done","finish":"length","prompt_ids":[1],"reported":{"ms":1}}`, `{"id":1,"id":2}`,
		"[", `{"a":`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parse(line)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error that says nothing")
			}
			return
		}
		if m.ID < 1 || m.Event == "" || min(m.PromptTokens, m.Generated, m.cached(), m.Context) < 0 || m.Token != nil &&
			*m.Token < 0 {
			t.Fatalf("%s: %+v", line, m)
		}
		if !json.Valid(line) {
			t.Fatalf("%q is no JSON and was taken", line)
		}
	})
}

// The document's tables have every field that is read or written.
func TestTheDocumentHasEveryField(t *testing.T) {
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
		if name := fields.Field(i).Tag.Get("json"); !table[name] {
			t.Errorf("no row of docs/howto/add-an-engine.md is for %q of the answers", name)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[caps](), reflect.TypeFor[device](),
		reflect.TypeFor[helloRequest](),
		reflect.TypeFor[loadRequest](), reflect.TypeFor[model](), reflect.TypeFor[generateRequest](),
		reflect.TypeFor[plainRequest]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "op" && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/howto/add-an-engine.md says nothing of %q in %s", name, of.Name())
			}
		}
	}
}
