package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Source is where prompts come from that are not texts of the plan. Exactly one of File, Dataset, Trace and
// Conversation is set. Paths are relative to the current folder; the files are read when the plan is resolved.
type Source struct {
	// File whose text is the prompt.
	File string `yaml:"file,omitempty"`
	// File of JSON lines, each with the prompt of a request.
	Dataset string `yaml:"dataset,omitempty"`
	// CSV or JSON file with arrival times and lengths of requests.
	Trace string `yaml:"trace,omitempty"`
	// What the user says in each turn of a conversation.
	Conversation []string `yaml:"conversation,omitempty"`
	// Field of a dataset that has the prompt. Default: a usual name such as prompt.
	Field string `yaml:"field,omitempty"`
	// Lines of a dataset or trace to use. Default: all.
	Limit int `yaml:"limit,omitempty"`
}

// Prompt is a text, or a source of one or several. A text can be written alone.
type Prompt struct {
	Text   string `yaml:"text,omitempty"`
	Source `yaml:",inline"`
}

// Texts returns prompts.
func Texts(texts ...string) (out []Prompt) {
	for _, text := range texts {
		out = append(out, Prompt{Text: text})
	}
	return out
}

func (p *Prompt) alone() any { return &p.Text }

// MarshalYAML writes a text alone.
func (p Prompt) MarshalYAML() (any, error) {
	if p.Text != "" {
		return p.Text, nil
	}
	return p.Source, nil
}

// validate returns an error that follows the prompt's field.
func (p Prompt) validate() error {
	set := map[string]bool{"file": p.File != "", "dataset": p.Dataset != "", "trace": p.Trace != "",
		"conversation": p.Conversation != nil}
	kinds := slices.DeleteFunc([]string{"file", "dataset", "trace", "conversation"},
		func(kind string) bool { return !set[kind] })
	switch {
	case reflect.ValueOf(p).IsZero():
		return errors.New(": empty")
	case p.Text != "" && !reflect.ValueOf(p.Source).IsZero():
		return errors.New(": text cannot be combined with other sources; make them separate entries")
	case p.Text != "":
		return nil
	case len(kinds) == 0:
		return errors.New(".file: missing; set text, file, dataset, trace or conversation")
	case len(kinds) > 1:
		return fmt.Errorf(".%s: cannot be combined with %s; remove one", kinds[1], kinds[0])
	case p.Field != "" && p.Dataset == "":
		return fmt.Errorf(".field: requires dataset, not %s", kinds[0])
	case p.Limit != 0 && p.Dataset == "" && p.Trace == "":
		return fmt.Errorf(".limit: requires dataset or trace, not %s", kinds[0])
	case p.Limit < 0 || p.Limit > mostRequests:
		return fmt.Errorf(".limit: %d is out of range; use 1 to %d", p.Limit, mostRequests)
	case p.Conversation != nil && len(p.Conversation) == 0:
		return errors.New(".conversation: empty")
	}
	if i := slices.Index(p.Conversation, ""); i >= 0 {
		return fmt.Errorf(".conversation[%d]: empty", i)
	}
	return nil
}
