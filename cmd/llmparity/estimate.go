package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// estimateFlags are those of llmparity estimate.
type estimateFlags struct {
	numbers    estimate.Numbers
	setup      estimate.Setup
	asJSON     bool
	freeGiB    float64
	ramGiB     float64
	bufferMiB  float64 // the adapter's largest buffer
	bindingMiB float64 // and storage binding
	adapter    string
	noF16      bool
	mirror     string
	path       string // of the model's file or folder
}

func estimateCommand() *cobra.Command {
	var f estimateFlags
	c := &cobra.Command{
		Use:   "estimate [MODEL]",
		Short: "Say whether a model fits, and predict how much memory it takes in an engine, part by part",
		Long: `Say whether a model fits into this machine, or into one that --ram-gb, --gpu-memory-gb and the WebGPU limits
describe. The first line answers: "fits: yes, 1.8 GiB spare of 8", "no: …" or "unknown: …", each with the reason. Then
follow weights, KV cache, activations and workspaces, the framework, and what several devices cost, with ranges.
Nothing is started and nothing is measured. The exit code is 0 whatever the answer is; --json has it in "fits".

MODEL is a name that run --model takes (tiny, smollm2, an id of WebLLM's catalogue, which need not be fetched), a GGUF
file, the folder of a WebLLM package, a Hugging Face config.json, a folder with one (the headers of safetensors files in
it are read too), or a .safetensors file. Without MODEL, sizes are given by flags.

WebLLM holds its model in the GPU's memory, and on SwiftShader in the machine's. It dequantises a GGUF to f32, or to f16
with --dtype f16; packages of MLC's formats (q4f16_1 …) stay as they are. llama.cpp puts on a GPU what --gpu-layers
says, Ollama what has room there.`,
		Example: `  llmparity estimate my.gguf --engine webllm --ram-gb 8
  llmparity estimate Llama-3.2-1B-Instruct-q4f16_1-MLC --gpu-memory-gb 6 --max-buffer-mb 256
  llmparity estimate my.gguf --context 8192 --gpu-layers 20 --gpu-memory-gb 8 --ram-gb 16
  llmparity estimate Llama-2-7b/config.json --input-len 512 --output-len 512 --batch-size 8
  llmparity estimate config.json --engine vllm --gpu-memory-gb 80 --tensor-parallel-size 4 --kv-cache-dtype fp8 --concurrency 64
  llmparity estimate config.json --quantization awq
  llmparity estimate --model-params 6.7e9 --num-layers 32 --num-heads 32 --hidden-size 4096 --head-dim 128 --context 4096`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.given(c); err != nil {
				return err
			}
			m, err := f.model(c.Context(), args)
			if err != nil {
				return err
			}
			if err := f.place(m, c.Flags().Changed); err != nil {
				return err
			}
			e, r, fit, err := f.estimate(c.Context(), m)
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(c.OutOrStdout(), estimated(e).judged(r, fit))
			}
			fmt.Fprintf(c.OutOrStdout(), "%s\n\n", fit)
			printEstimate(c.OutOrStdout(), e)
			printRisk(c.OutOrStdout(), r)
			return nil
		},
	}
	f.add(c)
	return c
}

