// Package prompts makes the texts that engines are asked to go on from: of an exact number of tokens, from data sets, from traces, from
// conversations.
package prompts

import (
	"llmparity/internal/fault"
	"llmparity/internal/tiny/reference"
)

// OfLength makes a text of exactly n tokens, with what an engine puts before it; another seed makes another text, from its first word on.
func OfLength(t *reference.Tokenizer, n int, seed uint64) (string, error) {
	return "", fault.New(fault.Usage, "", "prompts of a number of tokens can't be made yet")
}
