// Package nearest suggests the names that a mistyped name may stand for. It compares letters, not meanings.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Of returns up to n of names, the most similar first. The main criterion is the edit distance to the best matching
// part of a candidate, so that an incomplete name finds its completion; ties are broken by the distance to the whole.
// Case is ignored.
func Of(name string, names []string, n int) []string {
	type candidate struct {
		name          string
		within, whole int
	}
	name = strings.ToLower(name)
	candidates := make([]candidate, len(names))
	for i, other := range names {
		lower := strings.ToLower(other)
		candidates[i] = candidate{other, distance(name, lower, true), distance(name, lower, false)}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.within, b.within), cmp.Compare(a.whole, b.whole), cmp.Compare(a.name, b.name))
	})
	out := make([]string, 0, n)
	for _, c := range candidates[:min(n, len(candidates))] {
		out = append(out, c.name)
	}
	return out
}

// Question asks whether the most similar of names was meant: `did you mean "max_tokens"?`. It is empty if no name is
// similar.
func Question(name string, names []string) string {
	if best := Similar(name, names); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// Similar returns the most similar of names; empty if none is similar.
func Similar(name string, names []string) string {
	best := Of(name, names, 1)
	if len(best) == 0 {
		return ""
	}
	lower, other := strings.ToLower(name), strings.ToLower(best[0])
	part := len(lower) > 2 && distance(lower, other, true) <= len(lower)/5 || len(other) > 2 &&
		strings.Contains(lower, other)
	if limit := max(2, len(name)/3); !part && (len(name) < 3 || distance(lower, other, false) > limit) {
		return ""
	}
	return best[0]
}

// distance is the number of letters to insert, delete or change to get from a to b; with within, to any part of b.
func distance(a, b string, within bool) int {
	row := make([]int, len(b)+1)
	for j := range row {
		if !within {
			row[j] = j
		}
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	if within {
		return slices.Min(row)
	}
	return row[len(b)]
}
