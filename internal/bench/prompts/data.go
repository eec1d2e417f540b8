package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
)

// Limits of files, which are read whole.
const (
	mostBytes = 512 << 20
	mostItems = 1_000_000
	mostText  = 16 << 20 // bytes of a prompt
)

// Item is an entry of a data set: what a user says, turn by turn, mostly one turn.
type Item struct {
	Turns     []string
	MaxTokens int // output length; 0: not given
}

// ReadText reads a file that contains one prompt.
func ReadText(path string) (string, error) {
	text, err := regular.Read(path, mostText)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "", "can't read the prompt %s", path)
	}
	if err := promptable(string(text)); err != nil {
		return "", fault.New(fault.Usage, "", "%s: %v", path, err)
	}
	return string(text), nil
}

// promptable returns why a text can't be a prompt.
func promptable(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the text is empty")
	case !utf8.ValidString(text):
		return errors.New("the text is not UTF-8")
	case len(text) > mostText:
		return fmt.Errorf("the text is too long (%d MiB)", len(text)>>20)
	}
	return nil
}

// ReadData reads a data set: JSON lines, or an array of objects. field has the prompt. Without it, the first present of
// prompt, text, question and instruction counts, or a conversation, whose user messages are the turns: conversations as
// in ShareGPT, messages as in chats, or turns, a list of texts. limit is the most entries; 0: all.
func ReadData(path, field string, limit int) ([]Item, error) {
	text, err := regular.Read(path, mostBytes)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "can't read the data set %s", path)
	}
	return ParseData(text, path, field, limit)
}

// ParseData parses a data set; name is its name in errors.
func ParseData(text []byte, name, field string, limit int) ([]Item, error) {
	var items []Item
	err := objects(text, name, func(object map[string]json.RawMessage) (more bool, err error) {
		item, err := itemOf(object, field)
		if err != nil {
			return false, err
		}
		items = append(items, item)
		if len(items) > mostItems {
			return false, fmt.Errorf("more than %d entries", mostItems)
		}
		return limit == 0 || len(items) < limit, nil
	})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fault.New(fault.Usage, "", "data set %s: no entries", name)
	}
	return items, nil
}

// at adds a line to an error.
func at(name string, line int, err error) error {
	return fault.New(fault.Usage, "", "%s:%d: %v", name, line, err)
}

// object takes an object of a file; more reports whether to continue.
type object = func(map[string]json.RawMessage) (more bool, err error)

// errNoObject says that a JSON value is not an object.
var errNoObject = errors.New(`not an object, such as {"prompt": "…"}`)

// objects iterates over the objects of a file, which follow one another or are in an array; name is its name in errors.
func objects(text []byte, name string, each object) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(text))
	line, counted := 1, 0
	next := func() int { // the line of the next value
		offset := int(d.InputOffset())
		for offset < len(text) && strings.IndexByte(" \t\r\n,", text[offset]) >= 0 {
			offset++
		}
		line += bytes.Count(text[counted:offset], []byte("\n"))
		counted = offset
		return line
	}
	array := bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("["))
	if array {
		_, _ = d.Token() // the bracket
	}
	for !array || d.More() {
		here := next()
		var object map[string]json.RawMessage
		switch err := d.Decode(&object); {
		case errors.Is(err, io.EOF) && !array:
			return nil
		case err != nil:
			return at(name, here, notJSON(err))
		case object == nil:
			return at(name, here, errNoObject)
		}
		if more, err := each(object); err != nil {
			return at(name, here, err)
		} else if !more {
			return nil
		}
	}
	if _, err := d.Token(); err != nil {
		return at(name, next(), notJSON(err))
	}
	return nil
}

// notJSON describes a JSON error.
func notJSON(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errNoObject
	}
	return fmt.Errorf("invalid JSON: %v", err)
}

// Fields with a prompt, and with a conversation.
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
			return item, fmt.Errorf("%s is not a text", name)
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
			return item, fmt.Errorf("max_tokens is %s, want a whole number from 1 to %d", raw, MostTokens)
		}
	}
	return item, nil
}

// fieldOf returns the field that contains the prompt.
func fieldOf(object map[string]json.RawMessage, field string) (string, error) {
	has := func(name string) bool { return object[name] != nil }
	if field != "" {
		if !has(field) {
			return "", fmt.Errorf("no field %q; its fields are %s", field, list(object))
		}
		return field, nil
	}
	known := slices.Concat(promptFields, talkFields)
	if i := slices.IndexFunc(known, has); i >= 0 {
		return known[i], nil
	}
	return "", fmt.Errorf("no field %s; set field to the one that has the prompt. Its fields are %s", strings.Join(known, ", "),
		list(object))
}

// list returns some of an object's fields.
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

// turnsOf returns the user's messages of a conversation. System messages go before the next one; answers are left out,
// because the engine generates its own.
func turnsOf(value json.RawMessage) ([]string, error) {
	var texts []string
	if json.Unmarshal(value, &texts) == nil && len(texts) > 0 {
		return texts, nil
	}
	var said []struct{ From, Role, Value, Content string }
	if err := json.Unmarshal(value, &said); err != nil {
		return nil, errors.New("not a list of texts, or of messages with from and value or role and content")
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
			return nil, fmt.Errorf("message %d is from %q, want human, user, gpt, assistant or system", i+1, who)
		}
	}
	if len(turns) == 0 {
		return nil, errors.New("no user message")
	}
	return turns, nil
}
