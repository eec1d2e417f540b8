package estimate

import (
	"fmt"
	"slices"
)

// An engine that reserves a share of each GPU's memory, whatever the model takes, gives the KV cache all that the rest
// leaves.

// Share returns the part of each GPU's memory that the engine reserves, whatever the model takes; 0: what it takes.
func (e Estimate) Share() float64 { return e.share }

// fills reports whether the KV cache takes all that the rest leaves of a GPU's memory.
func (e Estimate) fills() bool { return e.Setup.GPUMemoryGiB > 0 && e.share > 0 }

// fill gives the KV cache all the memory that the share allows and the other components leave.
func (e *Estimate) fill() {
	s, share := e.Setup, 100*e.share
	at := slices.IndexFunc(e.Components, func(c Component) bool { return c.Name == KVReserved })
	if at < 0 || share == 0 {
		return
	}
	if s.GPUMemoryGiB == 0 {
		e.warn("%s reserves %.0f%% of each device's memory; without --gpu-memory-gb, the KV cache is what the sequences need",
			s.Engine.Title, share)
		return
	}
	budget := s.GPUMemoryGiB * gib * e.share * float64(s.TensorParallel)
	low, best, high := budget, budget, budget
	for _, o := range e.Components {
		if o.Name != KVReserved && o.Name != KVUsed {
			low, best, high = low-float64(o.High), best-float64(o.Best), high-float64(o.Low)
		}
	}
	atLeast0 := func(v float64) int64 { return int64(max(v, 0)) }
	c := &e.Components[at]
	c.Low, c.Best, c.High = atLeast0(low), atLeast0(best), atLeast0(high)
	c.Method = fmt.Sprintf("%.0f%% of %g GiB on %d devices, less the rest: reserved at start", share, s.GPUMemoryGiB,
		s.TensorParallel)
	c.Confidence = Medium
	switch need := float64(e.Component(KVUsed).Best); {
	case best <= 0:
		e.warn("weights, activations and the engine itself exceed %.2f GiB by %.2f GiB: the model does not fit",
			budget/gib, -best/gib)
	case need > best:
		e.warn("the sequences need %.2f GiB of KV cache, but %.2f GiB are left: about %d of %d run at a time",
			need/gib, best/gib, int(best/need*float64(e.Sequences)), e.Sequences)
	}
}

// reserved sets what the engine reserves of the GPUs.
func (e Estimate) reserved(rooms map[string]Room) {
	if s := e.Setup; e.fills() {
		rooms[VRAM] = Room{Free: int64(s.GPUMemoryGiB * float64(s.TensorParallel) * e.share * gib),
			How: fmt.Sprintf("%.0f%% of --gpu-memory-gb, which %s reserves", 100*e.share, s.Engine.Title)}
	}
}
