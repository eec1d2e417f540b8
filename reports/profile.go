package reports

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/hardware"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// profile is a cell as a memory profile of schema 2.0. What was not measured is absent.
type profile struct {
	ProfilerVersion string          `json:"profiler_version"`
	SchemaVersion   string          `json:"schema_version"`
	Metadata        profileMetadata `json:"metadata"`
	Model           profileModel    `json:"model_info"`
	Memory          profileMemory   `json:"memory_measurements"`
	Breakdown       *breakdown      `json:"memory_breakdown,omitempty"`
	GPUs            *gpuInfo        `json:"gpu_info,omitempty"`
	Latency         latencyStats    `json:"latency_stats,omitempty"`
	Engine          profileEngine   `json:"engine_metadata"`
}

type profileMetadata struct {
	Timestamp time.Time          `json:"timestamp"`
	Run       string             `json:"run"`
	Cell      string             `json:"cell"`
	Units     map[string]string  `json:"units"`
	Method    map[string]string  `json:"method"`
	Launches  evidence.Counts    `json:"launches"`
	PromptID  int                `json:"prompt_id"`
	Input     *float64           `json:"input_len,omitempty"`
	Output    int                `json:"output_len"`
	BatchSize int                `json:"batch_size"`
	Machine   machine            `json:"machine"`
	Device    *record.Device     `json:"device,omitempty"`
	Warnings  []evidence.Warning `json:"warnings"`
}

type machine struct {
	CPU     string  `json:"cpu"`
	Cores   int     `json:"cores"`
	TotalGB float64 `json:"total_gb"`
	OS      string  `json:"os"`
	Kernel  string  `json:"kernel"`
}

