package evidence

import "iter"

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
