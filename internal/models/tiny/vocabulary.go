package tiny

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// corpus is a short text of our own, from which the tokenizer's merges are trained.
//
//go:embed corpus.txt
var corpus string

const (
	vocabSize = 512
	ascii     = '~' - ' ' + 1 + 2 // printable characters, newline and tab
	bos       = "<|endoftext|>"
	turn      = "<|im_start|>"
	eos       = "<|im_end|>"
	specials  = 3 // at the end of the vocabulary, where the tokenizers library expects them
)

// chatTemplate is ChatML without a default system message.
const chatTemplate = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}` +
	`{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// trained returns the tiny model's merges, cached because training takes a while.
var trained = sync.OnceValue(func() [][2]string { return merges(corpus, vocabSize-specials-ascii) })

// vocabulary returns the tokenizer: printable ASCII, newline and tab, then the merges of the corpus, then special
// tokens. Each token is valid UTF-8 by itself, so engines never hold one back.
func vocabulary() gguf.Vocabulary {
	bytes := []byte{}
	for b := byte(' '); b <= '~'; b++ {
		bytes = append(bytes, b)
	}
	v := byteLevel(vocabSize, gguf.PreGPT2, append(bytes, "\n\t"...), vocabSize)
	v.ChatTemplate = chatTemplate
	return v
}

// byteLevel returns a vocabulary of a size: tokens for single bytes, then at most so many merges of the corpus, then
// filler words, then special tokens.
func byteLevel(size int, pre string, bytes []byte, merges int) gguf.Vocabulary {
	v := gguf.Vocabulary{Pre: pre, BOS: size - 3, EOS: size - 1}
	for _, b := range bytes {
		v.Tokens = append(v.Tokens, string(gguf.ByteRune(b)))
	}
	for _, pair := range trained()[:min(merges, size-specials-len(v.Tokens))] {
		v.Tokens = append(v.Tokens, pair[0]+pair[1])
		v.Merges = append(v.Merges, pair[0]+" "+pair[1])
	}
	fill(&v, size-specials, string(gguf.ByteRune(' ')))
	v.Types = slices.Repeat([]int32{gguf.TokenNormal}, len(v.Tokens))
	for _, text := range []string{bos, turn, eos} {
		v.Tokens, v.Types = append(v.Tokens, text), append(v.Types, gguf.TokenControl)
	}
	return v
}

// merges trains n merges on a text, by frequency, then by byte order. Pairs whose token already exists are skipped.
func merges(text string, n int) [][2]string {
	counts := map[string]int{}
	for _, w := range tokenizer.Words(text, gguf.PreGPT2) {
		counts[gguf.ByteLevel(w)]++
	}
	type word struct {
		parts []string
		count int
	}
	var words []word
	for w, c := range counts {
		words = append(words, word{strings.Split(w, ""), c})
	}
	made := map[string]bool{}
	var out [][2]string
	for len(out) < n {
		pairs := map[[2]string]int{}
		for _, w := range words {
			for i := 0; i+1 < len(w.parts); i++ {
				pairs[[2]string{w.parts[i], w.parts[i+1]}] += w.count
			}
		}
		best, ok := mostFrequent(pairs, made)
		if !ok {
			panic("the corpus is too small for the vocabulary")
		}
		made[best[0]+best[1]] = true
		out = append(out, best)
		for i := range words {
			words[i].parts = join(words[i].parts, best)
		}
	}
	return out
}

func mostFrequent(pairs map[[2]string]int, made map[string]bool) (best [2]string, ok bool) {
	for p, n := range pairs {
		if made[p[0]+p[1]] {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(pairs[best], n), cmp.Compare(p[0], best[0]), cmp.Compare(p[1], best[1])) < 0 {
			best, ok = p, true
		}
	}
	return best, ok
}

// join merges every occurrence of a pair.
func join(parts []string, pair [2]string) []string {
	var out []string
	for i := 0; i < len(parts); i++ {
		if i+1 < len(parts) && parts[i] == pair[0] && parts[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
			continue
		}
		out = append(out, parts[i])
	}
	return out
}
