package llamacpp

import (
	"context"
	"slices"
	"sync"

	"llmparity/internal/record"
	"llmparity/native/logs"
)

// cached is how many tokens lie in the KV cache, slot by slot, as the server tells at the end of each generation. The
// zero value knows nothing.
type cached struct {
	mu    sync.Mutex
	slots []int // -1: not known
	going int
}

// clear is an empty cache.
func (h *cached) clear(slots int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots, h.going = make([]int, slots), 0
}

// begin is a generation's; until its end nothing is known, for no one tells which slot it is in.
func (h *cached) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.going++
}

func (h *cached) end(slot, tokens int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.going--
	if slot >= 0 && slot < len(h.slots) {
		h.slots[slot] = tokens
	}
}

// lost is a generation that did not come to its end: what it left lies in some slot.
func (h *cached) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.going--
	for i := range h.slots {
		h.slots[i] = -1
	}
}

// tokens are those of all slots; -1: not known.
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

// sizes is the source of the sizes that the log told at the load. pid is of whom the log is, 0 where its process may be
// gone; held is how many tokens are in the KV cache, as the engine counts them, -1 where that is not known.
func sizes(role string, pid int, said logs.Load, held func() int) *logs.Source {
	return &logs.Source{
		Values: func(context.Context) (map[string]float64, error) { return said.Values(held()), nil },
		Is: record.Source{Role: role, Method: logs.Method, PID: pid,
			Sees: "llama.cpp's own word, not measured: the buffers of weights, KV cache and computation by backend, as its log gives them when it makes them, " +
				"to 0.01 MiB; kv_used_bytes by formula: tokens that it says it holds × kv_reserved_bytes / cells",
			Blind: "which pages of a buffer were touched: those of a mapped model are page cache, come with use, and may be shared; the program, its stacks, " +
				"HTTP and tokeniser"}}
}
