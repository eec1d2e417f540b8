package plan

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

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

// prompt is an entry that is a group.
type prompt struct {
	Text   *string `yaml:"text,omitempty"`
	Source `yaml:",inline"`
}

func (p *prompts) read(r *reader, n ast.Node, path string) error {
	entries := listed(n)
	var at, after []place // of texts, and of sources, which come after them here
	for i, e := range entries {
		here := fmt.Sprintf("%s[%d]", path, i)
		value, done, err := r.follow(e, here)
		if err != nil {
			return err
		}
		done()
		switch value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			var g prompt
			if err := r.value(e, reflect.ValueOf(&g).Elem(), here); err != nil {
				return err
			}
			if g.Text == nil {
				p.sources, after = append(p.sources, g.Source), append(after, place{line(e), here})
				continue
			}
			if !reflect.DeepEqual(g.Source, Source{}) {
				return wrong(e, here, "text says what is asked; leave out the others, or make another entry of them")
			}
			p.texts, at = append(p.texts, *g.Text), append(at, place{line(e), here})
		default:
			var text string
			if err := r.value(e, reflect.ValueOf(&text).Elem(), here); err != nil {
				return err
			}
			p.texts, at = append(p.texts, text), append(at, place{line(e), here})
		}
	}
	for known := range r.places { // entries' own numbers
		if strings.HasPrefix(known, path+"[") {
			delete(r.places, known)
		}
	}
	for i, l := range append(at, after...) {
		r.places.put(fmt.Sprintf("%s[%d]", path, i), l.line, path, l.name)
	}
	return nil
}