func (f *estimateFlags) add(c *cobra.Command) {
	s, n := &f.setup, &f.numbers
	p := c.Flags()
	p.StringVar(&s.Engine, "engine", "", "whose way with memory: "+strings.Join(estimate.Engines(), ", ")+
		" (default: by the kind of model)")
	p.IntVar(&s.Context, "context", 0, "tokens that a sequence has room for (default: the text's, or the model's own up to 4096)")
	p.IntVar(&s.InputLen, "input-len", 0, "tokens of the prompt")
	p.IntVar(&s.OutputLen, "output-len", 0, "tokens that are generated")
	p.IntVar(&s.BatchSize, "batch-size", 0, "sequences of a request (default 1)")
	p.IntVar(&s.Concurrency, "concurrency", 0, "requests at a time; Ollama's and llama-server's slots (default 1)")
	p.StringVar(&s.DType, "dtype", "", "type of weights that aren't quantised, and of activations: float32, float16, bfloat16 (default: the model's)")
	p.StringVar(&s.KVDType, "kv-cache-dtype", "",
		"type of keys and values: float32, float16, bfloat16, fp8, int8, q8_0, q4_0 … (default: the engine's)")
	p.StringVar(&s.Quantization, "quantization",
		"", "how weights are stored: awq, gptq, fp8, int8, bitsandbytes, mxfp4, q4_0, q4_k_m, q4f16_1 … (default: as the model says)")
	p.IntVar(&s.GroupSize, "group-size", 0, "values that share a scale, in awq and gptq (default 128)")
	p.IntVar(&s.TensorParallel, "tensor-parallel-size", 0, "devices (default 1)")
	p.Float64Var(&s.GPUUtilization, "gpu-memory-utilization",
		0, "the part of a device's memory that vLLM takes up front (default 0.9)")
	p.Float64Var(&s.GPUMemoryGiB, "gpu-memory-gb", 0, "memory of each GPU in GiB (default: what is free here)")
	p.Float64Var(&f.ramGiB, "ram-gb", 0,
		"the machine's memory that the engine may take, in GiB (default: what is free here)")
	p.IntVar(&s.GPULayers, "gpu-layers", 0,
		"layers that llama.cpp or Ollama puts on a GPU (default: none, and in Ollama with --gpu-memory-gb what has room)")
	p.StringVar(&f.adapter, "adapter", "auto",
		"WebLLM's WebGPU adapter: auto (a GPU where the machine has one), swiftshader or gpu")
	p.Float64Var(&f.bufferMiB, "max-buffer-mb", 0,
		"the adapter's largest buffer (maxBufferSize) in MiB (default: SwiftShader's 1024, of a GPU what WebLLM asks for)")
	p.Float64Var(&f.bindingMiB, "max-binding-mb", 0,
		"the adapter's largest storage binding (maxStorageBufferBindingSize) in MiB (default: as for --max-buffer-mb)")
	p.BoolVar(&f.noF16, "no-shader-f16", false, "the adapter has no shader-f16 (SwiftShader never has it)")
	p.StringVar(&f.mirror, "mirror", "",
		"an address or a folder with the public addresses' layout, to be asked for the sizes of a model of WebLLM's catalogue")
	p.IntVar(&s.MaxBatched, "max-num-batched-tokens", 0, "tokens that vLLM computes at a time (default 8192)")
	p.IntVar(&s.UBatch, "ubatch", 0, "tokens that llama.cpp computes at a time (default 512)")
	p.BoolVar(&s.NoFlash, "no-flash-attention", false, "llama.cpp without flash attention")
	p.IntVar(&s.PrefillChunk, "prefill-chunk", 0,
		"tokens of a prompt that WebLLM computes at a time (default: the package's, or 128)")
	p.Float64Var(&n.Parameters, "model-params", 0, "without MODEL: parameters, as in 6.7e9")
	p.IntVar(&n.Layers, "num-layers", 0, "without MODEL: layers")
	p.IntVar(&n.Heads, "num-heads", 0, "without MODEL: attention heads")
	p.IntVar(&n.KVHeads, "num-kv-heads", 0, "without MODEL: key-value heads (default: as many)")
	p.IntVar(&n.Hidden, "hidden-size", 0, "without MODEL: values of the hidden state")
	p.IntVar(&n.HeadDim, "head-dim", 0, "without MODEL: values of a head (default: the hidden state's, divided by the heads)")
	p.IntVar(&n.Vocab, "vocab-size", 0, "without MODEL: tokens of the vocabulary")
	p.IntVar(&n.Intermediate, "intermediate-size", 0, "without MODEL: values of the feed-forward part")
	p.Float64Var(&f.freeGiB, "free-gb", 0, "memory, or a GPU's, that is free, in GiB")
	_ = p.MarkHidden("free-gb") // --ram-gb and --gpu-memory-gb say more; this fails for unknown flags alone
	p.BoolVar(&f.asJSON, "json", false, "print it as JSON, for machines")
}

