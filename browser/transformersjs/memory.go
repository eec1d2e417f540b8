package transformersjs

import (
	"fmt"
	"slices"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// wasmRoom is what weights can have of WebAssembly's 4 GiB: ONNX Runtime has them twice for a moment, and KV cache and
// activations need some.
const wasmRoom = 2 << 30

// room refuses weights that WebAssembly cannot hold, where they go there.
func (e *Engine) room(bytes int64) error {
	if e.config.backend() == WebGPU || bytes <= wasmRoom {
		return nil
	}
	return engine.Fail(record.OOM, "%w", fault.New(fault.WontFit, "use --backend webgpu, or a smaller form of the model",
		"weights of %.1f GiB do not fit in WebAssembly, whose memory ends at 4 GiB", float64(bytes)/(1<<30)))
}

// runs refuses a model that cannot run on the adapter.
func (e *Engine) runs(p prepared, device record.Device) error {
	if e.config.backend() == WebGPU && p.KVDType == F16 && !slices.Contains(browser.Features(device), "shader-f16") {
		return fault.New(fault.NoF16, "use --dtype f32, a model in another form, or --adapter lavapipe",
			"the WebGPU adapter %s lacks shader-f16, which float16 needs", device.Name)
	}
	return nil
}

// differs says how the converted weights differ from those that native engines compute with; empty: not.
func differs(m models.Model, p prepared) string {
	switch p.same {
	case record.SameValues:
		return fmt.Sprintf("the model's weights are %s: transformers.js has their values in %s; a native engine uses the stored "+
			"ones with rounded activations, so greedy tokens may differ", m.DType, p.KVDType)
	case record.OtherValues:
		return fmt.Sprintf("the model's weights are %s: transformers.js has them rounded to %s, so greedy tokens may differ",
			m.DType, p.KVDType)
	}
	return ""
}

// layout knows that the buffers of the session are weights. ONNX Runtime makes the KV cache anew for every token, so
// that its buffers cannot be told from workspaces.
type layout struct{ kvToken int64 }

func layoutOf(m models.Model, p prepared) layout {
	width := int64(4)
	if p.KVDType == F16 {
		width = 2
	}
	return layout{2 * int64(m.Layers) * int64(m.KVHeads) * int64(m.HeadDim) * width}
}

// Parts splits a reading of the ledger.
func (l layout) Parts(groups []browser.LedgerGroup, held int64) []record.Value {
	parts := map[string]int64{"weights_bytes": 0, "unattributed_bytes": 0}
	for _, g := range groups {
		if g.Stage == "session" || g.Stage == "wasm" {
			parts["weights_bytes"] += g.Bytes * g.Count
		} else {
			parts["unattributed_bytes"] += g.Bytes * g.Count
		}
	}
	if used, ok := l.Used(held); ok && held >= 0 {
		parts["kv_used_bytes"] = used
	}
	return sample.Values(parts)
}

// Used returns the bytes of tokens in the KV cache; their number is unknown if sizes are.
func (l layout) Used(held int64) (int64, bool) { return l.kvToken * held, l.kvToken > 0 }

// Loaded describes the model in memory.
func (e *Engine) Loaded(m models.Model) engine.Loaded {
	out := engine.Loaded{As: e.config.Held(Memory), Path: m.Path, OnGPU: false}
	if p, ok := e.known(m); ok {
		out.Path = p.Dir
	}
	return out
}

// Memory describes how transformers.js holds models in memory.
var Memory = &engine.Memory{Name: Name, Title: title, Runtime: "onnx", Formats: []string{models.ONNX},
	Before: 370 << 20, FourBits: "q4"}
