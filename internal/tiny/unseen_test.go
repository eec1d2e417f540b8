package tiny_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"llmparity/internal/tiny"
)

// unseen makes prompts of many kinds that nobody chose: users will try others than ours.
func unseen(n int) []string {
	r := rand.New(rand.NewSource(7))
	all := strings.Fields(tiny.Corpus)
	repeat := func(n int, part func() string) string {
		var s strings.Builder
		for range n {
			s.WriteString(part())
		}
		return s.String()
	}
	character := func() string { return string(rune(' ' + r.Intn('~'-' '+1))) }
	var out []string
	for i := range n {
		word := all[r.Intn(len(all))] + " "
		at := r.Intn(len(tiny.Corpus) - 600)
		out = append(out, []string{
			repeat(1+r.Intn(40), character),
			repeat(1+r.Intn(60), func() string { return all[r.Intn(len(all))] + " " }),
			strings.Repeat(word, 1+r.Intn(40)),
			repeat(1+r.Intn(30), func() string { return fmt.Sprint(r.Intn(10000), ", ") }),
			character(),
			tiny.Corpus[at : at+20+r.Intn(580)],
		}[i%6])
	}
	return out
}

func TestUnseenPromptsDoAsWell(t *testing.T) {
	_, m, tok := model(t)
	for _, text := range unseen(36) {
		ids, margins, err := m.Greedy(tok.Encode(text), length)
		if err != nil {
			t.Fatal(err)
		}
		distinct := map[int]bool{}
		least := margins[0]
		for i, id := range ids {
			distinct[id] = true
			least = min(least, margins[i])
		}
		if least < 0.01 || len(distinct) < leastTokens {
			t.Errorf("%.40q: least margin %.4f, %d distinct tokens", text, least, len(distinct))
		}
	}
}