// given refuses a zero that was written, which would else count for nothing said.
func (f *estimateFlags) given(c *cobra.Command) error {
	for _, name := range []string{"context", "batch-size", "concurrency", "tensor-parallel-size", "group-size",
		"gpu-memory-utilization", "gpu-memory-gb", "model-params",
		"num-layers", "num-heads", "num-kv-heads", "hidden-size", "head-dim", "vocab-size", "intermediate-size",
		"ubatch", "prefill-chunk", "max-num-batched-tokens", "free-gb", "ram-gb", "gpu-layers", "max-buffer-mb",
		"max-binding-mb"} {
		if p := c.Flags().Lookup(name); p.Changed && p.Value.String() == "0" {
			return fault.New(fault.Usage, "leave it out, or give a number above 0", "--%s is 0", name)
		}
	}
	for name, value := range map[string]float64{"free-gb": f.freeGiB, "ram-gb": f.ramGiB,
		"max-buffer-mb": f.bufferMiB, "max-binding-mb": f.bindingMiB} {
		if !(value >= 0 && value <= 1<<20) {
			return fault.New(fault.Usage, "a number from 0 to 1048576 is right", "--%s is %g", name, value)
		}
	}
	if n := f.setup.GPULayers; n < 0 || n > 1<<14 {
		return fault.New(fault.Usage, "0 to 16384 are right", "--gpu-layers is %d", n)
	}
	f.setup.Repacks = estimate.Repacks()
	return nil
}

// estimateJSON has the names of memory profiles of schema 2.0 where they have one for it.
type estimateJSON struct {
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
	// Fits answers whether it fits; null where that is not known.
	Fits *bool `json:"fits"`
	// Available is what there is at the place that decides, and Spare what the model leaves of it. Below zero it is
	// what is missing.
	Available *int64 `json:"available_bytes,omitempty"`
	Spare     *int64 `json:"spare_bytes,omitempty"`
	// Reason says why it does not fit, why that is not known, or that it is tight.
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

func estimated(e estimate.Estimate) estimateJSON {
	m, s := e.Model, e.Setup
	j := estimateJSON{Schema: "2.0", Kind: "estimate",
		Units: map[string]string{"gb": "GiB (2^30 bytes)", "bytes": "over all devices"}, DTypes: e.DTypes,
		Engine: map[string]string{"engine_type": s.Engine}, Components: e.Components, KVPerToken: e.PerToken,
		Weights: e.ByFormat, Scales: e.ScaleBytes,
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
		if s.Engine == estimate.VLLM {
			j.GPU.Utilization = s.GPUUtilization
		}
		for _, n := range e.PerDevice {
			j.GPU.PerDevice = append(j.GPU.PerDevice, gibOf(n))
		}
	}
	return j
}

// judged adds the answer.
func (j estimateJSON) judged(r record.Risk, fit estimate.Fit) estimateJSON {
	j.Risk, j.Fits, j.Reason = &r, fit.Fits, fit.Reason
	if fit.Available > 0 {
		j.Available, j.Spare = &fit.Available, &fit.Spare
	}
	return j
}

func gibOf(bytes int64) float64 { return math.Round(float64(bytes)/(1<<30)*1e6) / 1e6 }

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// componentNames are the components' names for people.
var componentNames = map[string]string{
	estimate.Weights: "weights", estimate.KVReserved: "KV cache, reserved", estimate.KVUsed: "  of it used",
	estimate.Activation: "activations, workspaces",
	estimate.Framework:  "framework", estimate.MultiGPU: "several devices", estimate.Total: "total",
	estimate.TotalUsed: "total, KV cache as used",
	estimate.Increase:  "increase of PSS", estimate.Together: "weights, KV cache, workspaces",
}

func printEstimate(w io.Writer, e estimate.Estimate) {
	m, s := e.Model, e.Setup
	unit, divisor := "MiB", float64(record.MiB)
	if e.Component(estimate.Total).Best >= 4<<30 {
		unit, divisor = "GiB", 1<<30
	}
	fmt.Fprintf(w, "%s\n", strings.TrimSuffix(m.Name+": "+parametersOf(m)+shapeOf(m), ": "))
	fmt.Fprintf(w, "in %s: %s, room for %d tokens each, %d used%s\n", s.Engine, plural(e.Sequences, "sequence"),
		s.Context, e.Tokens, devicesOf(s))
	fmt.Fprintf(w, "weights in %s%s, activations in %s, KV cache in %s\n\n", e.DTypes.Weights, scalesOf(e),
		e.DTypes.Activations, orUnknown(e.DTypes.KVCache))
	fmt.Fprintf(w, "%-29s %10s  %21s  %-10s  %-6s  %s\n", "component", unit, "from … to", "figure", "trust", "dtype")
	for _, c := range e.Components {
		if c.Name == estimate.Total {
			fmt.Fprintln(w)
		}
		span := ""
		if c.Low != c.High {
			span = fmt.Sprintf("%s … %s", size(c.Low, divisor), size(c.High, divisor))
		}
		fmt.Fprintf(w, "%-29s %10s  %21s  %-10s  %-6s  %s\n", componentNames[c.Name], size(c.Best, divisor), span,
			c.Label,
			c.Confidence, c.DType)
	}
	fmt.Fprint(w, "\nNo figure is measured. Predicted ones lie in the range, calculated ones follow from sizes and dtypes.\n")
	fmt.Fprintf(w, "\nHow (1 GiB is 2^30 bytes, 1 MiB 2^20; sums over all devices)\n")
	for _, c := range e.Components {
		if c.Name != estimate.Total && c.Name != estimate.TotalUsed {
			fmt.Fprint(w, folded("- "+strings.TrimSpace(componentNames[c.Name])+": "+c.Method))
		}
	}
	if len(e.ByFormat) > 1 {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(e.ByFormat)) {
			words = append(words, name+" "+size(e.ByFormat[name], divisor)+" "+unit)
		}
		fmt.Fprint(w, folded("- weights by type: "+strings.Join(words, ", ")))
	}
	for _, warning := range e.Warnings {
		fmt.Fprint(w, folded("! "+warning))
	}
}

