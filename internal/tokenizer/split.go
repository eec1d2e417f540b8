package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"llmparity/internal/gguf"
)

// Words cuts a text into words by the rule of a pre-tokenizer, such as gguf.PreGPT2.
func Words(text, pre string) []string {
	switch pre {
	case gguf.PreLlama3:
		return cut(text, func(text string) int { return llama3(text, 3) })
	case gguf.PreQwen2:
		return cut(text, func(text string) int { return llama3(text, 1) })
	}
	return Split(text, pre == gguf.PreSmolLM)
}

// Split cuts a text into words as GPT-2 does:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// With digits, each digit is first cut out as a word of its own. Go's regexp has no look-ahead.
func Split(text string, digits bool) []string {
	if !digits {
		return cut(text, gpt2)
	}
	var words []string
	for text != "" {
		i := strings.IndexFunc(text, unicode.IsNumber)
		if i < 0 {
			i = len(text)
		}
		words = append(words, cut(text[:i], gpt2)...)
		text = text[i:]
		if text != "" {
			_, n := utf8.DecodeRuneInString(text)
			words = append(words, text[:n])
			text = text[n:]
		}
	}
	return words
}

// cut removes words from the front of a text until none is left.
func cut(text string, length func(text string) int) []string {
	var words []string
	for text != "" {
		n := length(text)
		words = append(words, text[:n])
		text = text[n:]
	}
	return words
}

func gpt2(text string) int {
	for _, ending := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(text, ending) {
			return len(ending)
		}
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 {
		start = 1
	}
	first, _ := utf8.DecodeRuneInString(text[start:])
	if classOf(first) == space {
		return spaces(text)
	}
	return start + run(text[start:], classOf(first))
}

// llama3 returns the length of the first word by Llama 3's rule, with at most that many digits in a word:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func llama3(text string, digits int) int {
	if n := contraction(text); n > 0 {
		return n
	}
	first, n := utf8.DecodeRuneInString(text)
	class := classOf(first)
	if class == letter {
		return run(text, letter)
	}
	if class == number {
		return firstOf(text, run(text, number), digits)
	}
	if letters := run(text[n:], letter); letters > 0 && first != '\r' && first != '\n' {
		return n + letters
	}
	start := 0
	if first == ' ' {
		start = 1
	}
	if others := run(text[start:], other); others > 0 {
		end := start + others
		return end + len(text[end:]) - len(strings.TrimLeft(text[end:], "\r\n"))
	}
	if newline := strings.LastIndexAny(text[:run(text, space)], "\r\n"); newline >= 0 {
		return newline + 1
	}
	return spaces(text)
}

// contraction returns the length of an English contraction at the start of a text, in any case, or 0.
func contraction(text string) int {
	rest, found := strings.CutPrefix(text, "'")
	if !found {
		return 0
	}
	for _, ending := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
		n := firstOf(rest, len(rest), len(ending))
		if strings.EqualFold(rest[:n], ending) { // matches 'ſ' as s, like the rule
			return 1 + n
		}
	}
	return 0
}

// firstOf returns the length of at most n runes and end bytes of a text.
func firstOf(text string, end, n int) int {
	for i := range text[:end] {
		if n == 0 {
			return i
		}
		n--
	}
	return end
}

// spaces returns the length of a run of white space without its last character, which belongs to the next word. A run
// of one, and a run at the end, is returned whole.
func spaces(text string) int {
	end := run(text, space)
	if end == len(text) {
		return end
	}
	_, last := utf8.DecodeLastRuneInString(text[:end])
	if end > last {
		return end - last
	}
	return end
}

// run returns the length of the leading runes of a class.
func run(text string, c class) int {
	n := strings.IndexFunc(text, func(r rune) bool { return classOf(r) != c })
	if n < 0 {
		return len(text)
	}
	return n
}

type class int

const (
	other class = iota
	space
	letter
	number
)

func classOf(r rune) class {
	switch {
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	}
	return other
}
