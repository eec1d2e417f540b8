package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mergeSlowly is a quadratic reference.
func mergeSlowly(text string, score func(left, right string) (float64, bool)) []string {
	parts := strings.Split(text, "")
	for {
		best, highest := -1, 0.0
		for i := range len(parts) - 1 {
			if s, ok := score(parts[i], parts[i+1]); ok && (best < 0 || s > highest) {
				best, highest = i, s
			}
		}
		if best < 0 {
			return parts
		}
		parts[best] += parts[best+1]
		parts = slices.Delete(parts, best+1, best+2)
	}
}

// Few letters give overlapping joins and equal scores.
func TestMergeOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		scores := map[string]float64{}
		for range random.IntN(40) {
			var word strings.Builder
			for range 2 + random.IntN(4) {
				word.WriteByte("abc"[random.IntN(3)])
			}
			scores[word.String()] = float64(random.IntN(5))
		}
		score := func(left, right string) (float64, bool) {
			s, ok := scores[left+right]
			return s, ok
		}
		var text strings.Builder
		for range random.IntN(30) {
			text.WriteByte("abc"[random.IntN(3)])
		}
		if got, want := merge(text.String(), score), mergeSlowly(text.String(), score); !slices.Equal(got, want) {
			t.Fatalf("%q with %v: %q, want %q", text.String(), scores, got, want)
		}
	}
}
