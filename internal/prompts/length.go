// Package prompts makes prompts: of an exact number of tokens, from data sets, from traces, and from conversations.
//
// Prompts of a given length are random words: they show what a length costs, not what a model knows. Files are read
// whole, up to a limit, and errors name the line.
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

// Maker makes texts of exact lengths for a tokenizer. It is safe for concurrent use.
type Maker struct {
	tokens *tokenizer.Tokenizer
	first  []string // words that are one token at the start of a text
	next   []string // words that are one token after another word, with the separator
}

// mostWords limits the words: enough for different texts, few enough to find quickly.
const mostWords = 4096

// NewMaker finds words that are single tokens of a vocabulary.
func NewMaker(t *tokenizer.Tokenizer) (*Maker, error) {
	m := &Maker{tokens: t}
	seen := map[string]bool{} // a word with a space before it is another token
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
	if len(m.next) < fewWords { // hardly any tokens with spaces: use single letters
		m.next = append(m.next, m.letters()...)
	}
	if len(m.first) == 0 || len(m.next) == 0 {
		return nil, fault.New(fault.BadModel, "use texts as prompts",
			"can't generate prompts of a given length: the vocabulary has no tokens that stay separate in a text")
	}
	return m, nil
}

// fewWords are too few for different texts.
const fewWords = 8

// OfLength makes a text of exactly n tokens, including what an engine puts before it. Seeds that differ by less than
// some hundred differ in the first word, if the vocabulary allows it, so a prompt cache never has the beginning of
// another text. Nor is a text the beginning of a longer one. Very short texts are shared by seeds.
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
		if which > 0 { // the rest of the seed
			text.WriteString(m.next[which%uint64(len(m.next))])
			which /= uint64(len(m.next))
			continue
		}
		text.WriteString(m.next[random.IntN(len(m.next))])
	}
	if got := len(m.tokens.Prompt(text.String())); got != n { // words were only checked in pairs
		return m.mended(text.String(), n, got)
	}
	return text.String(), nil
}

// scattered maps related numbers to unrelated ones, because lengths are mostly powers of two.
func scattered(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func (m *Maker) impossible(n int) error {
	return fault.New(fault.Usage, "", "can't generate a prompt of %d tokens for this model: from %d to %d are possible",
		n, m.added()+1, MostTokens)
}

// mended adds or removes words at the end until the count is right.
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
		return "", fault.New(fault.Usage, "use another length, or texts as prompts",
			"can't find a text of %d tokens for this model", n)
	}
	return text, nil
}

// added returns how many tokens an engine puts before a text.
func (m *Maker) added() int {
	if m.tokens.AddBOS {
		return 1
	}
	return 0
}

// wordOf returns the text of a token that is a plain word, without a leading space.
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

// is reports whether a text has n tokens that decode to it.
func (m *Maker) is(text string, n int) bool {
	ids := m.tokens.Encode(text)
	return len(ids) == n && m.tokens.Decode(ids) == text
}

// follows reports whether a word is one token after and before other words, and after itself.
func (m *Maker) follows(word string) bool {
	return m.is(m.first[0]+word, 2) && m.is(m.first[0]+word+word+word, 4)
}

// letters returns characters that never merge with one another.
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
