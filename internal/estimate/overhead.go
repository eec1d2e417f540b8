package estimate

import (
	"fmt"

	"llmparity/internal/engine"
	"llmparity/internal/mlc"
)

// width gives a type's bytes.
func width(name string) float64 {
	if n, ok := numberOf(name); ok {
		return float64(n.bits) / 8
	}
	return 2
}

// activations are what is computed on the way, at its peak.
func (e *Estimate) activations() Component {
	m := e.Model
	if m.Hidden == 0 {
		e.warn("nothing is known of the hidden state, so activations are a tenth of the weights")
		return scaled(Activation, float64(m.Parameters)*0.05, 0.2, 3, e.DTypes.Activations,
			"a rule of thumb: some percent of the weights", Low)
	}
	switch e.Setup.Engine.Runtime {
	case engine.MLC:
		return e.pageWorkspaces()
	case engine.GGML:
		return e.computeBuffer()
	case engine.VLLM:
		return e.vllmPeak()
	}
	return e.transformersPeak()
}

// sizes of a token's tensors, in values.
func (m Model) sizes() (hidden, inter, queries, keys float64) {
	inter = float64(m.Inter)
	if inter == 0 {
		inter = 4 * float64(m.Hidden)
	}
	return float64(m.Hidden), inter, float64(m.Heads * m.HeadDim), float64(m.KVHeads * m.HeadDim)
}

// computeBuffer follows llama.cpp's compute buffer on a CPU: the larger of what attention and the feed-forward part
// hold at one time.
func (e *Estimate) computeBuffer() Component {
	m, s := e.Model, e.Setup
	cells := float64(padded(int64(s.Context), llamaPad))
	ub := min(float64(s.UBatch), cells)
	how := map[bool]string{false: "with flash attention", true: "without flash attention"}[s.NoFlash]
	best := e.computed(cells, ub)
	c := scaled(Activation, best, 0.75, 1.35, "f32",
		fmt.Sprintf("llama.cpp's compute buffer for %.0f tokens at a time, %s: the larger of attention's and the feed-forward part's tensors; and the logits", ub, how), Medium)
	c.High += int64(4 * ub * float64(m.Vocab)) // builds before mid-2026 reserve the logits of all of these tokens
	if m.Active > 0 && m.Active < m.Parameters || m.Trust == Low || m.CacheTrust == Low {
		c.Confidence = Low
	}
	return c
}

// computed is what so many tokens at a time take, with so many cells to look at.
func (e *Estimate) computed(cells, tokens float64) float64 {
	m := e.Model
	h, i, q, kv := m.sizes()
	attention, forward, mask := 3*h+3*q+2*kv+cells*float64(m.Heads), 5*h+2*kv+3*i, 4*cells
	if !e.Setup.NoFlash {
		attention, forward, mask = 3*h+3*q+kv, 5*h+3*i, 2*cells
	}
	return tokens*(4*max(attention, forward)+mask) + 4*float64(m.Vocab)*float64(e.Sequences)
}

// pageWorkspaces are what the KV cache has for a chunk of the prompt, and what the library's functions say that they
// use.
func (e *Estimate) pageWorkspaces() Component {
	m := e.Model
	h, i, q, kv := m.sizes()
	chunk, b := float64(e.Setup.PrefillChunk), width(e.DTypes.Activations)
	cache := chunk*((2*q+2*kv)*b+8*float64(m.Heads)) + tables
	of := fmt.Sprintf("queries, keys, values and output of a chunk of %.0f tokens, the cache's tables, and ", chunk)
	if l := m.Library; l != nil && len(l.MemoryUsage) > 0 {
		sum, most := usage(l)
		c := scaled(Activation, cache+1.05*float64(most), 1, 1, e.DTypes.Activations,
			of+"the largest function's memory_usage, as the library says it", Medium)
		c.Low, c.High = int64(cache), int64(cache+float64(sum)+1.1*float64(most))
		if l.Own == nil { // those of MLC's keep more
			c.High, c.Confidence = int64(2.5*float64(c.Best)), Low
		}
		return c
	}
	own := chunk*b*(h+2*i) + 4*float64(m.Vocab)
	return scaled(Activation, cache+1.05*own, 0.7, 2.5, e.DTypes.Activations,
		of+"its hidden state, the feed-forward part, and logits (no library tells its memory_usage)", Low)
}

