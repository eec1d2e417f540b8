package main

import (
	"strings"

	"llmparity/internal/plan"
	"llmparity/internal/prompts"
)

// sourced reads a prompt that stands in a file of its own.
func (r *resolver) sourced(shape *plan.Shape) error {
	s := shape.Source
	switch {
	case s == nil || shape.Prompt != "":
		return nil
	case s.File != "":
		text, err := promptFile(s.File)
		shape.Prompt = text
		return err
	}
	return readSource(shape)
}

// promptFile reads a prompt. The line break that editors put at a file's end is no part of it.
func promptFile(path string) (string, error) {
	text, err := prompts.ReadText(path)
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err
}
