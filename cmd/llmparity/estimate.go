package main

import (
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/fit"
	"llmparity/internal/kinds"
)

// estimateFlags are the flags of llmparity estimate.
type estimateFlags struct {
	fit.Question
	asJSON, details bool
}

func estimateCommand() *cobra.Command {
	var f estimateFlags
	c := &cobra.Command{
		Use:   "estimate [MODEL]",
		Short: "Predict how much memory a model needs, before you run it",
		Long: `Predict how much memory a model needs in an engine, and whether it fits into this machine or into one that
--ram-gb, --gpu-memory-gb and the WebGPU limits describe. The first line answers. A table of the components follows.
Nothing is started or measured. The exit code is 0 whatever the answer; with --json, read "fits".

MODEL is a name as in run --model (tiny, smollm2, an id of WebLLM's catalogue), a GGUF file, the folder of a WebLLM
package, a Hugging Face config.json or its folder, or a .safetensors file. Without MODEL, give the sizes by flags.

WebLLM keeps the model in GPU memory, or in main memory if the adapter is SwiftShader. It dequantises a GGUF to f32, or
to f16 with --dtype f16. llama.cpp offloads --gpu-layers to the GPU; Ollama offloads what fits.`,
		Example: `  llmparity estimate my.gguf --engine webllm --ram-gb 8
  llmparity estimate Llama-3.2-1B-Instruct-q4f16_1-MLC --gpu-memory-gb 6`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.given(c); err != nil {
				return err
			}
			f.Catalogue = builtInCatalogue
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			a, err := f.Ask(c.Context(), name, c.Flags().Changed)
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(c.OutOrStdout(), a.JSON())
			}
			a.Print(c.OutOrStdout(), f.details)
			return nil
		},
	}
	f.add(c)
	return c
}

