package estimate

import (
	"fmt"

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
	switch {
	case onGPU:
		out = append(out, e.vram())
		if !e.runs(engine.VLLM, engine.Torch) { // of which nothing is known beside a GPU
			out = append(out, e.beyond(1-e.offloaded()))
		}
	default:
		all := e.Component(Increase)
		if all.Name == "" {
			all = e.Component(Total)
		}
		b := s.Engine.Before
		out = append(out, Need{Place: RAM, Best: all.Best + b, High: all.High + b,
			What: "all of the engine's processes"})
	}
	if e.runs(engine.MLC) {
		out = append(out, e.page()...)
	}
	return out
}

// vram is what lies on GPUs: all that isn't the program itself, or of llama.cpp's layers as many as are put there.
func (e Estimate) vram() Need {
	s, part := e.Setup, e.offloaded()
	n := Need{Place: VRAM, What: "weights, KV cache and workspaces"}
	for _, name := range []string{Weights, KVReserved} {
		c := e.Component(name)
		n.Best, n.High = n.Best+int64(part*float64(c.Best)), n.High+int64(part*float64(c.High))
	}
	for _, name := range []string{Activation, MultiGPU, Together} {
		c := e.Component(name)
		n.Best, n.High = n.Best+c.Best, n.High+c.High
	}
	if e.runs(engine.VLLM) && s.GPUMemoryGiB > 0 { // the KV cache gets what is left, and one sequence must fit into it
		c := e.Component(KVReserved)
		one := e.Component(KVUsed).Best / int64(max(e.Sequences, 1))
		n.Best, n.High, n.Hard = n.Best-c.Best+one, n.High-c.High+one, true
	}
	if e.runs(engine.VLLM, engine.Torch) { // a CUDA context and graphs are on the device
		c := e.Component(Framework)
		n.Best, n.High, n.What = n.Best+c.Best, n.High+c.High, "all that it holds of its devices"
	}
	return n
}

// offloaded is which part of the layers is on GPUs, where some are.
func (e Estimate) offloaded() float64 {
	if n, layers := e.Setup.GPULayers, e.Model.Layers; n > 0 && layers > 0 {
		return min(float64(n)/float64(layers), 1)
	}
	return 1
}

// beyond is what memory holds of a model of which the other layers are on GPUs.
func (e Estimate) beyond(part float64) Need {
	b := e.Setup.Engine.Before
	n := Need{Place: RAM, Best: b, High: b, What: "the layers that are not on a GPU, and the program"}
	for _, name := range []string{Weights, KVReserved} {
		c := e.Component(name)
		n.Best, n.High = n.Best+int64(part*float64(c.Best)), n.High+int64(part*float64(c.High))
	}
	program := e.Component(Framework)
	n.Best, n.High = n.Best+program.Best, n.High+program.High
	return n
}

// parts are what the memory is mostly for, in words.
func (e *Estimate) parts() string {
	words := ""
	for _, name := range []string{Weights, KVReserved, Activation} {
		c := e.Component(name)
		if name == Activation && e.runs(engine.GGML) && e.Component(Increase).Name != "" {
			c, _ = e.touched() // what is reserved and never touched takes nothing
		}
		if c.Best > 0 {
			if words != "" {
				words += ", "
			}
			words += fmt.Sprintf("%s %s",
				map[string]string{Weights: "weights", KVReserved: "KV cache", Activation: "workspaces"}[name],
				sized(c.Best))
		}
	}
	return words
}

// sized is a size for people.
func sized(n int64) string {
	if n >= gib {
		return fmt.Sprintf("%.2f GiB", float64(n)/gib)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/mib)
}