// folded breaks a line where a terminal of 120 columns would.
func folded(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if n := len([]rune(word)); column > 0 && column+1+n > 118 {
			b.WriteString("\n  ")
			column = 2
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len([]rune(word))
	}
	return b.String() + "\n"
}

// size has three digits at least that say something.
func size(bytes int64, divisor float64) string {
	switch v := float64(bytes) / divisor; {
	case v >= 1 || v == 0:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func parametersOf(m estimate.Model) string {
	if m.Parameters == 0 {
		return m.Type
	}
	text := fmt.Sprintf("%d parameters", m.Parameters)
	if m.Active > 0 && m.Active < m.Parameters {
		text += fmt.Sprintf(" (%d that a token passes)", m.Active)
	}
	if m.Type != "" {
		text = m.Type + ", " + text
	}
	return text
}

func shapeOf(m estimate.Model) string {
	if m.Layers == 0 || m.Heads == 0 {
		return ""
	}
	return fmt.Sprintf(", %d layers, hidden size %d, %d heads, %d for keys and values, of %d", m.Layers, m.Hidden,
		m.Heads, m.KVHeads, m.HeadDim)
}

func devicesOf(s estimate.Setup) string {
	if s.TensorParallel > 1 {
		return fmt.Sprintf("; on %d devices", s.TensorParallel)
	}
	return ""
}

func scalesOf(e estimate.Estimate) string {
	switch {
	case e.DTypes.Scales == "":
		return ""
	case e.ScaleBytes > 0:
		return fmt.Sprintf(" with %.1f MiB of scales in %s", float64(e.ScaleBytes)/record.MiB, e.DTypes.Scales)
	}
	return " with scales " + e.DTypes.Scales
}

func orUnknown(name string) string {
	if name == "" {
		return "an unknown type"
	}
	return name
}
