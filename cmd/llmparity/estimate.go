package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/browser"
	"llmparity/cmd/llmparity/help"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/predict/fit"
)

// estimateFlags are the flags of estimate.
type estimateFlags struct {
	fit.Question
	engines         []string
	contexts        []int
	asJSON, details bool
}

func estimateCommand() *cobra.Command {
	var f estimateFlags
	c := &cobra.Command{
		Use:   "estimate [MODEL...]",
		Short: "Predict how much memory a model needs, before you run it",
		Long: `Predict how much memory a model needs in an engine, and whether it fits. No engine is started.

The first line is the answer: fits, does not fit, cannot run here, or unknown, with the reason. A table below it splits
the memory into weights, KV cache, activations and the engine itself. The exit code is 0 for every answer.

MODEL is one of: a GGUF file, a WebLLM package's folder, a Hugging Face config.json or its folder, an id of
WebLLM's catalogue, or the name tiny or smollm2. Without MODEL, describe the model with flags.
How memory is predicted: docs/explanation/prediction.md`,
		Example: `  llmparity estimate my.gguf --engine webllm --ram-gb 8
  llmparity estimate my.gguf --engine webllm,llamacpp --context 2048,8192
  llmparity estimate Llama-3.2-1B-Instruct-q4f16_1-MLC --gpu-memory-gb 6
  llmparity estimate config.json --engine vllm --tensor-parallel-size 4 --concurrency 64
  llmparity estimate --model-params 6.7e9 --num-layers 32 --num-heads 32 --hidden-size 4096`,
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.given(c); err != nil {
				return err
			}
			f.Catalogue = builtInCatalogue
			return f.ask(c, orOne(args))
		},
	}
	f.add(c)
	return c
}

