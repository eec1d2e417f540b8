package fit

import (
	"math"
	"slices"
	"strings"

	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
)

// Document is an answer as JSON. Names follow memory profiles of schema 2.0.
type Document struct {
	Schema     string               `json:"schema_version"`
	Kind       string               `json:"kind"`
	Units      map[string]string    `json:"units"`
	Model      estimatedModel       `json:"model_info"`
	Engine     map[string]string    `json:"engine_metadata"`
	Breakdown  map[string]any       `json:"memory_breakdown"`
	DTypes     estimate.DTypes      `json:"dtypes"`
	Components []estimate.Component `json:"components"`
	KVPerToken int64                `json:"kv_bytes_per_token"`
	Weights    map[string]int64     `json:"weights_bytes_by_type"`
	Scales     int64                `json:"weights_scale_bytes"`
	GPU        *estimatedGPU        `json:"gpu_info,omitempty"`
	Risk       *record.Risk         `json:"oom_risk,omitempty"`
	// Fits says whether the model fits; null if unknown.
	Fits *bool `json:"fits"`
	// Available is the memory at the deciding place, and Spare what the model leaves of it. A negative Spare is missing
	// memory.
	Available *int64 `json:"available_bytes,omitempty"`
	Spare     *int64 `json:"spare_bytes,omitempty"`
	// Reason says why the model does not fit, why that is unknown, or that it is tight.
	Reason   string   `json:"reason,omitempty"`
	Warnings []string `json:"warnings"`
}

type estimatedModel struct {
	Name         string `json:"name"`
	ModelName    string `json:"model_name"`
	Source       string `json:"source"`
	Architecture string `json:"architecture,omitempty"`
	Parameters   int64  `json:"num_parameters"`
	Active       int64  `json:"num_active_parameters,omitempty"`
	Layers       int    `json:"num_layers,omitempty"`
	Heads        int    `json:"num_heads,omitempty"`
	KVHeads      int    `json:"num_kv_heads,omitempty"`
	HeadDim      int    `json:"head_dim,omitempty"`
	Hidden       int    `json:"hidden_size,omitempty"`
	Vocab        int    `json:"vocab_size,omitempty"`
	DType        string `json:"dtype"`
	KVDType      string `json:"kv_cache_dtype"`
	Context      int    `json:"max_model_len"`
	Prompt       int    `json:"prompt_length"`
	Total        int64  `json:"total_sequence_length"`
	Batch        int    `json:"batch_size"`
	Concurrency  int    `json:"concurrency"`
}

type estimatedGPU struct {
	Count       int       `json:"num_gpus"`
	PerDevice   []float64 `json:"gpu_memory_per_device"`
	Overhead    float64   `json:"multi_gpu_overhead_gb"`
	Utilization float64   `json:"gpu_memory_utilization,omitempty"`
	MemoryGB    float64   `json:"gpu_memory_gb,omitempty"`
}

// JSON returns the answer for scripts.
func (e Answer) JSON() Document {
	m, s := e.Model, e.Setup
	j := Document{Schema: "2.0", Kind: "estimate",
		Units: map[string]string{"gb": "GiB (2^30 bytes)", "bytes": "over all devices"}, DTypes: e.DTypes,
		Engine: map[string]string{"engine_type": s.Engine.Name}, Components: e.Components, KVPerToken: e.PerToken,
		Weights: e.ByFormat, Scales: e.ScaleBytes, Risk: &e.Risk, Fits: e.Fit.Fits, Reason: e.Fit.Reason,
		Warnings: append([]string{}, e.Warnings...), Breakdown: map[string]any{},
		Model: estimatedModel{Name: m.Name, ModelName: m.Name, Source: m.Source, Architecture: m.Type,
			Parameters: m.Parameters, Active: m.Active, Layers: m.Layers, Heads: m.Heads,
			KVHeads: m.KVHeads, HeadDim: m.HeadDim, Hidden: m.Hidden, Vocab: m.Vocab, DType: e.DTypes.Weights,
			KVDType: e.DTypes.KVCache, Context: s.Context,
			Prompt: s.InputLen, Total: e.Tokens, Batch: s.BatchSize, Concurrency: s.Concurrency}}
	levels := map[string]estimate.Confidence{}
	for _, c := range e.Components {
		name, short := c.Name+"_gb", strings.TrimPrefix(strings.TrimPrefix(c.Name, "model_"), "framework_")
		if short == estimate.Total {
			short = "overall"
		}
		j.Breakdown[name], levels[short] = gibOf(c.Best), c.Confidence
	}
	j.Breakdown["confidence_levels"] = levels
	if s.TensorParallel > 1 || s.GPUMemoryGiB > 0 {
		j.GPU = &estimatedGPU{Count: s.TensorParallel, Overhead: gibOf(e.Component(estimate.MultiGPU).Best),
			MemoryGB: s.GPUMemoryGiB}
		j.GPU.Utilization = e.Share()
		each := e.Component(estimate.Total).Best / int64(s.TensorParallel)
		j.GPU.PerDevice = slices.Repeat([]float64{gibOf(each)}, s.TensorParallel)
	}
	if f := e.Fit; f.Available > 0 {
		j.Available, j.Spare = &f.Available, &f.Spare
	}
	return j
}

func gibOf(bytes int64) float64 { return math.Round(float64(bytes)/(1<<30)*1e6) / 1e6 }
