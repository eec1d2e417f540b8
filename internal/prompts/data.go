package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/internal/fault"
	"llmparity/internal/regular"
)

// What files may be at most: they are read whole.
const (
	mostBytes = 512 << 20
	mostItems = 1_000_000
	mostText  = 16 << 20 // bytes of a prompt
)

// Item is an entry of a data set: what a user says, turn by turn. Most have one turn.
type Item struct {
	Line      int
	Turns     []string
	MaxTokens int // that are to be generated, where the entry says it; 0: it doesn't
}

// ReadText reads a file whose whole text is a prompt.
func ReadText(path string) (string, error) {
	text, err := regular.Read(path, mostText)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "", "the prompt %s can't be read", path)
	}
	if err := promptable(string(text)); err != nil {
		return "", fault.New(fault.Usage, "", "%s: %v", path, err)
	}
	return string(text), nil
}

// promptable says why a text can't be a prompt.
func promptable(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("the text is empty")
	case !utf8.ValidString(text):
		return fmt.Errorf("the text is not UTF-8")
	case len(text) > mostText:
		return fmt.Errorf("a text of %d MiB is longer than any prompt", len(text)>>20)
	}
	return nil
}

// ReadData reads a data set: an object a line, or an array of objects. The field has the prompt; without one it is the
// first that is there of prompt, text, question, instruction, or a conversation, of which what the user says are the
// turns: conversations as ShareGPT has them, messages as a chat has them, or turns, a list of texts. No more than limit
// entries are taken; 0: all.
func ReadData(path, field string, limit int) ([]Item, error) {
	text, err := regular.Read(path, mostBytes)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "the data set %s can't be read", path)
	}
	return ParseData(text, path, field, limit)
}

// ParseData reads the text of a data set; name stands in errors.
func ParseData(text []byte, name, field string, limit int) ([]Item, error) {
	var items []Item
	err := objects(text, name, func(line int, object map[string]json.RawMessage) (more bool, err error) {
		item, err := itemOf(object, field)
		if err != nil {
			return false, at(name, line, err)
		}
		item.Line = line
		items = append(items, item)
		if len(items) > mostItems {
			return false, at(name, line, fmt.Errorf("there are more than %d entries", mostItems))
		}
		return limit == 0 || len(items) < limit, nil
	})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fault.New(fault.Usage, "", "the data set %s has no entries", name)
	}
	return items, nil
}

// at names the line of an error.
func at(name string, line int, err error) error {
	return fault.New(fault.Usage, "", "%s:%d: %v", name, line, err)
}

// object takes one of a file; more tells whether the next is wanted.
type object = func(line int, object map[string]json.RawMessage) (more bool, err error)

// errNoObject is the error of what is JSON, but no object.
var errNoObject = errors.New(`an object is needed, as in {"prompt": "…"}`)

// objects goes through the objects of a file, one a line or in an array. name stands in errors.
func objects(text []byte, name string, each object) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) > 0 && start[0] == '[' {
		return inArray(text, name, each)
	}
	for line := 1; len(text) > 0; line++ {
		var one []byte
		one, text, _ = bytes.Cut(text, []byte("\n"))
		if one = bytes.TrimSpace(one); len(one) == 0 {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(one, &object); err != nil {
			return at(name, line, notJSON(err))
		}
		if object == nil {
			return at(name, line, errNoObject)
		}
		if more, err := each(line, object); err != nil || !more {
			return err
		}
	}
	return nil
}

// notJSON says what is wrong in words for somebody who wrote the file.
func notJSON(err error) error {
	if _, ok := err.(*json.UnmarshalTypeError); ok {
		return errNoObject
	}
	return fmt.Errorf("it is no JSON: %v", err)
}

