package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/record"
)

// layout is what a model's package tells of the buffers that its engine will ask for.
type layout struct {
	params  []int64 // bytes of each, as they are on the device
	kvToken int64   // bytes of one token in one layer's KV cache
	layers  int64
	pages   int64 // of the KV cache, of pageTokens each
}

// pageTokens is how many tokens a page of TVM's KV cache holds, as WebLLM creates it.
const pageTokens = 16

// layoutOf reads it from the package's own files, which WebLLM reads too.
func layoutOf(p Package) (*layout, error) {
	var config struct {
		Model struct {
			Layers  int64 `json:"num_hidden_layers"`
			Heads   int64 `json:"num_attention_heads"`
			KVHeads int64 `json:"num_key_value_heads"`
			HeadDim int64 `json:"head_dim"`
			Hidden  int64 `json:"hidden_size"`
		} `json:"model_config"`
		Window int64 `json:"sliding_window_size"`
	}
	if err := readPackageFile(p.Dir, "mlc-chat-config.json", &config); err != nil {
		return nil, err
	}
	var cache struct {
		Records []struct {
			Records []struct {
				Name  string  `json:"name"`
				Shape []int64 `json:"shape"`
				DType string  `json:"dtype"`
			} `json:"records"`
		} `json:"records"`
	}
	if err := readPackageFile(p.Dir, "tensor-cache.json", &cache); err != nil {
		if other := readPackageFile(p.Dir, otherName("tensor-cache.json"), &cache); other != nil {
			return nil, err
		}
	}
	m := config.Model
	l := &layout{layers: m.Layers, pages: (int64(p.Context)+pageTokens-1)/pageTokens + 1}
	if window, ok := p.Overrides["sliding_window_size"].(int); ok {
		config.Window = int64(window)
	}
	if config.Window > 0 {
		l.pages += 2
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Hidden / m.Heads
	}
	width := int64(4)
	if p.DType == F16 {
		width = 2
	}
	l.kvToken = 2 * m.KVHeads * m.HeadDim * width
	for _, shard := range cache.Records {
		for _, r := range shard.Records {
			n, ok := dtypeBytes[r.DType]
			if !ok {
				return nil, fmt.Errorf("tensor-cache.json: %s has numbers of type %q, whose size is not known", r.Name,
					r.DType)
			}
			for _, d := range r.Shape {
				n *= d
			}
			l.params = append(l.params, n)
		}
	}
	return l, nil
}

var dtypeBytes = map[string]int64{"float32": 4, "float16": 2, "bfloat16": 2, "uint32": 4, "int32": 4, "uint16": 2,
	"int16": 2, "uint8": 1,
	"int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "e4m3_float8": 1, "e5m2_float8": 1}

func readPackageFile(dir, name string, into any) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("reading the model package: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the model package: %s: %w", name, err)
	}
	return nil
}

// kvLayer is the KV cache of one layer: all of it is had at the load.
func (l *layout) kvLayer() int64 { return l.kvToken * pageTokens * l.pages }

// kvUsed is the part of the KV cache that tokens lie in.
func (l *layout) kvUsed(tokens int64) int64 { return l.layers * l.kvToken * tokens }

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

// Stages of the load (generation.go) in which things are made; behind them come "end" and all that follows.
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
func (l *layout) attribute(groups []ledgerGroup, held int64) attribution {
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
			if g.Bytes == l.kvLayer() {
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
	return values(all)
}

// values come in the order of their names.
func values(all map[string]int64) []record.Value {
	var out []record.Value
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, record.Value{Name: name, Value: float64(all[name])})
	}
	return out
}
