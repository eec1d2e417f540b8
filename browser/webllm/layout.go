package webllm

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"llmparity/browser"
	"llmparity/internal/host/sample"
	"llmparity/internal/models/mlc"
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
	if p.KVDType == F16 {
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
	all := l.attribute(groups, held)
	_, known := all["kv_reserved_bytes"]
	l.noCache.Store(!known)
	return sample.Values(all)
}

// Used returns the bytes of tokens in the KV cache, unless that cannot be distinguished from workspaces.
func (l *layout) Used(held int64) (int64, bool) { return l.kvUsed(held), !l.noCache.Load() }

// Stages of the load. WebLLM may not report that the download is complete. After the load it is "end".
var (
	uploading = []string{"download", "upload"}
	uploaded  = []string{"pipeline", "shaders", "end"}
)

// bufferAlign is the alignment to which TVM may round buffer sizes up.
const bufferAlign = 16

// attribute goes by load stage and size, because WebLLM labels its buffers neither by name nor by usage. A buffer of a
// parameter's size that was created during the upload is that parameter. A later one of the size of a layer's KV cache
// is that cache, up to the number of layers; all others are workspaces. Everything else is unattributed.
//
// The weights, the reserved KV cache, the workspaces and what is unattributed add up to the ledger's live bytes.
func (l *layout) attribute(groups []browser.LedgerGroup, held int64) map[string]int64 {
	wanted := map[int64]int64{}
	for _, n := range l.params {
		wanted[n]++
	}
	var weights, padding, params, workspaces, unattributed, layers int64
	for _, g := range groups {
		left := g.Count
		switch {
		case g.Kind == "buffer" && slices.Contains(uploading, g.Stage):
			for _, n := range fitting(wanted, g.Bytes) {
				take := min(left, wanted[n])
				wanted[n] -= take
				left -= take
				params += take
				weights += take * g.Bytes
				padding += take * (g.Bytes - n)
			}
			unattributed += left * g.Bytes
		case g.Kind == "buffer" && slices.Contains(uploaded, g.Stage):
			if g.Bytes == l.kvLayer {
				take := min(left, l.layers-layers)
				layers += take
				left -= take
			}
			workspaces += left * g.Bytes
		default:
			unattributed += left * g.Bytes
		}
	}
	all := map[string]int64{"weights_bytes": weights, "weights_padding_bytes": padding, "weights_count": params,
		"unattributed_bytes": unattributed}
	if layers < l.layers && workspaces+layers > 0 { // too few, so buffers of that size are something else
		all["workspaces_bytes"] = workspaces + layers*l.kvLayer
		return all
	}
	all["workspaces_bytes"], all["kv_reserved_bytes"], all["kv_layers_count"] = workspaces, layers*l.kvLayer, layers
	if held >= 0 && layers > 0 {
		all["kv_used_bytes"] = l.kvUsed(held)
	}
	return all
}

// fitting returns the sizes of parameters that a buffer may hold, closest first.
func fitting(wanted map[int64]int64, buffer int64) []int64 {
	sizes := slices.Sorted(maps.Keys(wanted))
	slices.Reverse(sizes)
	return slices.DeleteFunc(sizes, func(n int64) bool { return n > buffer || buffer-n >= bufferAlign })
}
