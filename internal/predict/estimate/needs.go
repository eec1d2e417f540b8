package estimate

import (
	"slices"
	"strings"

	"llmparity/internal/kit/words"
)

// Places of memory.
const (
	RAM      = "ram"
	VRAM     = "vram"
	Buffer   = "webgpu-buffer"
	Wasm     = "wasm"
	Renderer = "renderer"
)

// Need is the memory that a place must hold, in bytes.
type Need struct {
	Place           string
	Low, Best, High int64
	Hard            bool   // the place has an exact limit
	What            string // what it holds, for people
}

// Needs returns what must fit where. Needs that are unknown are left out.
func (e Estimate) Needs() []Need {
	s := e.Setup
	on := e.runtime().device
	onGPU := s.OnGPU || s.GPULayers > 0 || on.gpu && !s.OnCPU
	var out []Need
	before := s.Engine.Before
	ram := Need{Place: RAM, Low: before, Best: before, High: before, What: "all of the engine's processes"}
	if onGPU {
		out = append(out, e.vram())
		ram.What = "the layers that are not on a GPU, and the program"
		ram.add(1-e.offloaded(), e.Component(Weights), e.Component(KVReserved))
		ram.add(1, e.Component(Framework))
	} else if all := e.Component(Increase); all.Name != "" {
		ram.add(1, all)
	} else {
		ram.add(1, e.Component(Total))
	}
	if !onGPU || !on.wholly { // their main memory beside a GPU is not modelled
		out = append(out, ram)
	}
	return append(out, on.needs(e)...)
}

// NeedAt returns what a place must hold; false if it holds nothing, or that is unknown.
func (e Estimate) NeedAt(place string) (Need, bool) {
	needs := e.Needs()
	if i := slices.IndexFunc(needs, func(n Need) bool { return n.Place == place }); i >= 0 {
		return needs[i], true
	}
	return Need{}, false
}

// vram returns the need of GPU memory: everything but the program, or llama.cpp's offloaded layers.
func (e Estimate) vram() Need {
	n := Need{Place: VRAM, What: "weights, KV cache and workspaces"}
	n.add(e.offloaded(), e.Component(Weights), e.Component(KVReserved))
	n.add(1, e.Component(Activation), e.Component(MultiGPU), e.Component(Together))
	if e.fills() { // at least one sequence must fit
		c := e.Component(KVReserved)
		one := e.Component(KVUsed).Best / int64(max(e.Sequences, 1))
		n.Low, n.Best, n.High, n.Hard = n.Low-c.Low+one, n.Best-c.Best+one, n.High-c.High+one, true
	}
	if e.runtime().device.wholly { // the CUDA context and graphs are on the device
		n.add(1, e.Component(Framework))
		n.What = "everything on its devices"
	}
	return n
}

// add adds a share of components to a need.
func (n *Need) add(part float64, components ...Component) {
	for _, c := range components {
		n.Low += int64(part * float64(c.Low))
		n.Best += int64(part * float64(c.Best))
		n.High += int64(part * float64(c.High))
	}
}

// offloaded returns the share of the layers on GPUs, if any are.
func (e Estimate) offloaded() float64 {
	if n, layers := e.Setup.GPULayers, e.Model.Layers; n > 0 && layers > 0 {
		return min(float64(n)/float64(layers), 1)
	}
	return 1
}

// parts lists the largest components, for people.
func (e *Estimate) parts() string {
	var list []string
	for _, of := range [][2]string{{Weights, "weights"}, {KVReserved, "KV cache"}, {Activation, "workspaces"}} {
		c := e.Component(of[0])
		if c.Name == Activation && e.Component(Increase).Name != "" {
			c = e.touched.Component // reserved but untouched memory counts nothing
		}
		if c.Best > 0 {
			list = append(list, of[1]+" "+words.Size(c.Best))
		}
	}
	return strings.Join(list, ", ")
}
