package estimate

import (
	"cmp"
	"fmt"

	"llmparity/internal/dtype"
)

// width returns the bytes of a value.
func width(name string) float64 {
	if d, ok := dtype.Number(name); ok {
		return d.Width()
	}
	return 2
}

// activations predicts the peak of intermediate results.
func (e *Estimate) activations() (Component, touched) {
	m := e.Model
	if m.Hidden == 0 {
		e.warn("the hidden size is unknown; activations are taken as 5%% of the parameter count")
		return scaled(Activation, float64(m.Parameters)*0.05, 0.2, 3, e.DTypes.Activations,
			"rule of thumb: a few percent of the weights", Low), touched{}
	}
	return e.runtime().activations(e)
}

// sizes returns the sizes of a token's tensors, in values.
func sizes(m Model) (hidden, inter, queries, keys float64) {
	return float64(m.Hidden), float64(cmp.Or(m.Inter, 4*m.Hidden)), float64(m.Heads * m.HeadDim),
		float64(m.KVHeads * m.HeadDim)
}

// several predicts the overhead of several devices.
func (e *Estimate) several() Component {
	s := e.Setup
	if s.TensorParallel == 1 {
		return Component{}
	}
	devices := float64(s.TensorParallel)
	if e.runtime().device.layers {
		return scaled(MultiGPU, 0.2*gib*devices, 0.3, 3, "",
			"rule of thumb: a compute buffer and a context on each device", Low)
	}
	c := scaled(MultiGPU, 0.3*gib*devices, 0.3, 3, "",
		fmt.Sprintf("%.2f GiB of weights copied to several devices (exact); communication buffers of 0.3 GiB each "+
			"(rule of thumb)", float64(e.extra)/gib), Low)
	c.Low, c.Best, c.High = c.Low+e.extra, c.Best+e.extra, c.High+e.extra
	return c
}
