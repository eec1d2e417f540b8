package estimate

import (
	"strings"
)

// increase predicts the growth of the engine's processes from before the load to their peak, as PSS: what a run
// measures. It differs from Total, because memory that is reserved but never touched belongs to no process. ok is false
// if the engine's behaviour is not known.
func (e *Estimate) increase() (c Component, ok bool) {
	weights, cache := e.Component(Weights), e.Component(KVReserved)
	if cache.Method == "" || e.Model.Hidden == 0 {
		return Component{}, false
	}
	s, framework := e.Setup, e.Component(Framework)
	if s.OnGPU || s.GPULayers > 0 || s.TensorParallel > 1 {
		return Component{}, false // depends on the GPU's driver
	}
	if e.grows == nil {
		return Component{}, false
	}
	c = Component{Name: Increase, Method: "the sum of: " + strings.Join(e.grows, "; ") +
		". A page that n processes share counts as 1/n", Confidence: High}
	for _, part := range []Component{weights, cache, e.touched.Component, framework} {
		c.add(part)
	}
	c.Confidence = Medium
	if weights.Confidence == Low || cache.Confidence == Low || e.Setup.Engine.Itself {
		c.Confidence = Low
	}
	return c, true
}