// tables are what the KV cache of WebLLM has for its own bookkeeping, whatever the model.
const tables = 548 * kib

func usage(l *mlc.Library) (sum, most int64) {
	for _, n := range l.MemoryUsage {
		n = min(max(n, 0), 1<<44)
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// VLLM and Transformers are engines that llmparity does not run.
var (
	VLLM = &engine.Memory{Name: "vllm", Title: "vLLM", Runtime: engine.VLLM, FourBits: "awq",
		Program: engine.Program{Bytes: 0.9 * gib, Devices: true, Low: 0.4, High: 2.5,
			How: "a CUDA context and captured graphs on each device: a rule of thumb; host memory is not in it"}}
	Transformers = &engine.Memory{Name: "transformers", Title: "transformers", Runtime: engine.Torch, FourBits: "nf4",
		Program: engine.Program{Bytes: 0.6 * gib, Devices: true, Low: 0.5, High: 2,
			How: "a CUDA context, cuBLAS's workspace and PyTorch's rounding on each device: a rule of thumb; on a CPU Python and PyTorch take about as much"}}
)

// transformersPeak is at the prompt: all its tokens go through a layer at a time.
func (e *Estimate) transformersPeak() Component {
	m := e.Model
	h, i, q, kv := m.sizes()
	b, tokens := width(e.DTypes.Activations), float64(e.Setup.InputLen)*float64(e.Sequences)
	logits := float64(m.Vocab) * float64(e.Sequences) * (b + 4)
	peak := tokens * b * (2*h + max(3*i, q+2*kv+h))
	c := scaled(Activation, peak+logits, 0.5, 1.5, e.DTypes.Activations,
		fmt.Sprintf("at the prompt's %.0f tokens: two hidden states and the larger of the feed-forward part's and attention's tensors; the last token's logits", tokens), Low)
	// An older version has the logits of every token, and an eager one the scores of every pair.
	c.High += int64(tokens * float64(m.Vocab) * (b + 4))
	return c
}

// vllmPeak is what vLLM finds in its trial with as many tokens as it computes at a time.
func (e *Estimate) vllmPeak() Component {
	m := e.Model
	h, i, q, kv := m.sizes()
	b, tokens, t := width(e.DTypes.Activations), float64(e.Setup.MaxBatched), float64(e.Setup.TensorParallel)
	const sampled = 256 // sequences that it samples for at a time
	logits := float64(m.Vocab) * sampled * 4 * 2
	peak := tokens*b*(2*h*t+max(2*i+i, q+2*kv+q)) + logits
	return scaled(Activation, peak, 0.3, 2, e.DTypes.Activations,
		fmt.Sprintf("a trial with %.0f tokens (--max-num-batched-tokens): two hidden states and a layer's widest tensors; logits of %d sequences", tokens, sampled), Low)
}

// framework is what the engine's program takes beside the model.
func (e *Estimate) framework(w weighed) Component {
	if e.runs(engine.MLC) {
		return e.browserOwn(w)
	}
	p, devices := e.Setup.Engine.Program, 1.0
	if p.Devices {
		devices = float64(e.Setup.TensorParallel)
	}
	return scaled(Framework, p.Bytes*devices+p.Token*float64(e.Model.Vocab), p.Low, p.High, "", p.How, Low)
}

// several is what more than one device costs.
func (e *Estimate) several(w weighed) Component {
	s := e.Setup
	if s.TensorParallel == 1 {
		return Component{}
	}
	extra := float64(w.extra)
	devices := float64(s.TensorParallel)
	if e.runs(engine.GGML) {
		return scaled(MultiGPU, 0.2*gib*devices, 0.3, 3, "",
			"llama.cpp gives whole layers to each device: a compute buffer and a context more on each, a rule of thumb",
			Low)
	}
	c := scaled(MultiGPU, 0.3*gib*devices, 0.3, 3, "",
		fmt.Sprintf("%.2f GiB of weights that devices have more than once, exactly; and buffers for their traffic, 0.3 GiB each, a rule of thumb",
			extra/gib), Low)
	c.Low, c.Best, c.High = c.Low+w.extra, c.Best+w.extra, c.High+w.extra
	return c
}
