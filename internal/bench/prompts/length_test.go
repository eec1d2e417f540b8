package prompts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/models/tokenizer/tokenizertest"
)

// vocabularies returns the tiny model's and one of every kind, with and without BOS.
func vocabularies(t testing.TB) map[string]gguf.Vocabulary {
	all := map[string]gguf.Vocabulary{}
	for _, k := range tokenizertest.Kinds(t) {
		all[k.Name] = k.Vocabulary
		other := k.Vocabulary
		other.AddBOS = !other.AddBOS
		all[k.Name+", BOS the other way"] = other
	}
	file, err := gguf.Open(enginetest.TinyModel(t).Path)
	check.Err(t, err)
	defer file.Close()
	if all["tiny"], err = file.Vocabulary(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOfLength(t *testing.T) {
	for name, v := range vocabularies(t) {
		tokens := tokenizer.New(v)
		m, err := NewMaker(tokens)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Logf("%s: %d words at the beginning, %d behind", name, len(m.first), len(m.next))
		for _, n := range []int{2, 3, 4, 17, 256, 2049} {
			seen := map[string]uint64{}
			for seed := range uint64(5) {
				text, err := m.OfLength(n, seed)
				if err != nil {
					t.Errorf("%s: %d tokens: %v", name, n, err)
					break
				}
				ids := tokens.Prompt(text)
				if len(ids) != n {
					t.Errorf("%s: want %d tokens, %.60q has %d", name, n, text, len(ids))
				}
				if tokens.AddBOS {
					ids = ids[1:]
				}
				if back := tokens.Decode(ids); back != text {
					t.Errorf("%s: %.60q comes back as %.60q", name, text, back)
				}
				if other, twice := seen[text]; twice && n > 4 {
					t.Errorf("%s: seeds %d and %d give the same text of %d tokens", name, other, seed, n)
				}
				seen[text] = seed
				if again, _ := m.OfLength(n, seed); again != text {
					t.Errorf("%s: seed %d gives two texts", name, seed)
				}
			}
		}
	}
}

// A server that keeps the prompt of one length must not reuse it for another length.
func TestLengthsShareNoBeginning(t *testing.T) {
	tokens := tokenizer.New(vocabularies(t)["tiny"])
	m, err := NewMaker(tokens)
	check.Err(t, err)
	var before [][]int
	for n := 16; n <= 4096; n *= 2 {
		text, err := m.OfLength(n, 42)
		check.Err(t, err)
		ids := tokens.Encode(text)
		for _, other := range before {
			alike := 0
			for alike < len(other) && other[alike] == ids[alike] {
				alike++
			}
			if alike > 2 { // by chance
				t.Errorf("texts of %d and %d tokens have the first %d in common", len(other), len(ids), alike)
			}
		}
		before = append(before, ids)
	}
}

// Somebody who only counts tokens gets prompts of exact lengths, that begin differently.
func TestCountedPromptsHaveTheirLength(t *testing.T) {
	for name, v := range vocabularies(t) {
		tokens, asked := tokenizer.New(v), 0
		m, err := NewCounted(func(text string) (int, error) {
			asked++
			return len(tokens.Prompt("<template> " + text)), nil
		})
		check.Err(t, err)
		if asked > 400 {
			t.Errorf("%s: %d counts before the first prompt", name, asked)
		}
		seen := map[string]bool{}
		for n := m.added + 3; n < 300; n += 37 {
			text, err := m.OfLength(n, 3)
			check.Err(t, err)
			if got := len(tokens.Prompt("<template> " + text)); got != n || seen[text] {
				t.Errorf("%s: %q has %d tokens, want %d", name, text, got, n)
			}
			seen[text] = true
		}
	}
	lost := errors.New("connection lost")
	if _, err := NewCounted(func(string) (int, error) { return 0, lost }); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}

func ofLength(t *tokenizer.Tokenizer, n int, seed uint64) (string, error) {
	m, err := NewMaker(t)
	if err != nil {
		return "", err
	}
	return m.OfLength(n, seed)
}

func TestImpossibleLengthsAreRefused(t *testing.T) {
	for name, v := range vocabularies(t) {
		tokens := tokenizer.New(v)
		least := 1
		if tokens.AddBOS {
			least = 2
		}
		for _, n := range []int{-1, 0, least - 1, MostTokens + 1} {
			want := fmt.Sprintf("from %d to %d are possible", least, MostTokens)
			if _, err := ofLength(tokens, n, 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %d tokens: %v", name, n, err)
			}
		}
		if text, err := ofLength(tokens, least, 1); err != nil || len(tokens.Prompt(text)) != least {
			t.Errorf("%s: the least, %d tokens: %q, %v", name, least, text, err)
		}
	}
}

// A vocabulary may have single characters only, or a single token.
func TestPoorVocabularies(t *testing.T) {
	letters := gguf.Vocabulary{Pre: gguf.PreGPT2, BOS: -1, EOS: -1}
	for c := 'a'; c <= 'z'; c++ {
		letters.Tokens, letters.Types = append(letters.Tokens, string(c)), append(letters.Types, gguf.TokenNormal)
	}
	tokens := tokenizer.New(letters)
	text, err := ofLength(tokens, 100, 7)
	if err != nil || len(tokens.Prompt(text)) != 100 {
		t.Errorf("letters: %q, %v", text, err)
	}
	none := gguf.Vocabulary{Pre: gguf.PreGPT2, BOS: -1, EOS: -1, Tokens: []string{"Å"},
		Types: []int32{gguf.TokenNormal}}
	if text, err := ofLength(tokenizer.New(none), 100, 7); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("no letters: %q, %v", text, err)
	}
}
