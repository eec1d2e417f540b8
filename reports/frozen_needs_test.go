package reports_test

import (
	"path/filepath"
	"testing"

	"llmparity/browser/webllm"
	"llmparity/compare/comparetest"
	"llmparity/internal/estimate"
	"llmparity/internal/mlc"
	"llmparity/internal/modelsize"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
)

// shapes are small models, each with another largest tensor.
func shapes() map[string]tiny.Spec {
	return map[string]tiny.Spec{
		"words": {Layers: 6, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Vocab: 900, Context: 8192},
		"tied": {Layers: 3, Hidden: 64, Heads: 4, KVHeads: 4, HeadDim: 16, FFN: 160, Vocab: 512, Context: 8192,
			Tied: true},
		"feed-forward": {Layers: 5, Hidden: 64, Heads: 4, KVHeads: 1, HeadDim: 16, FFN: 352, Vocab: 512,
			Context: 8192},
		"gates": {Layers: 2, Hidden: 64, Heads: 2, KVHeads: 2, HeadDim: 32, FFN: 416, Vocab: 608,
			Context: 8192},
		"biases (Qwen)": {Architecture: "qwen2", Layers: 4, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 224,
			Vocab: 512, Context: 8192},
	}
}

// setups are where a model may run.
func setups() []estimate.Setup {
	return []estimate.Setup{
		{Engine: webllm.Memory, Context: 256},
		{Engine: webllm.Memory, Context: 8192}, // of which the KV cache of a layer is more than any tensor
		{Engine: webllm.Memory, Context: 1024, OnGPU: true},
		{Engine: llamacpp.Memory, Context: 512},
		{Engine: llamacpp.Memory, Context: 512, GPULayers: 1},
		{Engine: llamacpp.Memory, Context: 4096, GPULayers: 99},
		{Engine: ollama.Memory, Context: 2048},
	}
}

// predicted is a cell with its predicted memory, and with its risk if so much is available everywhere.
func predicted(t *testing.T, id int, m estimate.Model, s estimate.Setup, free int64) comparetest.Engine {
	t.Helper()
	s.InputLen, s.OutputLen = 4, 63
	e, err := estimate.Of(m, s)
	if err != nil {
		t.Fatal(err)
	}
	rooms := map[string]estimate.Room{estimate.Wasm: {Free: 4 << 30, How: "addresses"},
		estimate.Renderer: {Free: 4 << 30, How: "the cage"}}
	for _, place := range []string{estimate.RAM, estimate.VRAM, estimate.Buffer} {
		rooms[place] = estimate.Room{Free: free, How: "told"}
	}
	out := comparetest.Native(1)
	if s.Engine == webllm.Memory {
		out = comparetest.Browser(1)
	}
	out.Cell.ID, out.Cell.Engine, out.Cell.Setup = id, s.Engine.Name, id
	out.Cell.Model = record.Model{Name: "shape", SHA256: "5a", Format: "gguf", DType: "f32", Parameters: m.Parameters,
		WeightsB: 4 * m.Parameters, Layers: m.Layers,
		Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, Hidden: m.Hidden, Vocab: m.Vocab, Context: s.Context}
	p := record.Prediction{Source: m.Source, Setup: e.Settings(), TokenB: e.PerToken}
	for _, c := range e.AsMeasured() {
		p.Parts = append(p.Parts, record.Predicted{Name: c.Name, Low: c.Low, Best: c.Best, High: c.High, DType: c.DType,
			Method: c.Method, Confidence: string(c.Confidence)})
	}
	risk := e.Risk(rooms)
	out.Prediction, out.Risk = &p, &risk
	return out
}

// needing are the cells of a model in all setups, of its GGUF and of the package that WebLLM has of it.
func needing(t *testing.T, spec tiny.Spec, free int64) []comparetest.Engine {
	t.Helper()
	dir := t.TempDir()
	path, into := filepath.Join(dir, "shape.gguf"), filepath.Join(dir, "package")
	spec, err := spec.Resolved()
	if err == nil {
		err = tiny.WriteRandomFile(t.Context(), path, spec)
	}
	if err == nil {
		_, err = mlc.Write(t.Context(), path, into, mlc.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []comparetest.Engine
	for _, from := range []string{path, into} {
		m, err := modelsize.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range setups() {
			if from == into && s.Engine != webllm.Memory {
				continue
			}
			out = append(out, predicted(t, len(out)+1, m, s, free))
		}
	}
	return out
}