// ask answers for each model, in each engine, with each context.
func (f *estimateFlags) ask(c *cobra.Command, models []string) error {
	engines, contexts, out := orOne(f.engines), orOne(f.contexts), c.OutOrStdout()
	if n := len(models) * len(engines) * len(contexts); f.details && n > 1 {
		return fault.New(fault.Usage, "name one model, engine and context", "--details is for one estimate, not for %d", n)
	}
	first := true
	for _, model := range models {
		for _, name := range engines {
			for i, context := range contexts {
				q := f.Question
				q.Engine, q.Setup.Context = name, context
				a, err := q.Ask(c.Context(), model, c.Flags().Changed)
				if err != nil {
					return err
				}
				if i == 0 && !first && !f.asJSON {
					fmt.Fprintln(out)
				}
				switch first = false; {
				case f.asJSON:
					err = printJSON(out, a.JSON())
				case len(contexts) > 1:
					a.Row(out, i == 0, i == len(contexts)-1)
				default:
					a.Print(out, f.details)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// orOne returns a list, or one zero value instead of none.
func orOne[T any](list []T) []T {
	if len(list) == 0 {
		return make([]T, 1)
	}
	return list
}

func (f *estimateFlags) add(c *cobra.Command) {
	s, n := &f.Setup, &f.Numbers
	p := c.Flags()
	f.Engines = kinds.All.Memories()
	var names []string
	for _, e := range f.Engines {
		names = append(names, e.Name)
	}
	p.StringSliceVar(&f.engines, "engine", nil,
		"engine, or several: "+strings.Join(names, ", ")+" (default: by the kind of model)")
	p.BoolVar(&f.details, "details", false, "also show how each size is calculated, and the need and the limit of each kind of memory")
	p.BoolVar(&f.asJSON, "json", false, "print JSON")
	p.StringVar(&f.Mirror, "mirror", "", mirrorHelp)

	p.IntSliceVar(&f.contexts, "context", nil, "context window in tokens, or several for a row each, e.g. 2048,8192 (default: 4096, or the model's maximum if smaller, or prompt plus output if larger)")
	p.IntVar(&s.InputLen, "input-len", 0, "prompt length in tokens")
	p.IntVar(&s.OutputLen, "output-len", 0, "output length in tokens")
	p.IntVar(&s.BatchSize, "batch-size", 0, "sequences per request (default 1)")
	p.IntVar(&s.Concurrency, "concurrency", 0, "concurrent requests (default 1)")
	help.Under(p, "Request", "context input-len output-len batch-size concurrency")

	p.Float64Var(&f.RAMGiB, "ram-gb", 0, "RAM in GiB that the engine may use (default: the free RAM of this machine)")
	p.Float64Var(&s.GPUMemoryGiB, "gpu-memory-gb", 0, "memory in GiB that the engine may use on each GPU (default: the free memory of this machine's GPUs)")
	p.IntVar(&s.GPULayers, "gpu-layers", 0, "llama.cpp, Ollama: number of layers on a GPU (default: none; Ollama with --gpu-memory-gb: as many as fit)")
	p.IntVar(&s.TensorParallel, "tensor-parallel-size", 0, "number of GPUs (default 1)")
	p.StringVar(&f.Adapter, "adapter", "auto", "WebLLM's WebGPU adapter: auto, swiftshader, lavapipe or gpu")
	p.Float64Var(&f.Machine.BufferMiB, "max-buffer-mb", 0, "WebGPU limit maxBufferSize in MiB (default: on the CPU SwiftShader's limit, on a GPU the limit that WebLLM requests)")
	p.Float64Var(&f.Machine.BindingMiB, "max-binding-mb", 0, "WebGPU limit maxStorageBufferBindingSize in MiB")
	p.BoolVar(&f.Machine.NoF16, "no-shader-f16", false, "assume a WebGPU adapter without shader-f16")
	help.Under(p, "Machine", "ram-gb gpu-memory-gb gpu-layers tensor-parallel-size adapter max-buffer-mb max-binding-mb no-shader-f16")

	p.StringVar(&s.DType, "dtype", "", "dtype of activations and unquantized weights: float32, float16 or bfloat16 (default: the model's dtype)")
	p.StringVar(&s.KVDType, "kv-cache-dtype", "", "KV cache dtype, e.g. float16, fp8, q8_0 (default: as \"run\" starts the engine)")
	p.StringVar(&s.Quantization, "quantization", "", "format of weights, e.g. awq, gptq, fp8, q4_k_m, q4f16_1 (default: the model's format)")
	p.IntVar(&s.GroupSize, "group-size", 0, "awq, gptq: number of values that share a scale (default 128)")
	help.Under(p, "Data types", "dtype kv-cache-dtype quantization group-size")

	var own []string
	for _, o := range estimate.Settings() {
		flag := p.VarPF(estimate.Flag{Setting: o, Of: s}, o.Flag, "", o.Help)
		if flag.Value.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
		own = append(own, o.Flag)
	}
	help.Under(p, "Engine settings", strings.Join(own, " "))

	p.Float64Var(&n.Parameters, "model-params", 0, "number of parameters, e.g. 6.7e9")
	p.IntVar(&n.Layers, "num-layers", 0, "number of layers")
	p.IntVar(&n.Heads, "num-heads", 0, "number of attention heads")
	p.IntVar(&n.KVHeads, "num-kv-heads", 0, "number of key-value heads (default: --num-heads)")
	p.IntVar(&n.Hidden, "hidden-size", 0, "size of the hidden state")
	p.IntVar(&n.HeadDim, "head-dim", 0, "size of a head (default: hidden size / heads)")
	p.IntVar(&n.Vocab, "vocab-size", 0, "size of the vocabulary")
	p.IntVar(&n.Intermediate, "intermediate-size", 0, "size of the feed-forward layer")
	help.Under(p, "Model without a file",
		"model-params num-layers num-heads num-kv-heads hidden-size head-dim vocab-size intermediate-size")
}

// given refuses numbers that are out of range.
func (f *estimateFlags) given(c *cobra.Command) error {
	if err := refuseZeros(c.Flags(), "input-len", "output-len"); err != nil {
		return err
	}
	if slices.Contains(f.contexts, 0) {
		return fault.New(fault.Usage, "omit it, or give a number above 0", "--context is 0")
	}
	for name, value := range map[string]float64{"ram-gb": f.RAMGiB,
		"max-buffer-mb": f.Machine.BufferMiB, "max-binding-mb": f.Machine.BindingMiB} {
		if !(value >= 0 && value <= 1<<20) {
			return fault.New(fault.Usage, "use 0 to 1048576", "--%s is %g", name, value)
		}
	}
	if n := f.Setup.GPULayers; n < 0 || n > 1<<14 {
		return fault.New(fault.Usage, "use 0 to 16384", "--gpu-layers is %d", n)
	}
	estimate.Change(&f.Setup, func(g *estimate.GGMLSettings) { g.Repacks = estimate.Repacks() })
	f.Machine.NoGPU = browser.Auto.Software
	return nil
}
