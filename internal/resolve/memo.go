package resolve

// memo caches results and errors. Its zero value is empty.
type memo[K comparable, V any] struct{ known map[K]found[V] }

type found[V any] struct {
	value V
	err   error
}

// get returns the cached result, or that of find.
func (m *memo[K, V]) get(key K, find func() (V, error)) (V, error) {
	f, ok := m.known[key]
	if !ok {
		if f.value, f.err = find(); m.known == nil {
			m.known = map[K]found[V]{}
		}
		m.known[key] = f
	}
	return f.value, f.err
}
