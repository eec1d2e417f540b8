package record

import (
	"fmt"
	"math"
)

// Prediction is the calculated memory of a cell before its first launch.
type Prediction struct {
	Cell   int               `json:"cell"`                         // number of the cell
	Source string            `json:"source"`                       // what it is calculated from: gguf, webllm-package …
	Setup  map[string]string `json:"setup,omitempty"`              // assumed settings: context, kv_dtype, ubatch …
	Parts  []Predicted       `json:"parts"`                        // components
	TokenB int64             `json:"kv_bytes_per_token,omitempty"` // KV cache for each token, in bytes
	Notes  []string          `json:"notes,omitempty"`              // assumptions and limits
	Absent string            `json:"absent,omitempty"`             // why there is no prediction
}

// Part returns the component with the given name.
func (p Prediction) Part(name string) (Predicted, bool) {
	return first(p.Parts, func(f Predicted) bool { return f.Name == name })
}

// Predicted is a predicted component of a cell's memory, with the name of the measured component: model_weights,
// kv_cache, kv_cache_used, activations, multi_gpu_overhead. increase is the growth of total PSS from the baseline to
// the peak. framework_overhead is the rest of increase, and can be negative. total is the peak with the baseline, if
// that can be predicted. Nothing measures program, the engine's program itself, and total_reserved, all reserved memory
// as if touched.
type Predicted struct {
	Name       string `json:"name"`            // name of the component
	Low        int64  `json:"low_bytes"`       // lower bound
	Best       int64  `json:"bytes"`           // best estimate
	High       int64  `json:"high_bytes"`      // upper bound
	DType      string `json:"dtype,omitempty"` // assumed dtype
	Method     string `json:"method"`          // how it is calculated
	Confidence string `json:"confidence"`      // high, medium, low
}

// Risk is whether a cell's memory fits, judged just before its first launch.
type Risk struct {
	Cell            int       `json:"cell"`                      // number of the cell
	Level           RiskLevel `json:"level"`                     // unknown, low, medium or high
	Places          []Place   `json:"places"`                    // where it must fit, the tightest first
	Reasons         []string  `json:"reasons,omitempty"`         // why
	Recommendations []string  `json:"recommendations,omitempty"` // what would need less memory
	Refused         bool      `json:"refused,omitempty"`         // the cell is not launched
}

// RiskLevel is how likely a cell is to run out of memory.
type RiskLevel string

// The levels. Unknown: nothing is predicted, or free memory is not known.
const (
	RiskUnknown RiskLevel = "unknown"
	RiskLow     RiskLevel = "low"
	RiskMedium  RiskLevel = "medium"
	RiskHigh    RiskLevel = "high"
)

// Words says for people whether memory at that risk fits.
func (l RiskLevel) Words() string {
	return map[RiskLevel]string{RiskLow: "fits", RiskMedium: "tight", RiskHigh: "does not fit"}[l]
}

// Place is a limit that memory must fit into.
type Place struct {
	Name  string    `json:"name"`       // ram, vram, webgpu-buffer, wasm, renderer
	Need  int64     `json:"need_bytes"` // best estimate
	High  int64     `json:"high_bytes"` // upper bound
	Free  int64     `json:"free_bytes"` // available memory
	Level RiskLevel `json:"level"`      // unknown, low, medium or high
	How   string    `json:"how"`        // where the amount of available memory comes from
}

// Stop records why a cell with --until-ci gets no more repetitions. The figure is tested at repetition counts fixed in
// advance, and the error probability is divided among these looks. So each look uses a higher confidence level than the
// result.
type Stop struct {
	Cell        int     `json:"cell"`        // number of the cell
	Figure      string  `json:"figure"`      // name of the figure
	Repetitions int     `json:"repetitions"` // counted repetitions at the last look
	Looks       int     `json:"looks"`       // looks up to the most repetitions; 0: figure not available
	Look        int     `json:"look"`        // the last look, from 1
	Level       float64 `json:"level"`       // confidence level of the result: 0.95
	Confidence  float64 `json:"confidence"`  // level of each look: at least 1 − (1 − level)/looks
	Median      float64 `json:"median"`      // median at the last look
	// Low and High are the bounds of the interval at the last look; absent: too few repetitions.
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Percent float64  `json:"percent"` // requested half-width, in percent of the median
	Narrow  bool     `json:"narrow"`  // goal reached; false: repetitions exhausted
}

// Unreached says that the interval is not as narrow as was asked for; title is the figure's. Empty: it is, or the
// figure is not available.
func (s Stop) Unreached(title string) string {
	if s.Narrow || s.Looks == 0 {
		return ""
	}
	is := "has no interval"
	if s.Low != nil && s.High != nil && s.Median != 0 {
		is = fmt.Sprintf("has an interval that reaches %.1f%% from the median",
			100*max(*s.High-s.Median, s.Median-*s.Low)/math.Abs(s.Median))
	}
	return fmt.Sprintf("until_ci: %s %s after %d repetitions, the most that the plan allows; ±%g%% was asked for", title, is,
		s.Repetitions, s.Percent)
}