func (f *estimateFlags) add(c *cobra.Command) {
	s, n := &f.Setup, &f.Numbers
	p := c.Flags()
	f.Engines = append(kinds.All.Memories(), estimate.VLLM, estimate.Transformers)
	var names []string
	for _, e := range f.Engines {
		names = append(names, e.Name)
	}
	p.StringVar(&f.Engine, "engine", "", "engine: "+strings.Join(names, ", ")+
		" (default: by the kind of model)")
	p.IntVar(&s.Context, "context", 0, "context window in tokens (default: the length of the text, or the model's maximum up to 4096)")
	p.IntVar(&s.InputLen, "input-len", 0, "length of the prompt in tokens")
	p.IntVar(&s.OutputLen, "output-len", 0, "tokens to generate")
	p.IntVar(&s.BatchSize, "batch-size", 0, "sequences per request (default 1)")
	p.IntVar(&s.Concurrency, "concurrency", 0, "simultaneous requests: the slots of Ollama and llama-server (default 1)")
	p.StringVar(&s.DType, "dtype", "", "dtype of unquantised weights and activations: float32, float16, bfloat16 (default: the model's)")
	p.StringVar(&s.KVDType, "kv-cache-dtype", "",
		"KV cache dtype: float32, float16, bfloat16, fp8, int8, q8_0, q4_0 … (default: the engine's)")
	p.StringVar(&s.Quantization, "quantization",
		"", "format of the weights: awq, gptq, fp8, int8, bitsandbytes, mxfp4, q4_0, q4_k_m, q4f16_1 … (default: the model's)")
	p.IntVar(&s.GroupSize, "group-size", 0, "values per scale in awq and gptq (default 128)")
	p.IntVar(&s.TensorParallel, "tensor-parallel-size", 0, "number of GPUs (default 1)")
	p.Float64Var(&s.GPUUtilization, "gpu-memory-utilization",
		0, "share of the GPU memory that vLLM reserves (default 0.9)")
	p.Float64Var(&s.GPUMemoryGiB, "gpu-memory-gb", 0, "memory of each GPU in GiB (default: what is free now)")
	p.Float64Var(&f.RAMGiB, "ram-gb", 0,
		"main memory for the engine in GiB (default: what is available now)")
	p.IntVar(&s.GPULayers, "gpu-layers", 0,
		"layers on the GPU in llama.cpp or Ollama (default: none; in Ollama with --gpu-memory-gb, all that fit)")
	p.StringVar(&f.Adapter, "adapter", "auto",
		"WebLLM's WebGPU adapter: auto (a GPU if the machine has one), swiftshader or gpu")
	p.Float64Var(&f.BufferMiB, "max-buffer-mb", 0,
		"the adapter's maxBufferSize in MiB (default 1024)")
	p.Float64Var(&f.BindingMiB, "max-binding-mb", 0,
		"the adapter's maxStorageBufferBindingSize in MiB (default 1024)")
	p.BoolVar(&f.NoF16, "no-shader-f16", false, "the adapter lacks shader-f16 (SwiftShader always does)")
	p.StringVar(&f.Mirror, "mirror", "",
		"URL or folder of a mirror that has the sizes of models in WebLLM's catalogue")
	p.IntVar(&s.MaxBatched, "max-num-batched-tokens", 0, "tokens that vLLM computes at a time (default 8192)")
	p.IntVar(&s.UBatch, "ubatch", 0, "tokens that llama.cpp computes at a time (default 512)")
	p.BoolVar(&s.NoFlash, "no-flash-attention", false, "llama.cpp without flash attention")
	p.IntVar(&s.PrefillChunk, "prefill-chunk", 0,
		"prompt tokens that WebLLM computes at a time (default: the package's, or 128)")
	p.Float64Var(&n.Parameters, "model-params", 0, "without MODEL: number of parameters, such as 6.7e9")
	p.IntVar(&n.Layers, "num-layers", 0, "without MODEL: layers")
	p.IntVar(&n.Heads, "num-heads", 0, "without MODEL: attention heads")
	p.IntVar(&n.KVHeads, "num-kv-heads", 0, "without MODEL: key-value heads (default: as many as heads)")
	p.IntVar(&n.Hidden, "hidden-size", 0, "without MODEL: hidden size")
	p.IntVar(&n.HeadDim, "head-dim", 0, "without MODEL: head size (default: hidden size / heads)")
	p.IntVar(&n.Vocab, "vocab-size", 0, "without MODEL: vocabulary size")
	p.IntVar(&n.Intermediate, "intermediate-size", 0, "without MODEL: feed-forward size")
	p.Float64Var(&f.FreeGiB, "free-gb", 0, "free memory, RAM or GPU, in GiB")
	_ = p.MarkHidden("free-gb") // replaced by --ram-gb and --gpu-memory-gb, kept for old scripts
	p.BoolVar(&f.details, "details", false, "show how each size is found, and the need of each place")
	p.BoolVar(&f.asJSON, "json", false, "print JSON")
}

// given refuses an explicit zero, which would otherwise mean the default.
func (f *estimateFlags) given(c *cobra.Command) error {
	for _, name := range []string{"context", "batch-size", "concurrency", "tensor-parallel-size", "group-size",
		"gpu-memory-utilization", "gpu-memory-gb", "model-params",
		"num-layers", "num-heads", "num-kv-heads", "hidden-size", "head-dim", "vocab-size", "intermediate-size",
		"ubatch", "prefill-chunk", "max-num-batched-tokens", "free-gb", "ram-gb", "gpu-layers", "max-buffer-mb",
		"max-binding-mb"} {
		if p := c.Flags().Lookup(name); p.Changed && p.Value.String() == "0" {
			return fault.New(fault.Usage, "omit it, or give a number above 0", "--%s is 0", name)
		}
	}
	for name, value := range map[string]float64{"free-gb": f.FreeGiB, "ram-gb": f.RAMGiB,
		"max-buffer-mb": f.BufferMiB, "max-binding-mb": f.BindingMiB} {
		if !(value >= 0 && value <= 1<<20) {
			return fault.New(fault.Usage, "use 0 to 1048576", "--%s is %g", name, value)
		}
	}
	if n := f.Setup.GPULayers; n < 0 || n > 1<<14 {
		return fault.New(fault.Usage, "use 0 to 16384", "--gpu-layers is %d", n)
	}
	f.Setup.Repacks = estimate.Repacks()
	return nil
}
