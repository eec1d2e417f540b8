package estimate

import (
	"fmt"

	"llmparity/internal/record"
)

// stated builds the components of a statement.
func (e *Estimate) stated() {
	m, s := e.Model, *e.Model.Stated
	compute := "f32"
	if s.F16 {
		compute = "f16"
	}
	e.DTypes, e.ByFormat = DTypes{Weights: m.DType, Activations: compute, KVCache: compute}, map[string]int64{}
	e.PerToken = s.PerToken
	further := int64(e.Setup.Context - s.Context)
	switch {
	case further != 0 && s.PerToken > 0:
		e.warn("%s sets a context of %d tokens and states the memory for it; for %d, the KV cache of the difference is "+
			"calculated from the model's shape", s.By, s.Context, e.Setup.Context)
	case further < 0:
		e.warn("%s states the memory for a context of %d tokens; a context of %d needs less", s.By, s.Context, e.Setup.Context)
	}
	all := scaled(Together, float64(s.Bytes+further*s.PerToken), 0.8, 1.2, m.DType,
		fmt.Sprintf("stated by %s for a context of %d tokens, without a method", s.By, s.Context), Low)
	itself, _ := e.runtime().itself(e, all.Best)
	e.Components = []Component{all, itself}
	e.total()
	e.label()
}

// Origins of figures.
const (
	fileSize   = "file size"
	calculated = "calculated"
	predicted  = "predicted"
	reported   = "reported"
)

// label sets the origin of each component. Sizes of tensors, keys and values are calculated; the rest follows rules
// that were fitted to measurements.
func (e *Estimate) label() {
	for i := range e.Components {
		c := &e.Components[i]
		switch {
		case c.Name == Together:
			c.Label = reported
		case c.Name == Weights && c.Low == c.High && e.asStored():
			c.Label = fileSize
		case c.Name == Weights && c.Low == c.High, c.Name == KVUsed,
			c.Name == KVReserved && !e.fills():
			c.Label = calculated
		default:
			c.Label = predicted
		}
	}
}

// asStored reports whether the weights are in memory as the files have them.
func (e *Estimate) asStored() bool {
	return e.Model.Stored != nil && e.Setup.Quantization == "" && e.Setup.DType == "" && !e.other
}

// LayersIn returns how many layers fit safely into that much GPU memory, beside the workspaces.
func (e Estimate) LayersIn(free int64) int {
	for e.Setup.GPULayers = e.Model.Layers; e.Setup.GPULayers > 0; e.Setup.GPULayers-- {
		if e.vram().level(free) == record.RiskLow {
			break
		}
	}
	return e.Setup.GPULayers
}