func inArray(text []byte, name string, each object) error {
	d := json.NewDecoder(bytes.NewReader(text))
	line, counted := 1, 0
	lineOf := func(offset int64) int { // of what begins at an offset, behind blanks and a comma
		for int(offset) < len(text) && strings.IndexByte(" \t\r\n,", text[offset]) >= 0 {
			offset++
		}
		line += bytes.Count(text[counted:min(int(offset), len(text))], []byte("\n"))
		counted = min(int(offset), len(text))
		return line
	}
	if _, err := d.Token(); err != nil {
		return at(name, 1, notJSON(err))
	}
	for d.More() {
		here := lineOf(d.InputOffset())
		var object map[string]json.RawMessage
		if err := d.Decode(&object); err != nil {
			return at(name, here, notJSON(err))
		}
		if object == nil {
			return at(name, here, errNoObject)
		}
		if more, err := each(here, object); err != nil || !more {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return at(name, lineOf(d.InputOffset()), notJSON(err))
	}
	return nil
}

// Fields that have a prompt, and those that have a conversation.
var (
	promptFields = []string{"prompt", "text", "question", "instruction"}
	talkFields   = []string{"conversations", "messages", "turns"}
)

func itemOf(object map[string]json.RawMessage, field string) (Item, error) {
	name, err := fieldOf(object, field)
	if err != nil {
		return Item{}, err
	}
	item := Item{}
	value := object[name]
	switch first := bytes.TrimSpace(value); {
	case len(first) > 0 && first[0] == '[':
		item.Turns, err = turnsOf(value)
	default:
		var text string
		if json.Unmarshal(value, &text) != nil || string(value) == "null" {
			return item, fmt.Errorf("%s is no text", name)
		}
		item.Turns = []string{text}
	}
	if err != nil {
		return item, fmt.Errorf("%s: %w", name, err)
	}
	for i, text := range item.Turns {
		if err := promptable(text); err != nil && len(item.Turns) > 1 {
			return item, fmt.Errorf("%s: turn %d: %w", name, i+1, err)
		} else if err != nil {
			return item, fmt.Errorf("%s: %w", name, err)
		}
	}
	if raw, ok := object["max_tokens"]; ok {
		if err := json.Unmarshal(raw, &item.MaxTokens); err != nil || item.MaxTokens < 1 ||
			item.MaxTokens > MostTokens {
			return item, fmt.Errorf("max_tokens is %s: a whole number from 1 to %d is needed", raw, MostTokens)
		}
	}
	return item, nil
}

// fieldOf finds the field that has what is asked.
func fieldOf(object map[string]json.RawMessage, field string) (string, error) {
	has := func(name string) bool { return object[name] != nil }
	if field != "" {
		if !has(field) {
			return "", fmt.Errorf("it has no field %q; it has %s", field, list(object))
		}
		return field, nil
	}
	known := slices.Concat(promptFields, talkFields)
	if i := slices.IndexFunc(known, has); i >= 0 {
		return known[i], nil
	}
	return "", fmt.Errorf("it has no field %s; say which of its own has the prompt: %s", strings.Join(known, ", "),
		list(object))
}

// list is a few of an object's fields.
func list(object map[string]json.RawMessage) string {
	var names []string
	for name := range object {
		if len(name) <= 40 {
			names = append(names, fmt.Sprintf("%q", name))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names[:min(8, len(names))], ", ")
}

// turnsOf are what the user says in a conversation. What a system says comes before his first text; what the model said
// then is left out: the one that is asked answers itself.
func turnsOf(value json.RawMessage) ([]string, error) {
	var texts []string
	if json.Unmarshal(value, &texts) == nil && len(texts) > 0 {
		return texts, nil
	}
	var said []struct{ From, Role, Value, Content string }
	if err := json.Unmarshal(value, &said); err != nil {
		return nil, fmt.Errorf("a list of texts, or of messages with from and value or role and content, is needed")
	}
	var turns []string
	before := ""
	for i, m := range said {
		text := m.Value + m.Content
		switch who := strings.ToLower(m.From + m.Role); who {
		case "human", "user":
			turns = append(turns, before+text)
			before = ""
		case "system":
			before += text + "\n"
		case "gpt", "assistant", "chatgpt", "bard", "bing", "model", "tool", "function":
		default:
			return nil, fmt.Errorf("message %d is from %q; human, user, gpt, assistant and system are known", i+1, who)
		}
	}
	if len(turns) == 0 {
		return nil, fmt.Errorf("nobody asks anything in it")
	}
	return turns, nil
}
