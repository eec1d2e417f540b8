package tokenizer

import (
	"strings"
	"sync"

	"github.com/dlclark/regexp2"

	"llmparity/internal/models/gguf"
)

// Rules by which pre-tokenizers cut text into words. With case ignored, 's also matches 'ſ.
const (
	Digit        = `\p{N}`
	GPT2         = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	wordsOr      = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|`
	orTheRest    = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	Llama3       = wordsOr + `\p{N}{1,3}` + orTheRest
	Qwen2        = wordsOr + Digit + orTheRest
	upper        = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lower        = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	GPT4o        = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + upper +
		`+` + lower + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// rules has the rules of each pre-tokenizer. Each cuts the pieces that the one before it leaves.
var rules = sync.OnceValue(func() map[string][]*regexp2.Regexp {
	all := map[string][]*regexp2.Regexp{}
	for pre, list := range map[string][]string{gguf.PreGPT2: {GPT2}, gguf.PreSmolLM: {Digit, GPT2},
		gguf.PreLlama3: {Llama3}, gguf.PreQwen2: {Qwen2}, gguf.PreDBRX: {Llama3}, gguf.PreGPT4o: {GPT4o}} {
		for _, rule := range list {
			rule = strings.ReplaceAll(rule, "(?i:", "(?i:'ſ|") // regexp2 compares lower case
			all[pre] = append(all[pre], regexp2.MustCompile(rule, regexp2.None))
		}
	}
	return all
})

// Words cuts a text into words by the rules of a pre-tokenizer, such as gguf.PreGPT2.
func Words(text, pre string) []string {
	words := []string{text}
	for _, rule := range rules()[pre] {
		words, _ = Isolate(words, rule) // without a time limit, matching does not fail
	}
	return words
}

// Isolate cuts texts into the matches of a rule and what is between them. Invalid UTF-8 stays as it is.
func Isolate(texts []string, rule *regexp2.Regexp) (words []string, err error) {
	for _, text := range texts {
		take := func(runes int) {
			end := len(text)
			for i := range text {
				if runes--; runes < 0 {
					end = i
					break
				}
			}
			if end > 0 {
				words, text = append(words, text[:end]), text[end:]
			}
		}
		at := 0
		m, err := rule.FindStringMatch(text)
		for ; m != nil && err == nil; m, err = rule.FindNextMatch(m) {
			take(m.Index - at)
			take(m.Length)
			at = m.Index + m.Length
		}
		if err != nil {
			return nil, err
		}
		take(len(text))
	}
	return words, nil
}
