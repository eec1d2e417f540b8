package webllm

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"llmparity/browser"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
)

// layout knows the buffers that WebLLM allocates for a model, from its package.
type layout struct {
	params  []int64 // bytes of each parameter on the device
	kvToken int64   // bytes of a token in a layer's KV cache
	kvLayer int64   // bytes of a layer's KV cache, all reserved at the load
	layers  int64

	noCache atomic.Bool // the latest reading has workspaces, but no KV cache buffers
}

var _ browser.Layout = (*layout)(nil)

// layoutOf reads the package's files, as WebLLM does.
func layoutOf(p Package) (*layout, error) {
	m, err := mlc.OpenPackage(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the model package: %w", err)
	}
	width := int64(4)
	if p.DType == F16 {
		width = 2
	}
	s := m.Shape
	l := &layout{layers: int64(s.NumHiddenLayers), kvToken: 2 * int64(s.NumKeyValueHeads*s.HeadDim) * width}
	l.kvLayer = mlc.KVReserved(l.kvToken, p.Context)
	window := m.RotatingWindow
	if w, ok := p.Overrides["sliding_window_size"].(int); ok {
		window = w
	}
	if window > 0 { // two more pages
		l.kvLayer += mlc.KVReserved(l.kvToken, 16)
	}
	for _, w := range m.Weights {
		n, err := mlc.StoredBytes(w.DType, "", w.Shape)
		if err != nil {
			return nil, fmt.Errorf("reading the model package: %s: %w", w.Name, err)
		}
		l.params = append(l.params, n)
	}
	return l, nil
}

// kvUsed returns the bytes of tokens in the KV cache.
func (l *layout) kvUsed(tokens int64) int64 { return l.layers * l.kvToken * tokens }

// Parts returns the components of a ledger reading.
func (l *layout) Parts(groups []browser.LedgerGroup, held int64) []record.Value {
	a := l.attribute(groups, held)
	l.noCache.Store(a.KVReserved == record.Absent)
	return a.values()
}

// Used returns the bytes of tokens in the KV cache, unless that cannot be distinguished from workspaces.
func (l *layout) Used(held int64) (int64, bool) { return l.kvUsed(held), !l.noCache.Load() }

// attribution splits the ledger's live bytes: Weights, KVReserved unless absent, Workspaces and Unattributed add up to
// them.
type attribution struct {
	Weights int64
	Padding int64 // part of Weights by which buffers exceed parameters
	// KVReserved is record.Absent if the engine is running but has no such buffers; then they are among the
	// workspaces.
	KVReserved   int64
	KVUsed       int64 // part of KVReserved that is filled; record.Absent: unknown
	Workspaces   int64
	Unattributed int64
	Params       int // found parameters
	KVLayers     int
}

// Stages of the load (stages.go); everything after them is "end".
const (
	downloadStage = "download" // if WebLLM does not report that the download is complete
	uploadStage   = "upload"
	pipelineStage = "pipeline"
	shadersStage  = "shaders"
	loadedStage   = "end"
)

// bufferAlign is the alignment to which TVM may round buffer sizes up.
const bufferAlign = 16

// attribute goes by load stage and size, because WebLLM labels its buffers neither by name nor by usage. A buffer of a
// parameter's size that was created during the upload is that parameter. A later one of the size of a layer's KV cache
// is that cache, up to the number of layers; all others are workspaces. Everything else is unattributed.
func (l *layout) attribute(groups []browser.LedgerGroup, held int64) attribution {
	a := attribution{KVUsed: record.Absent}
	wanted := map[int64]int64{}
	for _, n := range l.params {
		wanted[n]++
	}
	layers, kv := l.layers, int64(0)
	for _, g := range groups {
		if g.Kind != "buffer" {
			a.Unattributed += g.Bytes * g.Count
			continue
		}
		left := g.Count
		switch g.Stage {
		case downloadStage, uploadStage:
			for _, n := range fitting(wanted, g.Bytes) {
				take := min(left, wanted[n])
				wanted[n] -= take
				left -= take
				a.Params += int(take)
				a.Weights += take * g.Bytes
				a.Padding += take * (g.Bytes - n)
			}
			a.Unattributed += left * g.Bytes
		case pipelineStage, shadersStage, loadedStage:
			if g.Bytes == l.kvLayer {
				take := min(left, layers)
				layers -= take
				left -= take
				a.KVLayers += int(take)
				kv += take * g.Bytes
			}
			a.Workspaces += left * g.Bytes
		default:
			a.Unattributed += left * g.Bytes
		}
	}
	switch {
	case kv > 0 && layers > 0: // too few, so buffers of that size are something else
		a.Workspaces += kv
		a.KVLayers, a.KVReserved = 0, record.Absent
	case kv == 0 && a.Workspaces > 0:
		a.KVReserved = record.Absent
	default:
		a.KVReserved = kv
	}
	if held >= 0 && a.KVReserved > 0 {
		a.KVUsed = l.kvUsed(held)
	}
	return a
}

// fitting returns the sizes of parameters that a buffer may hold, closest first.
func fitting(wanted map[int64]int64, buffer int64) []int64 {
	sizes := slices.Sorted(maps.Keys(wanted))
	slices.Reverse(sizes)
	return slices.DeleteFunc(sizes, func(n int64) bool { return n > buffer || buffer-n >= bufferAlign })
}

func (a attribution) values() []record.Value {
	all := map[string]int64{
		"weights_bytes": a.Weights, "weights_padding_bytes": a.Padding, "weights_count": int64(a.Params),
		"workspaces_bytes": a.Workspaces, "unattributed_bytes": a.Unattributed,
	}
	if a.KVReserved != record.Absent {
		all["kv_reserved_bytes"], all["kv_layers_count"] = a.KVReserved, int64(a.KVLayers)
	}
	if a.KVUsed != record.Absent {
		all["kv_used_bytes"] = a.KVUsed
	}
	return browser.Values(all)
}
