package resolve

// cache keeps what was found out, by arrays of what it depends on. Most begin with a name.
type cache map[any]any

type found[V any] struct {
	value V
	err   error
}

// once returns what is known of a key, or that of find.
func once[V any](c cache, key any, find func() (V, error)) (V, error) {
	f, known := c[key].(found[V])
	if !known {
		f.value, f.err = find()
		c[key] = f
	}
	return f.value, f.err
}
