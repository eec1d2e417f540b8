package gguf

import "slices"

// window reads the sliding window and the layers that have it.
func (f *File) window(a *Architecture) error {
	t := a.Traits()
	key := a.Name + "." + keyWindow
	n := t.window
	if v, ok := f.Lookup(key); ok {
		if none, whole := unsigned(v); whole && none == 0 {
			return nil
		}
		var err error
		if n, err = f.count(key); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	if !t.windowed {
		if n >= a.ContextLength { // no effect
			return nil
		}
		return f.unsupported("%s is %d: sliding windows are not supported in %s, where only some layers have one",
			key, n, a.Name)
	}
	if n < a.ContextLength {
		a.SlidingWindow = n
	}
	return f.localLayers(a, t)
}

// localLayers reads which layers have the window: as many as the file lists, or all but every so many.
func (f *File) localLayers(a *Architecture, t Traits) (err error) {
	if t.period == 0 {
		return nil
	}
	key := a.Name + "." + keyPattern
	local := t.local
	switch v, ok := f.Lookup(key); list := v.(type) {
	case []bool:
		if len(list) < a.BlockCount {
			return f.bad(again, "metadata %s has %d values for %d layers", key, len(list), a.BlockCount)
		}
		local = func(i int) bool { return list[i] }
	default:
		if n, whole := unsigned(v); ok && !whole {
			return f.want(key, "a number of layers, or an array of bool")
		} else if ok {
			local = func(i int) bool { return n == 0 || uint64(i)%n < n-1 }
		}
	}
	a.LocalLayers = []int{} // unlike nil, none
	for i := range a.BlockCount {
		if local(i) {
			a.LocalLayers = append(a.LocalLayers, i)
		}
	}
	if t.localBase > 0 && len(a.LocalLayers) > 0 {
		a.LocalBase, err = f.number(a.Name+"."+keyLocalBase, t.localBase, aboveOne, "a number above 1")
	}
	if len(a.LocalLayers) == 0 {
		a.SlidingWindow = 0
	}
	return err
}

// Local reports whether a layer has the sliding window.
func (a Architecture) Local(layer int) bool {
	return a.LocalLayers == nil || slices.Contains(a.LocalLayers, layer)
}
