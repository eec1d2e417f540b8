package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	"llmparity/internal/dtype"
	"llmparity/internal/models/hfconfig"
)

// VLLMSettings are the settings of vLLM.
type VLLMSettings struct {
	GPUUtilization float64 // share of each GPU's memory that is reserved
	MaxBatched     int     // tokens computed at a time
	Cells          int     // tokens that fit in the KV cache; 0: unknown
}

// The unit of the KV cache in tokens, on a GPU and on a CPU.
const (
	vllmBlock    = 16
	vllmCPUBlock = 128
)

// vllmRuntime reserves a share of each GPU's memory. On a CPU, a run sets the size of the KV cache.
var vllmRuntime = &Runtime{name: "vllm", rules: vllm{},
	device: device{gpu: true, wholly: true, flags: []string{"ram-gb"}, places: gpuUnlessRAM{}},
	take: func(s *Setup, settings map[string]string) {
		s.OnCPU = s.OnCPU || settings["device"] == "cpu"
		s.Concurrency = cmp.Or(number(settings["parallel"]), s.Concurrency)
		s.TensorParallel = cmp.Or(number(settings["tensor_parallel"]), s.TensorParallel)
		if d, ok := dtype.Number(settings["weights_dtype"]); ok {
			s.DType = d.Name
		} else {
			s.Quantization = cmp.Or(settings["weights_dtype"], s.Quantization)
		}
	},
	tell: func(e *Estimate, out map[string]string) {
		out["device"] = map[bool]string{true: "cpu", false: "gpu"}[e.Setup.OnCPU]
		if n := e.Setup.Concurrency; n > 1 {
			out["parallel"] = strconv.Itoa(n)
		}
		if n := e.Setup.TensorParallel; n > 1 {
			out["tensor_parallel"] = strconv.Itoa(n)
		}
	},
	assumed:  func(_ Model, s Setup) bool { return s.GPUMemoryGiB > 0 || Own[VLLMSettings](s).GPUUtilization > 0 },
	replaces: map[string]string{"f32": "bf16"},
	reserves: fmt.Sprintf("%%[1]s in blocks of %d tokens (on a CPU %d, and an empty one) × %%[3]s", vllmBlock, vllmCPUBlock),
	settings: []Setting{
		field(func(s *VLLMSettings) *int { return &s.Cells }, Setting{Key: "kv_cells"}),
		field(func(s *VLLMSettings) *int { return &s.MaxBatched }, Setting{Flag: "max-num-batched-tokens",
			Help: "vLLM: tokens computed at once (default 8192)", Most: 1 << 24, Or: 8192}),
		field(func(s *VLLMSettings) *float64 { return &s.GPUUtilization }, Setting{Flag: "gpu-memory-utilization",
			Help: "vLLM: share of GPU memory that vLLM reserves (default 0.9)", Most: 1, Or: 0.9}),
	}}

type vllm struct{}

func (vllm) choose(e *Estimate) {
	m, given := e.Model, e.Setup.DType
	wide := dtype.Canonical(m.DType) == "f32" || m.DType == "" && m.Stored["f32"] > 0
	if wide && !m.GGUF() && (given == "" || given == "auto") {
		e.warn("the weights are published in float32; vLLM loads them in 16 bits unless --dtype float32 is given")
	}
	if !e.Setup.OnCPU {
		e.share = Own[VLLMSettings](e.Setup).GPUUtilization
	}
}

// weights has 32-bit tensors in 16 bits.
func (vllm) weights(e *Estimate) (held, error) {
	h, err := usual{}.weights(e)
	if e.ofGGUF() && e.Setup.OnCPU { // it was converted to a folder
		h.made, h.computes = e.dequantised(), e.computesGGUF()
		return h, err
	}
	m, plain := e.Model, h.format.Plain
	if err != nil || m.GGUF() || m.Quantized != nil || m.Stored["f32"] == 0 || plain.Bits() != 16 {
		return h, err
	}
	h.types = maps.Clone(m.Stored)
	h.types[plain.Name] += m.Stored["f32"] / 2
	delete(h.types, "f32")
	return h, nil
}

func (vllm) cache(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	seen := e.seen(c)
	switch cells := Own[VLLMSettings](e.Setup).Cells; {
	case !e.Setup.OnCPU:
		return padded(seen, vllmBlock), seen
	case cells > 0:
		return int64(cells / e.Sequences), seen
	}
	return padded(int64(e.Setup.Context), vllmCPUBlock) + vllmCPUBlock, seen
}

// vLLM on a CPU, measured as PSS with vLLM 0.32 and torch 2.13: its processes with the tiny model, what each token of
// the
// vocabulary adds to two tokenizers, and the share of the weights that stays taken when linear layers were packed. The
// latter two were fitted to SmolLM2.
const (
	vllmProcesses  = 1455 * mib
	vllmVocabulary = 3.3 * 1024
	vllmPacking    = 0.6
)

// itself has, on a CPU, the processes, and what is more than weights and cache at the peak. That is while the weights
// are read, when the mapped file is there beside them, or later, with a large cache.
func (vllm) itself(e *Estimate, weights int64) (Component, []string) {
	if !e.Setup.OnCPU {
		return usual{}.itself(e, weights)
	}
	later := e.Component(KVReserved).Best + e.Component(Activation).Best
	more, what := float64(weights-later), "the file of the weights, mapped while they are read, less the cache, which comes later"
	if packed := vllmPacking * float64(weights); packed > more {
		more, what = packed, "memory that stays taken when linear layers were packed"
	}
	c := scaled(Framework, vllmProcesses+vllmVocabulary*float64(e.Model.Vocab)+more, 0.9, 1.15, "",
		fmt.Sprintf("PSS of API server, engine and worker with two tokenizers, on Linux with vLLM 0.32; %.0f MiB are %s",
			more/mib, what), Medium)
	return c, []string{"weights read into memory", "the KV cache, zeroed at load", "activations",
		"the server's processes, with " +
			what}
}

// activations are those of the profiling run with a full batch of tokens. A CPU has none.
func (vllm) activations(e *Estimate) (Component, touched) {
	if e.Setup.OnCPU {
		return usual{}.activations(e)
	}
	m := e.Model
	h, i, q, kv := sizes(m)
	b, t := width(e.DTypes.Activations), float64(e.Setup.TensorParallel)
	tokens := float64(Own[VLLMSettings](e.Setup).MaxBatched)
	const sampled = 256 // sequences sampled at a time
	logits := float64(m.Vocab) * sampled * 4 * 2
	peak := tokens*b*(2*h*t+max(2*i+i, q+2*kv+q)) + logits
	return scaled(Activation, peak, 0.3, 2, e.DTypes.Activations,
		fmt.Sprintf("profiling run with %.0f tokens (--max-num-batched-tokens): two hidden states, the widest tensors of "+
			"a layer, logits of %d sequences", tokens, sampled), Low), touched{}
}
