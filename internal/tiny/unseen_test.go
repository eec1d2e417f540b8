package tiny_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"llmparity/internal/tiny"
	"llmparity/internal/tiny/tinytest"
)

// unseen makes prompts of many kinds that nobody chose: users will try others than ours.
func unseen(n int) []tinytest.Prompt {
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
	var out []tinytest.Prompt
	for i := range n {
		word := all[r.Intn(len(all))] + " "
		at := r.Intn(len(tiny.Corpus) - 600)
		text := []string{
			repeat(1+r.Intn(40), character),
			repeat(1+r.Intn(60), func() string { return all[r.Intn(len(all))] + " " }),
			strings.Repeat(word, 1+r.Intn(40)),
			repeat(1+r.Intn(30), func() string { return fmt.Sprint(r.Intn(10000), ", ") }),
			character(),
			tiny.Corpus[at : at+20+r.Intn(580)],
		}[i%6]
		out = append(out, tinytest.Prompt{Name: "unseen", Text: text})
	}
	return out
}

func TestUnseenPromptsDoAsWell(t *testing.T) {
	f, _, _ := model(t)
	for _, a := range tinytest.Answers(t, f, unseen(36), length) {
		if a.Least() < 0.01 || a.Distinct() < leastTokens {
			t.Errorf("%.40q: least margin %.4f, %d distinct tokens", a.Text, a.Least(), a.Distinct())
		}
	}
}
