package layout

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/internal/models/modelsize"
)

// Shards returns the tensors of each shard: a shard of the limit gets no further tensor. Sizes are in bytes.
func Shards(tensors []int64, limit int64) [][]int64 {
	var out [][]int64
	size := int64(0)
	for _, n := range tensors {
		if len(out) == 0 || size+n > limit {
			out, size = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], n)
		size += n
	}
	return out
}

// mostTensors limits the simulation; models have some hundred tensors.
const mostTensors = 1 << 16

// Tensors returns the tensors that a package of a model's weights would have, in bytes: queries, keys and values are
// one tensor, and so are gate and up projection. If the tensors are unknown, a shard is taken as one.
func Tensors(m modelsize.Model, weights, shard int64) []int64 {
	values, layers := int64(0), int64(max(m.Layers, 1))
	lumped := false
	for _, w := range m.Weights {
		values, lumped = values+w.Values(), lumped || w.Name == modelsize.AllLayers
	}
	if values == 0 || lumped || layers*int64(len(m.Weights)) > mostTensors {
		return unnamed(m, weights, shard)
	}
	scale := float64(weights) / float64(values)
	sizes := map[place]float64{}
	for n, w := range m.Weights {
		at := placeOf(w.Name, n)
		each, times := scale*float64(w.Values()), int64(1)
		if w.Times > 1 { // the same in each layer
			each, times = each/float64(layers), layers
		}
		for layer := range times {
			if times > 1 {
				at.layer = layer
			}
			sizes[at] += each
		}
	}
	var out []int64
	for _, at := range slices.SortedFunc(maps.Keys(sizes), place.compare) {
		out = append(out, int64(sizes[at]))
	}
	return out
}

// unnamed returns tensors if only their sum is known: the embedding, and the rest in whole shards.
func unnamed(m modelsize.Model, weights, shard int64) []int64 {
	var out []int64
	rest := weights
	if m.Parameters > 0 {
		share := float64(m.Vocab) * float64(m.Hidden) / float64(m.Parameters)
		out = append(out, int64(min(share, 1)*float64(weights)))
		rest -= out[0]
	}
	for ; rest > 0; rest -= shard {
		out = append(out, min(rest, shard))
	}
	return out
}

// place is a tensor's position in a package. Weights with the same place form one tensor.
type place struct {
	layer       int64
	part, which int
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.layer, o.layer), cmp.Compare(p.part, o.part), cmp.Compare(p.which, o.which))
}

// placeOf finds the place of a weight by its name in a GGUF or in transformers.
func placeOf(name string, which int) place {
	at := place{part: 4, which: which}
	switch {
	case strings.HasPrefix(name, "token_embd") || strings.Contains(name, "embed"):
		at.layer = -1
	case strings.HasPrefix(name, "output") || strings.Contains(name, "lm_head"):
		at.layer = math.MaxInt64
	default:
		_, _ = fmt.Sscanf(name, "blk.%d.", &at.layer)
	}
	for part, names := range [][]string{{"attn_q.", "attn_k.", "attn_v.", "q_proj", "k_proj", "v_proj"},
		{"attn_output.", "o_proj"},
		{"ffn_gate", "ffn_up", "gate_proj", "up_proj"}, {"ffn_down", "down_proj"}} {
		if slices.ContainsFunc(names, func(s string) bool { return strings.Contains(name, s) }) {
			at.part, at.which = part, 0
		}
	}
	return at
}
