package llamacpp

import (
	"context"
	"slices"
	"sync"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// cached counts the tokens in the KV cache of each slot, as the server reports them at the end of a generation. The
// zero value knows nothing.
type cached struct {
	mu    sync.Mutex
	slots []int // -1: unknown
	going int
}

// clear empties the cache.
func (h *cached) clear(slots int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots, h.going = make([]int, slots), 0
}

// begin starts a generation. Until its end nothing is known, because the server does not say which slot it uses.
func (h *cached) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.going++
}

// end ends a generation that left so many tokens in a slot. One that failed left some in an unknown slot, -1.
func (h *cached) end(slot, tokens int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.going--
	for i := range h.slots {
		switch slot {
		case i:
			h.slots[i] = tokens
		case -1:
			h.slots[i] = -1
		}
	}
}

// tokens returns the sum over all slots; -1: unknown.
func (h *cached) tokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.going > 0 || slices.Contains(h.slots, -1) {
		return -1
	}
	sum := 0
	for _, n := range h.slots {
		sum += n
	}
	return sum
}

// sizes is the source of the sizes that the log reported at the load. pid is the process of the log, 0 if it may be
// gone. held returns the tokens in the KV cache, -1 if unknown.
func sizes(role string, pid int, said logs.Load, held func() int) *sample.Func {
	return &sample.Func{
		Values: func(context.Context) (map[string]float64, error) { return said.Values(held()), nil },
		Source: record.Source{Role: role, Method: logs.Method, PID: pid,
			Sees: "buffers of weights, KV cache and computation by backend, as llama.cpp's log reports them (not measured), " +
				"to 0.01 MiB; kv_used_bytes is calculated: tokens in the cache × kv_reserved_bytes / cells",
			Blind: "which pages of a buffer were touched (those of a mapped model are page cache, loaded on use and possibly shared); code, stacks, " +
				"HTTP and tokeniser"}}
}
