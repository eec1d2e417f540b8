package plan

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// Source is a prompt that is not a text of the plan's own: exactly one of File, Dataset, Trace and Conversation is set.
// Who carries out the plan reads it: a plan has but names, from the folder in which the program runs.
type Source struct {
	File string `yaml:"file,omitempty"` // its whole text is the prompt
	// JSON, an object a line, each of which has a prompt for a request
	Dataset      string   `yaml:"dataset,omitempty"`
	Trace        string   `yaml:"trace,omitempty"`        // CSV or JSON of when requests come and how long they are
	Conversation []string `yaml:"conversation,omitempty"` // what is said to the model, turn by turn
	// of a data set's entries, with the prompt; empty: a usual one
	Field string `yaml:"field,omitempty"`
	Limit int    `yaml:"limit,omitempty"` // lines of a data set or a trace that are taken; 0: all
}

// validate gives an error that begins with the field's last name.
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
		return errors.New("file: it has no prompt: give text, file, dataset, trace or conversation")
	case len(kinds) > 1:
		return fmt.Errorf("%s: %s says what is asked, too; leave one out", kinds[1], kinds[0])
	case s.Field != "" && s.Dataset == "":
		return fmt.Errorf("field: a %s has none; it is a data set's", kinds[0])
	case s.Limit != 0 && s.Dataset == "" && s.Trace == "":
		return fmt.Errorf("limit: a %s has none; it is a data set's or a trace's", kinds[0])
	case s.Limit < 0 || s.Limit > mostRequests:
		return fmt.Errorf("limit: %d, from 1 to %d are possible", s.Limit, mostRequests)
	case s.Conversation != nil && len(s.Conversation) == 0:
		return errors.New("conversation: nothing is said in it")
	}
	for i, text := range s.Conversation {
		if text == "" {
			return fmt.Errorf("conversation[%d]: it is empty", i)
		}
	}
	return nil
}

// prompts are texts and sources as they are written: among one another.
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
		return mistyped(n, path, "a text")
	}
	switch {
	case p.Text == nil:
		return r.placed(n, path, p.Source.validate())
	case *p.Text == "":
		return wrong(begin(n), path, "it is empty")
	case !reflect.DeepEqual(p.Source, Source{}):
		return wrong(begin(n), path, "text says what is asked; leave out the others, or make another entry of them")
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
