package record

// Prediction is what was predicted of a cell's memory before its first launch, by arithmetic alone.
type Prediction struct {
	Cell   int    `json:"cell"`
	Source string `json:"source"` // what it was worked out from: gguf, webllm-package …
	// Setup is what was taken for granted: context, kv_dtype, ubatch …, under the names that an engine's Policy has.
	Setup  map[string]string `json:"setup,omitempty"`
	Parts  []Predicted       `json:"parts"`
	TokenB int64             `json:"kv_bytes_per_token,omitempty"`
	Notes  []string          `json:"notes,omitempty"`
	Absent string            `json:"absent,omitempty"` // why nothing is foretold
}

// Part finds one by its name.
func (p Prediction) Part(name string) (Predicted, bool) {
	for _, f := range p.Parts {
		if f.Name == name {
			return f, true
		}
	}
	return Predicted{}, false
}

// Predicted is a part of the memory that a cell is to take, in bytes. Names are those of memory profiles of schema 2.0,
// and a name means what is measured under it: model_weights, kv_cache, kv_cache_used, activations, multi_gpu_overhead;
// increase, by how much the engine's processes grow from the baseline (none, where no process is there before the load)
// to their peak, by PSS; framework_overhead, what is left of the increase without weights, kv_cache, activations and
// multi_gpu_overhead, which can be below zero; total, the peak with the baseline in it, only where the baseline is
// known beforehand. Two have names of their own, because nothing measures them: program, the engine's program by
// itself, and total_reserved, if all that is reserved were touched.
type Predicted struct {
	Name       string `json:"name"`
	Low        int64  `json:"low_bytes"`
	Best       int64  `json:"bytes"`
	High       int64  `json:"high_bytes"`
	DType      string `json:"dtype,omitempty"`
	Method     string `json:"method"`
	Confidence string `json:"confidence"` // high, medium, low
}

// Risk is whether a cell's memory fits, judged just before its first launch.
type Risk struct {
	Cell            int       `json:"cell"`
	Level           RiskLevel `json:"level"`
	Places          []Place   `json:"places"` // the tightest first
	Reasons         []string  `json:"reasons,omitempty"`
	Recommendations []string  `json:"recommendations,omitempty"`
	Refused         bool      `json:"refused,omitempty"` // the cell is not launched
}

// RiskLevel is how likely a cell is to run out of memory.
type RiskLevel string

// The levels. Unknown is where nothing was predicted, or nobody knows what is free.
const (
	RiskUnknown RiskLevel = "unknown"
	RiskLow     RiskLevel = "low"
	RiskMedium  RiskLevel = "medium"
	RiskHigh    RiskLevel = "high"
)

// Place is somewhere that memory must fit into, in bytes: ram, vram, webgpu-buffer, wasm, renderer.
type Place struct {
	Name  string    `json:"name"`
	Need  int64     `json:"need_bytes"` // the best estimate
	High  int64     `json:"high_bytes"` // the most that it is likely to be
	Free  int64     `json:"free_bytes"`
	Level RiskLevel `json:"level"`
	How   string    `json:"how"` // how what is free was found out
}
