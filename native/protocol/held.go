package protocol

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// MethodTensors is the method of sizes that an engine reports of what it holds.
const MethodTensors = "engine_tensors"

// held are the sizes that an engine has reported last, which are read at the ends of phases.
type held struct {
	mu     sync.Mutex
	sizes  map[string]float64
	detach func()
}

// set notes sizes; without any, those that were reported before stay.
func (h *held) set(sizes map[string]float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(sizes) == 0 {
		return
	}
	h.sizes = map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		bytes := sizes[name]
		if len(h.sizes) < maxNames && strings.HasSuffix(name, "_bytes") && bytes >= 0 && !math.IsInf(bytes, 0) {
			h.sizes[tidy(name)] = bytes
		}
	}
}

// attach has the sizes sampled, if the engine reports any.
func (h *held) attach(role string, pid int, attach func(sample.Source) (detach func())) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sizes == nil || h.detach != nil {
		return
	}
	h.detach = attach(&sample.Func{
		Values: func(context.Context) (map[string]float64, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return maps.Clone(h.sizes), nil
		},
		Source: record.Source{Role: role, Method: MethodTensors, PID: pid,
			Sees: "bytes of the engine's tensors (weights, KV cache, activations), as it reports them after the load and " +
				"after each generation",
			Blind: "what its allocator keeps, code, libraries, and whatever the engine does not count"}})
}

// release ends that and forgets the sizes.
func (h *held) release() {
	h.mu.Lock()
	detach := h.detach
	h.detach, h.sizes = nil, nil
	h.mu.Unlock()
	if detach != nil {
		detach()
	}
}
