package estimate

import (
	"strings"

	"llmparity/internal/engine"
)

// Increase is by how much the processes of an engine grow from what they were before the load to their peak, by PSS:
// what a run measures. It is another sum than Total, which has all that is reserved: memory that was had and never
// touched is in no process.
const Increase = "increase"

// increase predicts it where an engine's ways are known; ok tells whether they are.
func (e *Estimate) increase() (c Component, ok bool) {
	weights, cache := e.Component(Weights), e.Component(KVReserved)
	if cache.Method == "" || e.Model.Hidden == 0 {
		return Component{}, false
	}
	framework, touched := e.Component(Framework), e.Component(Activation)
	var how []string
	switch s := e.Setup; {
	case s.OnGPU || s.GPULayers > 0 || s.TensorParallel > 1:
		return Component{}, false // it lies in memory of the GPU's, as its driver likes
	case e.runs(engine.MLC):
		how = []string{"weights, KV cache and workspaces in the GPU process of a software adapter, which has WebGPU's buffers in memory and zeroes them",
			"what the browser takes beside them at the highest moment of the load"}
	case e.runs(engine.GGML):
		how = append(e.places(), "the KV cache, which is zeroed at the load and so is there in full")
		var words string
		touched, words = e.touched()
		how = append(how, words, "the program and its vocabulary")
	default:
		return Component{}, false
	}
	c = Component{Name: Increase, Method: strings.Join(how, "; ") +
		". Pages that other processes have mapped too count in part", Confidence: Medium}
	for _, part := range []Component{weights, cache, touched, framework} {
		c.Low, c.Best, c.High = c.Low+part.Low, c.Best+part.Best, c.High+part.High
	}
	if weights.Confidence == Low || cache.Confidence == Low || e.Setup.Engine.Itself {
		c.Confidence = Low
	}
	return c, true
}
