package evidence

import (
	"iter"
	"slices"
)

// Groups are values by what they have in common, in the order in which that came first.
type Groups[K comparable, V any] struct {
	Keys []K
	Of   map[K][]V
}

// Add puts a value into its group.
func (g *Groups[K, V]) Add(key K, v V) {
	if g.Of == nil {
		g.Of = map[K][]V{}
	}
	if _, ok := g.Of[key]; !ok {
		g.Keys = append(g.Keys, key)
	}
	g.Of[key] = append(g.Of[key], v)
}

// AddNew puts a value into its group, unless it is there.
func AddNew[K, V comparable](g *Groups[K, V], key K, v V) {
	if !slices.Contains(g.Of[key], v) {
		g.Add(key, v)
	}
}

// Lines has one line per group.
func (g *Groups[K, V]) Lines(say func(K, []V) string) []string {
	var out []string
	for _, key := range g.Keys {
		out = append(out, say(key, g.Of[key]))
	}
	return out
}

// All are the groups in order.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.Keys {
			if !yield(key, g.Of[key]) {
				return
			}
		}
	}
}
