package plan

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// Source is a prompt that is not written in the plan. Exactly one of File, Dataset, Trace and Conversation is set.
// Paths are relative to the current folder; the files are read when the plan is resolved.
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

// validate returns an error that begins with a field.
func (s Source) validate() error {
	var kinds []string
	for _, k := range []struct {
		name string
		is   bool
	}{{"file", s.File != ""}, {"dataset", s.Dataset != ""}, {"trace", s.Trace != ""},
		{"conversation", s.Conversation != nil}} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	switch {
	case len(kinds) == 0:
		return errors.New("file: missing; set text, file, dataset, trace or conversation")
	case len(kinds) > 1:
		return fmt.Errorf("%s: cannot be combined with %s; remove one", kinds[1], kinds[0])
	case s.Field != "" && s.Dataset == "":
		return fmt.Errorf("field: requires dataset, not %s", kinds[0])
	case s.Limit != 0 && s.Dataset == "" && s.Trace == "":
		return fmt.Errorf("limit: requires dataset or trace, not %s", kinds[0])
	case s.Limit < 0 || s.Limit > mostRequests:
		return fmt.Errorf("limit: %d is out of range; use 1 to %d", s.Limit, mostRequests)
	case s.Conversation != nil && len(s.Conversation) == 0:
		return errors.New("conversation: empty")
	}
	for i, text := range s.Conversation {
		if text == "" {
			return fmt.Errorf("conversation[%d]: empty", i)
		}
	}
	return nil
}

// prompts are texts and sources, in any order.
type prompts struct {
	texts   []string
	sources []Source
}

// prompt is an entry: a text, or a group that may have one.
type prompt struct {
	Text   *string `yaml:"text,omitempty"`
	Source `yaml:",inline"`
}

func (p *prompt) read(r *reader, n ast.Node, path string) error {
	if grouped(n) {
		if err := r.group(n, reflect.ValueOf(p).Elem(), path); err != nil {
			return err
		}
	} else if text, ok := single(n); ok {
		p.Text = &text
	} else {
		return mistyped(n, path, "text")
	}
	switch {
	case p.Text == nil:
		return r.placed(n, path, p.Source.validate())
	case *p.Text == "":
		return wrong(begin(n), path, "empty")
	case !reflect.DeepEqual(p.Source, Source{}):
		return wrong(begin(n), path, "text cannot be combined with other sources; make them separate entries")
	}
	return nil
}

func (p *prompts) read(r *reader, n ast.Node, path string) error {
	var all []prompt
	if err := r.list(n, reflect.ValueOf(&all).Elem(), path); err != nil {
		return err
	}
	for _, one := range all {
		if one.Text != nil {
			p.texts = append(p.texts, *one.Text)
		} else {
			p.sources = append(p.sources, one.Source)
		}
	}
	return nil
}
