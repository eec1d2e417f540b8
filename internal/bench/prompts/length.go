// Package prompts makes prompts: of an exact number of tokens, from data sets, from traces, and from conversations.
//
// Prompts of a given length are random words: they show what a length costs, not what a model knows. Files are read
// whole, up to a limit, and errors name the line.
package prompts

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// MostTokens is more than any context holds.
const MostTokens = 1 << 21

// Maker makes texts of exact lengths for a tokenizer. It is safe for concurrent use.
type Maker struct {
	count func(text string) (int, error) // tokens of a prompt, with those that an engine puts before it
	added int                            // how many tokens an engine puts before a text
	same  func(text string, n int) bool  // whether n tokens have the text; nil: only their number is known
	first []string                       // words that are one token at the start of a text
	next  []string                       // words that are one token after another word, with the separator
	err   error                          // of count, while words are sought
}

// mostWords limits the words: enough for different texts, few enough to find quickly.
const mostWords = 4096

// NewMaker finds words that are single tokens of a vocabulary.
func NewMaker(t *tokenizer.Tokenizer) (*Maker, error) {
	m := &Maker{count: func(text string) (int, error) { return len(t.Prompt(text)), nil },
		same: func(text string, n int) bool {
			ids := t.Encode(text)
			return len(ids) == n && t.Decode(ids) == text
		}}
	if t.AddBOS {
		m.added = 1
	}
	return m.learn(func(yield func(string) bool) {
		for id := range t.Tokens {
			if word, ok := wordOf(t, id); ok && !yield(word) {
				return
			}
		}
	}, "0123456789.,;:!?abcdefghijklmnopqrstuvwxyz")
}

// usual are words that are single tokens of most vocabularies.
var usual = strings.Fields("the of and to in is it for on with as was at by from or that this are be have not but all " +
	"one new more out time up year day way man world life hand part place work home")

// NewCounted finds words that are single tokens for somebody who only counts the tokens of a prompt.
func NewCounted(count func(text string) (int, error)) (*Maker, error) {
	m := &Maker{count: count}
	least := MostTokens
	for _, text := range []string{"a", "1", "the"} {
		n, err := count(text)
		if err != nil {
			return nil, err
		}
		least = min(least, n)
	}
	m.added = max(least-1, 0)
	return m.learn(slices.Values(usual), "0123456789")
}

// learn tries words, and characters if there are few words.
func (m *Maker) learn(words iter.Seq[string], characters string) (*Maker, error) {
	seen := map[string]bool{} // a word with a space before it is another token
	for word := range words {
		if seen[word] {
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
		m.next = append(m.next, m.letters(characters)...)
	}
	if m.err != nil {
		return nil, m.err
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
	if err := m.Check(n); err != nil {
		return "", err
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	var text strings.Builder
	which := seed + scattered(uint64(n))
	text.WriteString(m.first[which%uint64(len(m.first))])
	which /= uint64(len(m.first))
	for range n - m.added - 1 {
		if which > 0 { // the rest of the seed
			text.WriteString(m.next[which%uint64(len(m.next))])
			which /= uint64(len(m.next))
			continue
		}
		text.WriteString(m.next[random.IntN(len(m.next))])
	}
	got, err := m.count(text.String())
	if err == nil && got != n { // words were only checked in pairs
		return m.mended(text.String(), n, got)
	}
	return text.String(), err
}

// scattered maps related numbers to unrelated ones, because lengths are mostly powers of two.
func scattered(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// Check refuses a length that no text has.
func (m *Maker) Check(n int) error {
	if n > m.added && n <= MostTokens {
		return nil
	}
	return fault.New(fault.Usage, "", "can't generate a prompt of %d tokens for this model: from %d to %d are possible",
		n, m.added+1, MostTokens)
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
		var err error
		if got, err = m.count(text); err != nil {
			return "", err
		}
	}
	if got != n {
		return "", fault.New(fault.Usage, "use another length, or texts as prompts",
			"can't find a text of %d tokens for this model", n)
	}
	return text, nil
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
	if m.same != nil {
		return m.same(text, n)
	}
	got := 0
	if m.err == nil {
		got, m.err = m.count(text)
	}
	return m.err == nil && got == m.added+n
}

// follows reports whether a word is one token after and before other words, and after itself.
func (m *Maker) follows(word string) bool {
	return m.is(m.first[0]+word, 2) && m.is(m.first[0]+word+word+word, 4)
}

// letters returns characters that never merge with one another.
func (m *Maker) letters(candidates string) []string {
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
