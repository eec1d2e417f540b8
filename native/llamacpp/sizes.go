package llamacpp

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"llmparity/internal/record"
)

// EngineLog is the method of sizes that an engine's log tells.
const EngineLog = "engine_log"

// logged is the source of the sizes that the log told at the load.
type logged struct {
	role string
	pid  int // of whom the log is; 0: its process may be gone
	said func() load
	held *atomic.Int64 // tokens in the KV cache, as the engine counts them; -1: not known
}

// Describe says whose word it is.
func (s *logged) Describe() record.Source {
	return record.Source{Role: s.role, Method: EngineLog, PID: s.pid,
		Sees: "llama.cpp's own word, not measured: the buffers of weights, KV cache and computation by backend, as its log gives them when it makes them, " +
			"to 0.01 MiB; kv_used_bytes by formula: tokens that it says it holds × kv_reserved_bytes / cells",
		Blind: "which pages of a buffer were touched: those of a mapped model are page cache, come with use, and may be shared; the program, its stacks, " +
			"HTTP and tokeniser"}
}

// Read gives what is known by now.
func (s *logged) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	values := s.said().values(int(s.held.Load()))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		r.Values = append(r.Values, record.Value{Name: name, Value: values[name]})
	}
	r.End = time.Now()
	return nil
}
