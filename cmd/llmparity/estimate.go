package main

import (
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/fit"
	"llmparity/internal/kinds"
)

// estimateFlags are those of llmparity estimate.
type estimateFlags struct {
	fit.Question
	asJSON bool
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
			a.Print(c.OutOrStdout())
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
	p.StringVar(&f.Engine, "engine", "", "whose way with memory: "+strings.Join(names, ", ")+
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
	p.Float64Var(&f.RAMGiB, "ram-gb", 0,
		"the machine's memory that the engine may take, in GiB (default: what is free here)")
	p.IntVar(&s.GPULayers, "gpu-layers", 0,
		"layers that llama.cpp or Ollama puts on a GPU (default: none, and in Ollama with --gpu-memory-gb what has room)")
	p.StringVar(&f.Adapter, "adapter", "auto",
		"WebLLM's WebGPU adapter: auto (a GPU where the machine has one), swiftshader or gpu")
	p.Float64Var(&f.BufferMiB, "max-buffer-mb", 0,
		"the adapter's largest buffer (maxBufferSize) in MiB (default: SwiftShader's 1024, of a GPU what WebLLM asks for)")
	p.Float64Var(&f.BindingMiB, "max-binding-mb", 0,
		"the adapter's largest storage binding (maxStorageBufferBindingSize) in MiB (default: as for --max-buffer-mb)")
	p.BoolVar(&f.NoF16, "no-shader-f16", false, "the adapter has no shader-f16 (SwiftShader never has it)")
	p.StringVar(&f.Mirror, "mirror", "",
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
	p.Float64Var(&f.FreeGiB, "free-gb", 0, "memory, or a GPU's, that is free, in GiB")
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
	for name, value := range map[string]float64{"free-gb": f.FreeGiB, "ram-gb": f.RAMGiB,
		"max-buffer-mb": f.BufferMiB, "max-binding-mb": f.BindingMiB} {
		if !(value >= 0 && value <= 1<<20) {
			return fault.New(fault.Usage, "a number from 0 to 1048576 is right", "--%s is %g", name, value)
		}
	}
	if n := f.Setup.GPULayers; n < 0 || n > 1<<14 {
		return fault.New(fault.Usage, "0 to 16384 are right", "--gpu-layers is %d", n)
	}
	f.Setup.Repacks = estimate.Repacks()
	return nil
}
