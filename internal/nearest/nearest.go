// Package nearest finds the names that somebody may have meant who wrote one that isn't there. It knows letters, not
// meanings.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Of gives up to n of names, the likeliest first: those in which the name, as far as it goes, needs the fewest letters
// inserted, deleted or changed; of two such, the one that is nearer as a whole. Capitals don't count.
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

// distance is the number of letters to insert, delete or change to get from a to b; or, within, to any part of b.
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
