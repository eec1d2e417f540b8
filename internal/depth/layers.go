package depth

import "slices"

// Place is where a kernel is in a forward pass, and what it does there.
type Place struct {
	Layer int
	Role  Role
}

// Places finds the layer of each kernel of a forward pass: layers are what repeats. Matrix products whose name does not
// tell their use have the role of their place in a layer. Where nothing repeats, no kernel has a layer.
func Places(kernels []string) []Place {
	out := make([]Place, len(kernels))
	for i, name := range kernels {
		out[i] = Place{NoLayer, RoleOf(name)}
	}
	starts := repeats(kernels)
	if starts == nil {
		return out
	}
	end := ends(kernels, starts)
	for layer, from := range starts {
		to := end
		if layer+1 < len(starts) {
			to = starts[layer+1]
		}
		place(out[from:to], layer)
	}
	for i := end; i < len(out); i++ {
		if out[i].Role == Matrix {
			out[i].Role = Head
		}
	}
	return out
}

// fewest is how many kernels a layer has at least: attention, a feed-forward network and what lies between.
const fewest = 3

// repeats returns where the layers of a forward pass begin; nil: nothing repeats, or too little of it. All layers but
// the last are equal: the last often drops what the head does not need.
func repeats(kernels []string) []int {
	for from := range len(kernels) / 2 {
		for length := 1; ; length++ {
			starts := occurrences(kernels, from, length)
			if len(starts) < 2 {
				break
			}
			size := starts[1] - starts[0]
			equal := true
			for i := 1; equal && i+1 < len(starts); i++ {
				equal = slices.Equal(kernels[starts[i]:starts[i+1]], kernels[from:from+size])
			}
			if equal && size >= fewest && 2*size*len(starts) >= len(kernels) {
				return starts
			}
		}
	}
	return nil
}

// occurrences returns where some kernels in turn occur, from their first on, without those that overlap.
func occurrences(kernels []string, from, length int) (starts []int) {
	for i := from; i+length <= len(kernels); {
		if !slices.Equal(kernels[i:i+length], kernels[from:from+length]) {
			i++
			continue
		}
		starts = append(starts, i)
		i += length
	}
	return starts
}

// ends returns where the last layer ends: after what it has in common with the one before, in that order.
func ends(kernels []string, starts []int) int {
	last, before := starts[len(starts)-1], starts[len(starts)-2]
	size := last - before
	most := min(len(kernels), last+size+size/4) // it may have a few more
	end := last
	for _, name := range kernels[before:last] {
		if i := slices.Index(kernels[end:most], name); i >= 0 {
			end += i + 1
		}
	}
	return end
}

// place puts kernels into a layer. Its matrix products are attention's before the first norm after attention, and the
// feed-forward network's after it. Rows that it gathers are no embeddings.
func place(kernels []Place, layer int) {
	attention := -1
	for i, p := range kernels {
		kernels[i].Layer = layer
		switch p.Role {
		case Attention:
			attention = i
		case Embedding:
			kernels[i].Role = Copy
		}
	}
	norm := slices.IndexFunc(kernels[attention+1:], func(p Place) bool { return p.Role == Norm })
	if attention < 0 || norm < 0 {
		return
	}
	for i := range kernels {
		switch {
		case kernels[i].Role != Matrix:
		case i < attention+1+norm:
			kernels[i].Role = Attention
		default:
			kernels[i].Role = FeedForward
		}
	}
}
