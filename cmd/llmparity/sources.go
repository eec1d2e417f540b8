package main

import (
	"strings"

	"llmparity/internal/plan"
	"llmparity/internal/prompts"
	"llmparity/internal/record"
)

// sourced reads a prompt that stands in a file of its own.
func (r *resolver) sourced(shape *plan.Shape) error {
	s := shape.Source
	switch {
	case s == nil || shape.Prompt != "":
		return nil
	case s.File != "":
		read := r.source(s)
		shape.Prompt = read.text
		return read.err
	}
	return r.readSource(shape)
}

// sourceKey is what is read of a file.
type sourceKey struct {
	file, dataset, trace, field string
	limit                       int
}

// readText is what a file says.
type readText struct {
	text  string
	items []prompts.Item
	trace []record.Arrival
	err   error
}

// source reads a file once, whichever cells ask what stands in it.
func (r *resolver) source(s *plan.Source) (read readText) {
	if s == nil || s.Conversation != nil {
		return read
	}
	key := sourceKey{s.File, s.Dataset, s.Trace, s.Field, s.Limit}
	read, known := r.sources[key]
	if known {
		return read
	}
	switch {
	case s.File != "":
		read.text, read.err = promptFile(s.File)
	case s.Dataset != "":
		read.items, read.err = prompts.ReadData(s.Dataset, s.Field, s.Limit)
	case s.Trace != "":
		read.trace, read.err = prompts.ReadTrace(s.Trace, s.Limit)
	}
	r.sources[key] = read
	return read
}

// promptFile reads a prompt. The line break that editors put at a file's end is no part of it.
func promptFile(path string) (string, error) {
	text, err := prompts.ReadText(path)
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err
}
