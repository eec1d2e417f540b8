package estimate

import (
	"fmt"
	"strings"

	"llmparity/internal/engine"
)

// Places that memory must fit into.
const (
	RAM      = "ram"
	VRAM     = "vram"
	Buffer   = "webgpu-buffer"
	Wasm     = "wasm"
	Renderer = "renderer"
)

// Need is what goes into a place, in bytes.
type Need struct {
	Place      string
	Best, High int64
	Hard       bool   // the place ends at a byte: what is less by one fits
	What       string // in words
}

// Needs are what must fit, and where. What an engine takes of a place that is not known is left out.
func (e Estimate) Needs() []Need {
	s := e.Setup
	onGPU := s.OnGPU || s.GPULayers > 0 || e.runs(engine.VLLM) || e.runs(engine.Torch) && !s.OnCPU
	var out []Need
	ram := Need{Place: RAM, Best: s.Engine.Before, High: s.Engine.Before, What: "all of the engine's processes"}
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
	if !onGPU || !e.runs(engine.VLLM, engine.Torch) { // of which nothing is known beside a GPU
		out = append(out, ram)
	}
	if e.runs(engine.MLC) {
		out = append(out, e.page()...)
	}
	return out
}

// vram is what lies on GPUs: all that isn't the program itself, or of llama.cpp's layers as many as are put there.
func (e Estimate) vram() Need {
	n := Need{Place: VRAM, What: "weights, KV cache and workspaces"}
	n.add(e.offloaded(), e.Component(Weights), e.Component(KVReserved))
	n.add(1, e.Component(Activation), e.Component(MultiGPU), e.Component(Together))
	// the KV cache gets what is left, and one sequence must fit into it
	if e.runs(engine.VLLM) && e.Setup.GPUMemoryGiB > 0 {
		c := e.Component(KVReserved)
		one := e.Component(KVUsed).Best / int64(max(e.Sequences, 1))
		n.Best, n.High, n.Hard = n.Best-c.Best+one, n.High-c.High+one, true
	}
	if e.runs(engine.VLLM, engine.Torch) { // a CUDA context and graphs are on the device
		n.add(1, e.Component(Framework))
		n.What = "all that it holds of its devices"
	}
	return n
}

// add puts a part of components into a need.
func (n *Need) add(part float64, components ...Component) {
	for _, c := range components {
		n.Best, n.High = n.Best+int64(part*float64(c.Best)), n.High+int64(part*float64(c.High))
	}
}

// offloaded is which part of the layers is on GPUs, where some are.
func (e Estimate) offloaded() float64 {
	if n, layers := e.Setup.GPULayers, e.Model.Layers; n > 0 && layers > 0 {
		return min(float64(n)/float64(layers), 1)
	}
	return 1
}

// parts are what the memory is mostly for, in words.
func (e *Estimate) parts() string {
	var words []string
	for _, of := range [][2]string{{Weights, "weights"}, {KVReserved, "KV cache"}, {Activation, "workspaces"}} {
		c := e.Component(of[0])
		if c.Name == Activation && e.runs(engine.GGML) && e.Component(Increase).Name != "" {
			c, _ = e.touched() // what is reserved and never touched takes nothing
		}
		if c.Best > 0 {
			words = append(words, of[1]+" "+sized(c.Best))
		}
	}
	return strings.Join(words, ", ")
}

// sized is a size for people.
func sized(n int64) string {
	if n >= gib {
		return fmt.Sprintf("%.2f GiB", float64(n)/gib)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/mib)
}
