package reference

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split cuts a text into the words inside which BPE merges, as GPT-2 does:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// With digits, each digit is first cut out as a word of its own. Go's regexp has no look-ahead, hence the code.
func Split(text string, digits bool) []string {
	if !digits {
		return split(text)
	}
	var words []string
	for text != "" {
		i := strings.IndexFunc(text, unicode.IsNumber)
		if i < 0 {
			i = len(text)
		}
		words = append(words, split(text[:i])...)
		text = text[i:]
		if text != "" {
			_, n := utf8.DecodeRuneInString(text)
			words = append(words, text[:n])
			text = text[n:]
		}
	}
	return words
}

func split(text string) []string {
	var words []string
	for text != "" {
		n := wordLength(text)
		words = append(words, text[:n])
		text = text[n:]
	}
	return words
}

func wordLength(text string) int {
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
	if unicode.IsSpace(first) {
		return spaces(text)
	}
	class := classOf(first)
	n := strings.IndexFunc(text[start:], func(r rune) bool { return classOf(r) != class })
	if n < 0 {
		return len(text)
	}
	return start + n
}

// spaces is a run of white space; its last character is left to the word that follows, unless it is the run.
func spaces(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
	if end < 0 {
		return len(text)
	}
	_, last := utf8.DecodeLastRuneInString(text[:end])
	if end > last {
		return end - last
	}
	return end
}

func classOf(r rune) int {
	switch {
	case unicode.IsSpace(r):
		return 0
	case unicode.IsLetter(r):
		return 1
	case unicode.IsNumber(r):
		return 2
	}
	return 3
}
