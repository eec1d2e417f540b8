package vocab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"golang.org/x/text/unicode/norm"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// step is a step of tokenizer.json's normalizer or pre_tokenizer. Which fields count depends on the type.
type step struct {
	Type          string `json:"type"`
	Normalizers   []step `json:"normalizers"`
	PreTokenizers []step `json:"pretokenizers"`
	Pattern       struct {
		Regex  *string `json:"Regex"`
		String *string `json:"String"`
	} `json:"pattern"`
	Content     string `json:"content"`
	Prepend     string `json:"prepend"`
	Behavior    string `json:"behavior"`
	Invert      bool   `json:"invert"`
	PrefixSpace bool   `json:"add_prefix_space"`
	UseRegex    *bool  `json:"use_regex"` // missing: true
	Digits      bool   `json:"individual_digits"`
}

// steps returns the steps of a part of a file that was read.
func steps(part any) []step {
	if s, ok := part.(*step); ok && s.Type != "" { // neither null nor missing
		return s.flat()
	}
	return nil
}

// flat returns the steps of a sequence.
func (s *step) flat() (list []step) {
	if s.Type != "Sequence" {
		return []step{*s}
	}
	for _, inner := range slices.Concat(s.Normalizers, s.PreTokenizers) {
		list = append(list, inner.flat()...)
	}
	return list
}

// sample is the text by whose words a pre-tokenizer is recognised: contractions, capitals inside words, numbers of all
// lengths, marks, scripts with and without spaces, emoji, punctuation before letters and line ends, and white space.
const sample = "Hello world  it's IT'S we'll WE'LL they'Ve he'd 'tis I'm don't\n\ncamelCaseWord HTTPServer snake_case x1y22z " +
	"0 12 123 1234 12345 1234567 3.14159 1,234 $5 ٣٤٥ Ⅷ½² naïve café cafe\u0301 Straße ÀÉÎ Привет мир γειά σου שלום עולם " +
	"مرحبا हिन्दी ไทยภาษา 中文测试，中文。 日本語カタカナ 한국어 한국 👍🏽 😀😀 \u200d a\u00a0b\u3000c (a)[b]{c} <d> \"e\" #f @g &h " +
	"--i *j* /k/ ... !? ?!\n!\r\n;\n\n x = y + 1;\t\tz\t \n  \n\t indented\r\n\r\n\n   four    spaces     \u2028end   "

// errWords is why a pre-tokenizer is not recognised.
var errWords = errors.New("it cuts text into other words than " + strings.Join(gguf.PreTokenizers(), ", "))

// recognise returns the pre-tokenizer that cuts the sample into the same words as these steps, and that also takes
// words that are tokens as they are, or also does not.
func recognise(normalizer, pre []step, whole bool) (string, error) {
	text := sample
	for _, s := range normalizer {
		if s.Type != "NFC" {
			return "", fmt.Errorf("normalizer %s is not supported", s.Type)
		}
		text = norm.NFC.String(text)
	}
	defer regexp2.StopTimeoutClock() // it would go on for seconds
	words := []string{text}
	for _, s := range pre {
		rule, err := s.rule()
		if err != nil {
			return "", err
		}
		re, err := regexp2.Compile(rule, regexp2.None)
		if err != nil {
			return "", fmt.Errorf("pre_tokenizer: %w", err)
		}
		re.MatchTimeout = 10 * time.Second // the file is not ours
		if words, err = tokenizer.Isolate(words, re); err != nil {
			return "", fmt.Errorf("pre_tokenizer %s: %w", s.Type, err)
		}
	}
	err := errWords
	for _, name := range gguf.PreTokenizers() {
		own, v := sample, gguf.Vocabulary{Pre: name}
		if v.Composes() {
			own = norm.NFC.String(own)
		}
		switch same := slices.Equal(words, tokenizer.Words(own, name)); {
		case same && v.WholeWords() == whole:
			return name, nil
		case same:
			err = fmt.Errorf("it cuts text as %s does, whose ignore_merges is %t, but its own is %t", name, !whole, whole)
		}
	}
	return "", err
}

// rule returns what the step finds in a text, to cut it there.
func (s step) rule() (string, error) {
	switch {
	case s.Type == "ByteLevel" && s.PrefixSpace:
		return "", errors.New("pre_tokenizer ByteLevel adds a space before texts, which is not supported")
	case s.Type == "ByteLevel" && s.UseRegex != nil && !*s.UseRegex:
		return `(?!)`, nil // nothing
	case s.Type == "ByteLevel":
		return tokenizer.GPT2, nil
	case s.Type == "Digits" && s.Digits:
		return tokenizer.Digit, nil
	case s.Type == "Digits":
		return tokenizer.Digit + "+", nil
	case s.Type == "Split" && s.Pattern.Regex != nil &&
		(s.Behavior == "Isolated" && !s.Invert || s.Behavior == "Removed" && s.Invert):
		return *s.Pattern.Regex, nil
	case s.Type == "Split":
		return "", fmt.Errorf("pre_tokenizer Split (%s) is not supported", s.Behavior)
	}
	return "", fmt.Errorf("pre_tokenizer %s is not supported", s.Type)
}
