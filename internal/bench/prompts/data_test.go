package prompts

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

func TestDataSets(t *testing.T) {
	for _, c := range []struct {
		name, text, field string
		limit             int
		want              []Item
	}{
		{"an object a line", "{\"prompt\":\"a\"}\n\n{\"prompt\":\"b\", \"max_tokens\": 7}\r\n", "", 0,
			[]Item{{[]string{"a"}, 0}, {[]string{"b"}, 7}}},
		{"a field of its own", `{"id":1,"body":"a"}`, "body", 0, []Item{{[]string{"a"}, 0}}},
		{"the first of several", `{"text":"b","prompt":"a"}`, "", 0, []Item{{[]string{"a"}, 0}}},
		{"some of them", "{\"text\":\"a\"}\n{\"text\":\"b\"}\nthis is never read", "",
			2, []Item{{[]string{"a"}, 0}, {[]string{"b"}, 0}}},
		{"ShareGPT", "[\n {\"id\":\"1\",\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"x\"},\n{\"from\":\"human\",\"value\":\"b\"}]}\n,\n\n{\"conversations\":[{\"from\":\"user\",\"value\":\"c\"}]}]\n",
			"", 0, []Item{{[]string{"a", "b"}, 0}, {[]string{"c"}, 0}}},
		{"a chat", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"x"},{"role":"user","content":"b"}]}`,
			"", 0, []Item{{[]string{"s\na", "b"}, 0}}},
		{"turns", `{"turns":["a","b"]}`, "", 0, []Item{{[]string{"a", "b"}, 0}}},
		{"a mark of its encoding", "\xef\xbb\xbf{\"prompt\":\"a\"}", "", 0, []Item{{[]string{"a"}, 0}}},
	} {
		got, err := ParseData([]byte(c.text), "d.jsonl", c.field, c.limit)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestInvalidDataSets(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "data set d.jsonl: no entries",
		"[]":                       "data set d.jsonl: no entries",
		"{\"prompt\":\"a\"}\n{":    "d.jsonl:2: invalid JSON: unexpected EOF",
		"{\"prompt\":\"a\"}\n\n[]": "d.jsonl:3: not an object, such as",
		"\"prompt\"":               "d.jsonl:1: not an object, such as",
		"null":                     "d.jsonl:1: not an object, such as",
		`{"promt":"a"}`:            `d.jsonl:1: no field prompt, text, question, instruction, conversations, messages, turns; set field to the one that has the prompt. Its fields are "promt"`,
		`{}`:                       `set field to the one that has the prompt. Its fields are none`,
		`{"prompt":3}`:             "d.jsonl:1: prompt is not a text",
		`{"prompt":null}`:          "d.jsonl:1: prompt is not a text",
		`{"prompt":" "}`:           "d.jsonl:1: prompt: the text is empty",
		`{"turns":["a",""]}`:       "d.jsonl:1: turns: turn 2: the text is empty",
		`{"turns":[]}`:             "d.jsonl:1: turns: no user message",
		`{"turns":[3]}`:            "d.jsonl:1: turns: not a list of texts, or of messages",
		`{"messages":[{"role":"wizard","content":"a"}]}`: `d.jsonl:1: messages: message 1 is from "wizard"`,
		`{"prompt":"a","max_tokens":0}`:                  "d.jsonl:1: max_tokens is 0, want a whole number from 1",
		`{"prompt":"a","max_tokens":"7"}`:                `d.jsonl:1: max_tokens is "7"`,
		"[{\"prompt\":\"a\"},\n\n {\"prompt\":]":         "d.jsonl:3: invalid JSON",
		"[{\"prompt\":\"a\"},\n\n 7]":                    "d.jsonl:3: not an object, such as",
		"[{\"prompt\":\"a\"},\n null]":                   "d.jsonl:2: not an object, such as",
		"[{\"prompt\":\"a\"}":                            "d.jsonl:1: invalid JSON",
	} {
		if got, err := ParseData([]byte(text), "d.jsonl", "", 0); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ParseData([]byte(`{"a":"b"}`), "d.jsonl", "c", 0); err == nil ||
		!strings.Contains(err.Error(), `d.jsonl:1: no field "c"; its fields are "a"`) {
		t.Error(err)
	}
}

func TestTraces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		limit      int
		want       []record.Arrival
	}{
		{"our own", "time,input_tokens,output_tokens\n5,10,20\n5.25, 11,21\n",
			0, []record.Arrival{{At: 0, InputTokens: 10, MaxTokens: 20}, {At: .25, InputTokens: 11, MaxTokens: 21}}},
		{"dates", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:47.1805900,396,109\n", 0,
			[]record.Arrival{{At: 0, InputTokens: 374, MaxTokens: 44}, {At: .5, InputTokens: 396, MaxTokens: 109}}},
		{"columns that say nothing here",
			"Timestamp,Model,Request tokens,Response tokens,Total tokens\n5,ChatGPT,472,18,490\n45,GPT-4,1087,230,1317\n", 1,
			[]record.Arrival{{At: 0, InputTokens: 472, MaxTokens: 18}}},
		{"objects in milliseconds", `{"timestamp": 1000, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1]}
{"timestamp": 1500, "input_length": 7, "output_length": 5, "hash_ids": []}`, 0,
			[]record.Arrival{{At: 0, InputTokens: 6755, MaxTokens: 500}, {At: .5, InputTokens: 7, MaxTokens: 5}}},
		{"objects that say it", `{"time_ms": 10, "input_tokens": 1, "output_tokens": 1}`, 0,
			[]record.Arrival{{At: 0, InputTokens: 1, MaxTokens: 1}}},
		{"objects with dates", `{"time": "2026-01-01T00:00:00Z", "input_tokens": 1, "output_tokens": 1}`, 0,
			[]record.Arrival{{At: 0, InputTokens: 1, MaxTokens: 1}}},
	} {
		got, err := ParseTrace([]byte(c.text), "t.csv", c.limit)
		for i := range got {
			got[i].At = float64(int64(got[i].At*1e6+.5)) / 1e6 // dates are floats
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestInvalidTraces(t *testing.T) {
	const head = "time,input_tokens,output_tokens\n"
	for text, want := range map[string]string{
		"":                      "t.csv:1: no column time; want a header such as time,input_tokens,output_tokens",
		"time,output_tokens\n":  "t.csv:1: no column input_tokens",
		head:                    "trace t.csv: no requests",
		head + "1,2\n":          "t.csv:2: wrong number of fields",
		head + "1,2,3\n\nx,2,3": `t.csv:4: time "x" is neither`,
		head + "NaN,2,3":        `t.csv:2: time "NaN" is neither`,
		head + "1,2,3\n0,2,3":   "t.csv:3: earlier than the previous request",
		head + "1,0,3":          `t.csv:2: input length is "0", want a whole number from 1`,
		head + "1,2,x":          `t.csv:2: output length is "x", want`,
		head + "1,2,3\n2e9,2,3": "t.csv:3: 23148 days after the first request; the maximum is 1157",
		head + "\"1,2,3":        "t.csv:2: extraneous",
		`{"time":1}`:            "t.csv:1: no field input_tokens",
		`{"time":1,"at":2}`:     "t.csv:1: duplicate time",
		"{\"time\":1,\n":        "t.csv:1: invalid JSON",
		`{"time":[],"input_tokens":1,"output_tokens":1}`: `t.csv:1: time "[]" is neither`,
	} {
		if got, err := ParseTrace([]byte(text), "t.csv", 0); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		check.Err(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	if text, err := ReadText(write("p.txt", "a prompt\n")); err != nil || text != "a prompt\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, wrong := range []string{write("empty.txt", " \n"), write("binary", "\xff\xfe"),
		dir, filepath.Join(dir, "none"), os.DevNull} {
		if text, err := ReadText(wrong); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v", wrong, text, err)
		}
	}
	if items, err := ReadData(write("d.jsonl", `{"prompt":"a"}`), "", 0); err != nil || len(items) != 1 {
		t.Errorf("%v, %v", items, err)
	}
	if trace, err := ReadTrace(write("t.csv", "time,input_tokens,output_tokens\n1,2,3\n"), 0); err != nil ||
		len(trace) != 1 {
		t.Errorf("%v, %v", trace, err)
	}
	if _, err := ReadData(dir, "", 0); err == nil {
		t.Error("a folder is no data set")
	}
	if _, err := ReadTrace(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("a file that is not there is no trace")
	}
}

// FuzzFiles checks that what is read of a data set or a trace is usable and in order.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{`{"prompt":"a"}`, "[\n{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]}]",
		"time,input_tokens,output_tokens\n1,2,3\n2,3,4\n", `{"time":1,"input_tokens":1,"output_tokens":1}`, "time\n\"",
		"[{}]", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		items, err := ParseData(text, "d", "", 0)
		trace, wrong := ParseTrace(text, "t", 0)
		if (err == nil) != (len(items) > 0) || (wrong == nil) != (len(trace) > 0) {
			t.Fatalf("%d entries, %v; %d requests, %v", len(items), err, len(trace), wrong)
		}
		for _, item := range items {
			blank := slices.ContainsFunc(item.Turns, func(text string) bool { return strings.TrimSpace(text) == "" })
			if len(item.Turns) == 0 || item.MaxTokens < 0 || blank {
				t.Fatalf("%+v", item)
			}
		}
		last := 0.0
		for _, a := range trace {
			if !(a.At >= last) || a.InputTokens < 1 || a.MaxTokens < 1 {
				t.Fatalf("%+v behind %v", a, last)
			}
			last = a.At
		}
	})
}
