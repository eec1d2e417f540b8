package estimate

import (
	"fmt"

	"llmparity/internal/engine"
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
