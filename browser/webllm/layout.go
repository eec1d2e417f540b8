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

// layout is what a model's package tells of the buffers that its engine will ask for.
type layout struct {
	params  []int64 // bytes of each, as they are on the device
	kvToken int64   // bytes of one token in one layer's KV cache
	kvLayer int64   // the KV cache of one layer: all of it is had at the load
	layers  int64

	noCache atomic.Bool // a reading found the engine at work, and none of the KV cache's buffers
}

var _ browser.Layout = (*layout)(nil)

// layoutOf reads it from the package's own files, which WebLLM reads too.
func layoutOf(p Package) (*layout, error) {
	m, err := mlc.OpenPackage(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the model package: %w", err)
	}
	width := int64(4)
	if p.DType == F16 {
		width = 2
	}
	l := &layout{layers: int64(m.Layers), kvToken: 2 * int64(m.KVHeads*m.HeadDim) * width}
	l.kvLayer = mlc.KVReserved(l.kvToken, p.Context)
	window := m.SlidingWindowSize
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

// kvUsed is the part of the KV cache that tokens lie in.
func (l *layout) kvUsed(tokens int64) int64 { return l.layers * l.kvToken * tokens }

// Parts are the figures of a reading of the ledger.
func (l *layout) Parts(groups []browser.LedgerGroup, held int64) []record.Value {
	a := l.attribute(groups, held)
	l.noCache.Store(a.KVReserved == record.Absent)
	return a.values()
}

// Used is what so many tokens take in the KV cache, unless that is among what can't be told apart.
func (l *layout) Used(held int64) (int64, bool) { return l.kvUsed(held), !l.noCache.Load() }

// attribution parts the ledger's live bytes: Weights, KVReserved, where it is not absent, Workspaces and Unattributed
// add up to them.
type attribution struct {
	Weights int64
	Padding int64 // the part of Weights that buffers are larger than parameters
	// record.Absent where the engine works and has no such buffers: then they are among the workspaces
	KVReserved   int64
	KVUsed       int64 // the part of KVReserved that tokens lie in; record.Absent where it is not known
	Workspaces   int64
	Unattributed int64
	Params       int // that were found
	KVLayers     int
}

// Stages of the load (stages.go) in which things are made; behind them come "end" and all that follows.
const (
	downloadStage = "download" // where WebLLM does not say that it has everything
	uploadStage   = "upload"
	pipelineStage = "pipeline"
	shadersStage  = "shaders"
	loadedStage   = "end"
)

// bufferAlign is what TVM may round a buffer's size up to.
const bufferAlign = 16

// attribute goes by load stage and size: WebLLM gives its buffers neither labels nor usages of their own. A buffer that
// was made while the weights were uploaded, of a parameter's size, is that parameter's; one made after them, of the
// size of a layer's KV cache, is that, as often as there are layers; every other one made from then on is a workspace.
// What else there is is not attributed.
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
	case kv > 0 && layers > 0: // some buffers of that size are not the cache
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

// fitting gives the sizes of parameters that may lie in a buffer, the closest first.
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