type profileModel struct {
	Name         string `json:"name"`
	ModelName    string `json:"model_name"` // The same as name.
	SHA256       string `json:"sha256,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Parameters   int64  `json:"num_parameters,omitempty"`
	Layers       int    `json:"num_layers,omitempty"`
	Heads        int    `json:"num_heads,omitempty"`
	KVHeads      int    `json:"num_kv_heads,omitempty"`
	HeadDim      int    `json:"head_dim,omitempty"`
	Hidden       int    `json:"hidden_size,omitempty"`
	DType        string `json:"dtype,omitempty"`
	KVDType      string `json:"kv_cache_dtype,omitempty"`
	MaxModelLen  int    `json:"max_model_len,omitempty"`
	// Lengths of a request, in tokens, and how many are computed at once.
	Prompt    *float64 `json:"prompt_length,omitempty"`
	Generated *float64 `json:"generated_length,omitempty"`
	Sequence  *float64 `json:"total_sequence_length,omitempty"`
	BatchSize int      `json:"batch_size"`
}

type profileMemory struct {
	Baseline   point    `json:"baseline"`
	PostWarmup point    `json:"post_warmup"`
	Peak       point    `json:"peak"`
	Increase   *float64 `json:"memory_increase_gb,omitempty"`
}

type point struct {
	Total  *float64      `json:"total_gb,omitempty"`
	Origin record.Origin `json:"origin,omitempty"`
	N      int           `json:"launches"`
	Absent string        `json:"absent,omitempty"`
	GPUs   *gpuDetails   `json:"per_gpu_details,omitempty"`
}

// breakdown has the components under their names of schema 2.0. Absent says why one is missing.
type breakdown struct {
	Total       *float64          `json:"total_measured_gb,omitempty"`
	TotalGB     *float64          `json:"total_gb,omitempty"` // The same as total_measured_gb.
	Baseline    *float64          `json:"baseline_gb,omitempty"`
	Weights     *float64          `json:"model_weights_gb,omitempty"`
	KV          *float64          `json:"kv_cache_gb,omitempty"`
	KVUsed      *float64          `json:"kv_cache_used_gb,omitempty"`
	Activations *float64          `json:"activations_gb,omitempty"`
	Framework   *float64          `json:"framework_overhead_gb,omitempty"`
	MultiGPU    *float64          `json:"multi_gpu_overhead_gb,omitempty"`
	HostParts   *float64          `json:"host_parts_gb,omitempty"` // below zero: counted in others, not in GPU memory
	Confidence  map[string]string `json:"confidence_levels"`
	Methods     map[string]string `json:"methods"`
	// Origins say of each whether it was measured, reported by the engine, calculated, or is a file's size.
	Origins map[string]record.Origin `json:"origins"`
	DTypes  memory.DTypes            `json:"dtypes"`
	Absent  map[string]string        `json:"absent,omitempty"`
	Notes   []string                 `json:"notes"`
}

// latencyStats are medians by the figures' keys, and two means.
type latencyStats map[string]float64

type profileEngine struct {
	Version string `json:"engine_version,omitempty"`
	Type    string `json:"engine_type"`
}

// gpuInfo is what was read of GPUs, whichever process held their memory.
type gpuInfo struct {
	Number   int         `json:"num_gpus"`
	Devices  []gpuMemory `json:"gpu_memory_per_device"`
	MultiGPU *float64    `json:"multi_gpu_overhead_gb,omitempty"`
}

// gpuMemory is one device's.
type gpuMemory struct {
	Device string   `json:"device"`
	Name   string   `json:"name,omitempty"`
	Peak   *float64 `json:"peak_gb,omitempty"`
	Mean   *float64 `json:"mean_gb,omitempty"`
	StdDev *float64 `json:"stddev_gb,omitempty"`
	Method string   `json:"method"`
}

// gpuDetails are statistics over the devices at the moment of their highest sum, and each device's peak.
type gpuDetails struct {
	Sum     *float64    `json:"sum_gb,omitempty"`
	Max     *float64    `json:"max_gb,omitempty"`
	Mean    *float64    `json:"mean_gb,omitempty"`
	StdDev  *float64    `json:"stddev_gb,omitempty"`
	Devices []gpuMemory `json:"devices"`
}

// Profile writes a cell of a result of one run as a memory profile of schema 2.0.
func Profile(w io.Writer, res *compare.Result, cell int) error {
	for _, c := range res.Cells {
		if c.Spec.ID == cell {
			return JSON(w, newProfile(res, c))
		}
	}
	dir := ""
	if len(res.Runs) > 0 {
		dir = " " + res.Runs[0].Dir
	}
	return fault.New(fault.Usage, "name a cell that the run's plan has", "the run%s has no cell %d", dir, cell)
}

func newProfile(res *compare.Result, c *compare.Cell) profile {
	p := profile{ProfilerVersion: "2.0", SchemaVersion: "2.0", Metadata: newProfileMetadata(res, c)}
	m := c.Spec.Model
	p.Model = profileModel{Name: m.Name, ModelName: m.Name, BatchSize: p.Metadata.BatchSize, SHA256: m.SHA256,
		Architecture: m.Architecture, Parameters: m.Parameters,
		Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, Hidden: m.Hidden, DType: m.DType,
		MaxModelLen: m.Context}
	if in, out := c.Figure(figure.Prompt), c.Figure(figure.Tokens); in.Known() && out.Known() {
		p.Model.Prompt, p.Model.Generated = in.Median, out.Median
		p.Model.Sequence = new(*in.Median + *out.Median)
	}
	p.Engine = profileEngine{Type: c.Spec.Engine}
	if c.Engine != nil {
		p.Engine.Version = c.Engine.Version
		p.Model.KVDType = c.Engine.Policy["kv_dtype"]
		p.Model.DType = cmp.Or(c.Engine.Policy["weights_dtype"], m.DType) // as the engine holds them
	}
	points := c.Points()
	if vram := c.Figure(figure.PeakVRAM); c.Device != nil && c.Device.Class == record.GPU && vram.Known() {
		points = memory.Points{Baseline: c.Figure(figure.BaselineVRAM), Warm: c.Figure(figure.PostWarmupVRAM),
			Peak: vram, Increase: c.Figure(figure.VRAMIncrease)}
	}
	p.Memory = profileMemory{Baseline: pointOf(points.Baseline), PostWarmup: pointOf(points.Warm),
		Peak: pointOf(points.Peak), Increase: gib(points.Increase)}
	p.Breakdown, p.Latency = newBreakdown(c), newLatency(c)
	p.GPUs = gpusOf(c)
	p.Memory.Baseline.GPUs = p.GPUs.held(c, hardware.AtBaseline)
	p.Memory.PostWarmup.GPUs = p.GPUs.held(c, hardware.AtPostWarmup)
	p.Memory.Peak.GPUs = p.GPUs.held(c, hardware.AtPeak)
	return p
}

// gpusOf are the devices of a cell; nil: none.
func gpusOf(c *compare.Cell) *gpuInfo {
	info := &gpuInfo{}
	for _, h := range c.Hardware {
		if h.Kind != hardware.OfGPU {
			continue
		}
		info.Devices = append(info.Devices, gpuMemory{h.Role, h.Name, gib(h.Figure(hardware.GPUPeak)),
			gib(h.Figure(hardware.GPUMean)), gib(h.Figure(hardware.GPUDeviation)), h.Method})
		if !strings.Contains(h.Role, ".") { // a part of a divided one counts with it
			info.Number++
		}
	}
	if len(info.Devices) == 0 {
		return nil
	}
	info.MultiGPU = gib(c.Parts.Component(figure.MultiGPUOverhead).Figure)
	return info
}

// held is what a cell's devices held together at a point.
func (info *gpuInfo) held(c *compare.Cell, at hardware.Point) *gpuDetails {
	if info == nil {
		return nil
	}
	out := &gpuDetails{Devices: info.Devices}
	for _, h := range c.Hardware {
		of := func(name string) *float64 { return gib(h.Figure(at.Name(name))) }
		switch sum := of(hardware.GPUSum); {
		case h.Kind == hardware.OfGPUs && sum != nil:
			out.Sum, out.Max, out.Mean, out.StdDev = sum, of(hardware.GPUHighest), of(hardware.GPUMean),
				of(hardware.GPUDeviation)
		case h.Kind == hardware.OfGPU && len(info.Devices) == 1:
			if at == hardware.AtPeak {
				sum = gib(h.Figure(hardware.GPUPeak))
			}
			if sum != nil {
				out.Sum, out.Max, out.Mean, out.StdDev = sum, sum, sum, rounded(0)
			}
		}
	}
	return out
}

// batchSize is the number of requests that are sent at once; 1 without batches.
func batchSize(c *compare.Cell) int {
	if t := c.Spec.Traffic; t != nil && t.Loop == record.Batch {
		return max(t.Concurrency, 1)
	}
	return 1
}

func newProfileMetadata(res *compare.Result, c *compare.Cell) profileMetadata {
	run := res.Runs[c.Run]
	return profileMetadata{Timestamp: run.Started, Run: run.Name, Cell: c.Label, Launches: c.Launches,
		PromptID: c.Spec.PromptID, Input: c.Figure(figure.Prompt).Median,
		Output: c.Spec.MaxTokens, BatchSize: batchSize(c), Device: c.Device, Warnings: res.About(c),
		Units: map[string]string{"gb": "GiB (2^30 bytes)", "ms": "milliseconds"},
		Method: map[string]string{
			"total_gb": fmt.Sprintf("median over counted launches of %s over the engine's processes: host memory, "+
				"not GPU memory", c.Points().Of),
			"memory_breakdown": "of one launch, the one whose peak is closest to the median, so that baseline_gb and the components " +
				"add up to total_measured_gb; origins and methods say how each was obtained; absent says why one is missing",
			"framework_overhead_gb": "memory from baseline to peak minus weights, KV cache, activations and multi-GPU overhead; " +
				"if it is negative, notes say why",
			"total_measured_gb": "at the peak, including baseline_gb, the memory of an open engine without a model",
			"mean_latency_ms":   "measured by the clock: mean over counted launches of the request's latency",
			"tokens_per_second": "mean over counted launches of tokens / request latency, prefill included",
		},
		Machine: machine{run.Environment.CPU, run.Environment.Cores, float64(run.Environment.MemoryB) / (1 << 30),
			run.Environment.OS, run.Environment.Kernel},
	}
}

// newBreakdown has every known component; nil if no launch counts.
func newBreakdown(c *compare.Cell) *breakdown {
	if c.Parts == nil {
		return nil
	}
	b := &breakdown{Confidence: map[string]string{"overall": c.Parts.Confidence}, Methods: map[string]string{},
		Origins: map[string]record.Origin{}, DTypes: c.Parts.DTypes,
		Absent: map[string]string{}, Notes: c.Parts.Notes}
	fields := map[string]**float64{figure.TotalMemory: &b.Total, figure.ModelWeights: &b.Weights,
		figure.KVCache: &b.KV, figure.KVCacheUsed: &b.KVUsed,
		figure.Activations: &b.Activations, figure.FrameworkOverhead: &b.Framework,
		figure.MultiGPUOverhead: &b.MultiGPU, figure.HostParts: &b.HostParts}
	for name, to := range fields {
		part, key := c.Parts.Component(name), cmp.Or(figure.New(name).Profile, name)
		switch {
		case part.OfLaunch != nil:
			*to = rounded(*part.OfLaunch / 1024)
			b.Confidence[key], b.Methods[key], b.Origins[key] = part.Confidence, part.Method, part.Origin
		case name != figure.HostParts: // only on a GPU
			b.Absent[key] = cmp.Or(part.Absent, "not read in this launch")
		}
	}
	b.addUp(c, fields)
	b.TotalGB = b.Total
	return b
}

// addUp rounds baseline and components so that they add up to the total.
func (b *breakdown) addUp(c *compare.Cell, fields map[string]**float64) {
	whole, increase := c.Parts.Component(figure.TotalMemory).OfLaunch, c.Parts.Component(figure.MemoryIncrease).OfLaunch
	if whole == nil || increase == nil {
		return
	}
	parts := []float64{(*whole - *increase) / 1024}
	for _, name := range memory.Within() {
		size := math.NaN()
		if v := c.Parts.Component(name).OfLaunch; v != nil {
			size = *v / 1024
		}
		parts = append(parts, size)
	}
	shares := stats.Apportioned(*whole/1024, parts, gibDigits)
	b.Baseline = &shares[0]
	for i, name := range memory.Within() {
		if v := shares[i+1]; !math.IsNaN(v) {
			*fields[name] = &v
		}
	}
}

// Keys of latencyStats that are means over launches.
const meanLatency, meanRate = "mean_latency_ms", "tokens_per_second"

func newLatency(c *compare.Cell) latencyStats {
	latency, tokens := c.Figure(figure.Latency), c.Figure(figure.Tokens)
	if !latency.Known() {
		return nil
	}
	l := latencyStats{meanLatency: mean(latency.Numbers())}
	for _, r := range figure.Rows(func(r *figure.Row) bool { return r.Profile != "" && !r.Component }) {
		if f := c.Figure(r.Name); f.Known() {
			l[r.Profile] = f.Center()
		}
	}
	var rates []float64
	for i, v := range latency.Values {
		if i < len(tokens.Values) && tokens.Values[i].Attempt == v.Attempt && tokens.Values[i].Value > 0 &&
			v.Value > 0 {
			rates = append(rates, tokens.Values[i].Value/v.Value*1000)
		}
	}
	if len(rates) > 0 {
		l[meanRate] = mean(rates)
	}
	return l
}

func mean(values []float64) float64 {
	mean, _, _ := stats.Moments(values)
	return *rounded(mean)
}

func pointOf(f evidence.Figure) point {
	return point{Total: gib(f), Origin: f.Origin, N: f.N, Absent: f.Absent}
}

// gib turns MiB into GiB; nil where there is no value.
func gib(f evidence.Figure) *float64 {
	if !f.Known() {
		return nil
	}
	return rounded(f.Center() / 1024)
}

// gibDigits are the decimals of sizes in GiB.
const gibDigits = 6

func rounded(v float64) *float64 { return new(stats.Round(v, gibDigits)) }
