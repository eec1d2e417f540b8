package recount

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// What a model needs of each place, worked out again of what was foretold of its parts, and of its sizes.

// need is what goes into a place, in bytes; NaN where there is no telling.
type need struct {
	best, high float64
	either     float64 // another best that the sizes leave possible
	slack      float64
}

// needs are by place. Whether a GPU is computed with the prediction tells by layers that are put there, or by a need of
// its memory.
func (m *memoryCell) needs(asked bool) map[string]need {
	part := func(name string) need {
		v, ok := m.foretold[name]
		if !ok && name == "program" { // as it was called before
			v = m.foretold["framework_overhead"]
		}
		return need{best: v[1] * mib, high: v[2] * mib}
	}
	sum := func(share float64, names ...string) need {
		n := need{slack: 1}
		for _, name := range names {
			p := part(name)
			n.best, n.high = n.best+math.Floor(share*p.best), n.high+math.Floor(share*p.high)
		}
		return n
	}
	add := func(a, b need) need { return need{best: a.best + b.best, high: a.high + b.high, slack: 1} }
	there, layers := 1.0, 0.0
	if n, err := strconv.ParseFloat(m.setup["gpu_layers"], 64); err == nil && n > 0 {
		layers = n
		if m.model.Layers > 0 {
			there = min(1, n/m.model.Layers)
		}
	}
	out := map[string]need{}
	if asked || layers > 0 {
		out["vram"] = add(sum(there, "model_weights", "kv_cache"), sum(1, "activations", "multi_gpu_overhead"))
		before := heldBefore(m.engine)
		out["ram"] = add(add(sum(1-there, "model_weights", "kv_cache"), part("program")),
			need{best: before, high: before})
	} else {
		whole := "increase"
		if _, ok := m.foretold[whole]; !ok {
			whole = "total"
		}
		before := heldBefore(m.engine)
		out["ram"] = add(part(whole), need{best: before, high: before})
	}
	if m.engine == "webllm" {
		out["renderer"] = add(part("program"), need{})
		wasm := 49*mib + 72*m.model.Vocab
		out["wasm"] = need{best: wasm, high: math.Floor(wasm * 1.5), slack: 1}
		if buffers := m.buffers(part("model_weights").best, part("kv_cache").best); len(buffers) > 0 {
			out["webgpu-buffer"] = need{best: buffers[0], high: buffers[0], either: slices.Max(buffers), slack: 1}
		}
	}
	return out
}

// buffers is how large the largest of WebGPU's buffers is: that of a tensor, by the share of the weights that it has,
// or of a layer's KV cache. How wide the feed-forward part is the number of parameters tells, with a head of its own or
// with one that is the embedding: mostly only one of them comes to a whole number. None: these are not the sizes of
// such a model.
func (m *memoryCell) buffers(weights, cache float64) []float64 {
	s := m.model
	hidden, queries, keys := s.Hidden, s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	if s.Layers*hidden*queries*keys*s.Vocab == 0 || strings.HasPrefix(m.setup["weights_dtype"], "q") {
		return nil // of numbers that are packed a share of parameters is none of bytes
	}
	var out []float64
	for _, heads := range []float64{0, 1} {
		for _, biases := range []float64{0, queries + 2*keys} {
			rest := (1+heads)*s.Vocab*hidden + hidden + s.Layers*(2*hidden+2*hidden*queries+2*hidden*keys+biases)
			inner := (s.Parameters - rest) / (3 * s.Layers * hidden)
			if inner < 1 || inner != math.Trunc(inner) {
				continue
			}
			// A package has queries, keys and values in one tensor, and both gates.
			largest := hidden * max(s.Vocab, queries+2*keys, 2*inner)
			out = append(out, max(math.Floor(weights*(largest/s.Parameters)), math.Floor(cache/s.Layers)))
		}
	}
	return out
}

// need holds a place against what must go there.
func (c *check) need(what string, p riskPlace, needs map[string]need) {
	n, ok := needs[p.Name]
	if !ok {
		if p.Name != "webgpu-buffer" {
			c.Errorf("%s: nothing of it is needed, worked out again, and in the report %v", what, p.Need)
		}
		return
	}
	if n.either > 0 && math.Abs(p.Need-n.either) <= n.slack {
		n.best, n.high = n.either, n.either
	}
	c.about(what+", needed", p.Need, n.best, n.slack)
	c.about(what+", needed at most", p.High, n.high, n.slack)
	switch p.Name {
	case "renderer", "wasm":
		c.same(what+", free", p.Free, 4<<30)
	}
}
