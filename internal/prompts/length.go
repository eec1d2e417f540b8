// Package prompts makes the texts that engines are asked to go on from: of an exact number of tokens, from data sets,
// from traces, from conversations.
//
// It knows no engine. Texts of a number of tokens are words in no order, which mean nothing: they show what a length
// costs, not what a model knows. Files are read whole, up to a size, and every error of one says its line.
package prompts

import (
	"math/rand/v2"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/tokenizer"
)

// MostTokens is more than any context holds.
const MostTokens = 1 << 21

// Maker makes texts of exact lengths for one tokenizer. It may be used by several goroutines at once.
type Maker struct {
	tokens *tokenizer.Tokenizer
	first  []string // words that are one token at the beginning of a text
	next   []string // and behind another word; each begins with what parts them
}

// mostWords is how many words are looked for: enough for texts that differ, few enough that looking takes no time.
const mostWords = 4096

// NewMaker looks for the words that a vocabulary has as one token.
func NewMaker(t *tokenizer.Tokenizer) (*Maker, error) {
	m := &Maker{tokens: t}
	seen := map[string]bool{} // with a space before it a word is another token
	for id := range t.Tokens {
		word, ok := wordOf(t, id)
		if !ok || seen[word] {
			continue
		}
		seen[word] = true
		if len(m.first) < mostWords && m.is(word, 1) {
			m.first = append(m.first, word)
		}
		if len(m.next) < mostWords && len(m.first) > 0 && m.follows(" "+word) {
			m.next = append(m.next, " "+word)
		}
	}
	if len(m.next) < fewWords { // it has no spaces in its tokens, or hardly any: letters stand side by side
		m.next = append(m.next, m.letters()...)
	}
	if len(m.first) == 0 || len(m.next) == 0 {
		return nil, fault.New(fault.BadModel, "give texts as prompts",
			"no prompt of a number of tokens can be made: the model's vocabulary has no tokens that stay apart in a text")
	}
	return m, nil
}

// fewWords are too few for texts that differ.
const fewWords = 8

// OfLength makes a text of exactly n tokens, with what an engine puts before it. Another seed makes another text: those
// of seeds that lie less than some hundred apart differ in their very first word where the vocabulary has as many, so
// that no cache of prompts has a beginning of them. Nor is the text of a length the beginning of a longer one's. Of one
// or two tokens there are only so many texts, and seeds share them.
func OfLength(t *tokenizer.Tokenizer, n int, seed uint64) (string, error) {
	m, err := NewMaker(t)
	if err != nil {
		return "", err
	}
	return m.OfLength(n, seed)
}

// OfLength makes a text of exactly n tokens.
func (m *Maker) OfLength(n int, seed uint64) (string, error) {
	added := m.added()
	if n <= added || n > MostTokens {
		return "", m.impossible(n)
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	var text strings.Builder
	which := seed + scattered(uint64(n))
	text.WriteString(m.first[which%uint64(len(m.first))])
	which /= uint64(len(m.first))
	for range n - added - 1 {
		if which > 0 { // what the seed is beyond the first word
			text.WriteString(m.next[which%uint64(len(m.next))])
			which /= uint64(len(m.next))
			continue
		}
		text.WriteString(m.next[random.IntN(len(m.next))])
	}
	if got := len(m.tokens.Prompt(text.String())); got != n { // each word was looked at beside one other only
		return m.mended(text.String(), n, got)
	}
	return text.String(), nil
}

// scattered gives neighbours and multiples of one another numbers that have nothing in common: lengths are mostly
// powers of two.
func scattered(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func (m *Maker) impossible(n int) error {
	return fault.New(fault.Usage, "", "a prompt of %d tokens can't be made for this model: from %d to %d are possible",
		n, m.added()+1, MostTokens)
}

// mended leaves words out at the end, or adds some, until the count is right.
func (m *Maker) mended(text string, n, got int) (string, error) {
	for try := 0; try < 100 && got != n; try++ {
		for range n - got {
			text += m.next[try%len(m.next)]
		}
		for range got - n {
			at := strings.LastIndexByte(text, ' ')
			if at < 1 {
				break
			}
			text = text[:at]
		}
		got = len(m.tokens.Prompt(text))
	}
	if got != n {
		return "", fault.New(fault.Usage, "take another length, or give texts as prompts",
			"no text of %d tokens was found for this model", n)
	}
	return text, nil
}

// added is how many tokens an engine puts before a text.
func (m *Maker) added() int {
	if m.tokens.AddBOS {
		return 1
	}
	return 0
}

// wordOf is the text of a token that is a plain word, without the space that may stand before it.
func wordOf(t *tokenizer.Tokenizer, id int) (string, bool) {
	if t.Types[id] != gguf.TokenNormal {
		return "", false
	}
	word := strings.TrimPrefix(strings.TrimPrefix(t.Tokens[id], gguf.Space), gguf.ByteLevel(" "))
	if len(word) < 2 || len(word) > 12 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return "", false
	}
	return word, true
}

// is tells whether a text has so many tokens, which give it back.
func (m *Maker) is(text string, n int) bool {
	ids := m.tokens.Encode(text)
	return len(ids) == n && m.tokens.Decode(ids) == text
}

// follows tells whether a word is one token behind a word and before one, whatever they are: behind itself, too.
func (m *Maker) follows(word string) bool {
	return m.is(m.first[0]+word, 2) && m.is(m.first[0]+word+word+word, 4)
}

// letters are characters that never join with one another.
func (m *Maker) letters() []string {
	const candidates = "0123456789.,;:!?abcdefghijklmnopqrstuvwxyz"
	if len(m.first) == 0 {
		for _, c := range strings.Split(candidates, "") {
			if m.is(c, 1) {
				m.first = append(m.first, c)
			}
		}
	}
	if len(m.first) == 0 {
		return nil
	}
	var apart []string
	for _, c := range strings.Split(candidates, "") {
		if !m.is(m.first[0]+c+c, 3) {
			continue
		}
		joins := false
		for _, o := range apart {
			joins = joins || !m.is(m.first[0]+o+c+o, 4)
		}
		if !joins {
			apart = append(apart, c)
		}
	}
	return apart
}
