package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"llmparity/internal/fault"
	"llmparity/internal/plan"
)

// longestPrompt bounds files that are prompts: no context here has room for more.
const longestPrompt = 16 << 20

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
	f, err := os.Open(path)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "", "the prompt can't be read")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longestPrompt+1))
	switch {
	case err == nil && len(text) > longestPrompt:
		err = errors.New("it is longer than 16 MiB")
	case err == nil && !utf8.Valid(text):
		err = errors.New("it is not UTF-8")
	}
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "", "the prompt %s", path)
	}
	prompt := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if prompt == "" {
		return "", fault.New(fault.Usage, "", "the prompt %s is empty", path)
	}
	return prompt, nil
}
