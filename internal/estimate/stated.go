package estimate

import (
	"fmt"
	"regexp"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Stated is what a list of models says that one takes, where nothing says the model's sizes.
type Stated struct {
	By      string // whose statement it is
	Bytes   int64  // weights, KV cache and workspaces together
	Context int    // for which it holds; 0: not said
	Buffer  int64  // the largest buffer that it needs; 0: not said
	F16     bool   // it computes in float16
}

// Together is the component that a statement is about.
const Together = "weights_kv_cache_activations"

// quantized is how the id of a model says the format of its weights.
var quantized = regexp.MustCompile(`(?:^|[-_])(q[0348](?:f16|f32|bf16)(?:_(?:[0-2]|ft))?)(?:[-_]|$)`)

// FromStatement is a model of which a list of WebLLM's tells no more than what it takes.
func FromStatement(id string, s Stated) Model {
	m := Model{Name: id, Source: "webllm-catalogue", Stated: &s, Trust: Low}
	if name := quantized.FindStringSubmatch(id); name != nil {
		m.DType = name[1]
	}
	return m
}

// stated makes the components of a statement.
func (e *Estimate) stated() {
	m, s := e.Model, *e.Model.Stated
	compute := "f32"
	if s.F16 {
		compute = "f16"
	}
	e.DTypes, e.ByFormat = DTypes{Weights: m.DType, Activations: compute, KVCache: compute}, map[string]int64{}
	if e.Setup.Context < s.Context {
		e.warn("%s states its figure for a context of %d tokens: %d take less", s.By, s.Context, e.Setup.Context)
	}
	all := scaled(Together, float64(s.Bytes), 0.8, 1.2, m.DType,
		fmt.Sprintf("what %s states for a context of %d tokens; how it was found is not said", s.By, s.Context), Low)
	e.Components = []Component{all, e.framework(weighed{whole: all})}
	e.total()
	e.label()
}

// Labels of figures, by where they come from.
const (
	fileSize   = "file size"
	calculated = "calculated"
	predicted  = "predicted"
	reported   = "reported"
)

// label says of each component where its figure comes from. Sizes of tensors and of keys and values are arithmetic;
// what an engine takes beside them is a rule that was fitted to measurements.
func (e *Estimate) label() {
	for i := range e.Components {
		c := &e.Components[i]
		switch {
		case c.Name == Together:
			c.Label = reported
		case c.Name == Weights && c.Low == c.High && e.asStored():
			c.Label = fileSize
		case c.Name == Weights && c.Low == c.High, c.Name == KVUsed,
			c.Name == KVReserved && (!e.runs(engine.VLLM) || e.Setup.GPUMemoryGiB == 0):
			c.Label = calculated
		default:
			c.Label = predicted
		}
	}
}

// asStored tells whether the weights are in memory as the files have them.
func (e *Estimate) asStored() bool {
	_, _, other := e.dequantised()
	n, _ := e.repacked()
	return e.Model.Stored != nil && e.Setup.Quantization == "" && e.Setup.DType == "" && !other && n == 0
}

// LayersIn is how many layers surely have room in so much of a GPU's memory beside the workspaces.
func (e Estimate) LayersIn(free int64) int {
	for e.Setup.GPULayers = e.Model.Layers; e.Setup.GPULayers > 0; e.Setup.GPULayers-- {
		if e.vram().level(free) == record.RiskLow {
			break
		}
	}
	return e.Setup.GPULayers
}
