package main

import (
	"github.com/spf13/cobra"

	"llmparity/internal/fault"
	"llmparity/internal/tiny"
)

func randomCommand() *cobra.Command {
	var s tiny.Spec
	var out string
	c := &cobra.Command{
		Use:   "random -o FILE",
		Short: "Create a model of any shape with random weights",
		Long: `Create a GGUF file of any shape with random float32 weights. The same flags give the same file everywhere.

Use it to measure how memory and speed depend on layers, heads, context window or vocabulary, and
whether engines agree on a feature of the architecture. The generated text is meaningless.`,
		Example: `  llmparity model random --layers 8 --hidden 512 --heads 8 --kv-heads 2 -o gqa.gguf
  llmparity model random --arch qwen2 --tied -o qwen2.gguf`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := refuseZeros(c.Flags(), "window"); err != nil {
				return err
			}
			if c.Flags().Changed("rope-factor") && !c.Flags().Changed("rope-scaling") {
				return fault.New(fault.Usage, "", "--rope-factor requires --rope-scaling")
			}
			return writeModel(out, c.OutOrStdout(), func() error { return tiny.WriteRandomFile(c.Context(), out, s) })
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "random.gguf", "file to write")
	f.StringVar(&s.Architecture, "arch", "", "architecture: llama, qwen2, qwen3, gemma2, gemma3 or phi3 (default llama)")
	f.IntVar(&s.Layers, "layers", 0, "number of layers (default 2)")
	f.IntVar(&s.Hidden, "hidden", 0, "size of the hidden state (default 128)")
	f.IntVar(&s.Heads, "heads", 0, "number of attention heads (default 4, or hidden size / --head-dim)")
	f.IntVar(&s.KVHeads, "kv-heads", 0, "number of key-value heads; must divide --heads (default: --heads)")
	f.IntVar(&s.HeadDim, "head-dim", 0, "size of a head (default: hidden size / heads)")
	f.IntVar(&s.FFN, "ffn", 0, "size of the feed-forward layer (default: 2 * hidden size)")
	f.IntVar(&s.Vocab, "vocab", 0, "size of the vocabulary, at least 512 (default 640)")
	f.IntVar(&s.Context, "context", 0, "maximum context in tokens (default 1024)")
	f.IntVar(&s.Window, "window", 0, "sliding window in tokens; llama.cpp ignores that of a llama or phi3 (default none)")
	f.Float64Var(&s.AttentionCap, "attention-cap", 0, "soft cap of attention scores, of gemma2 (default none)")
	f.Float64Var(&s.OutputCap, "output-cap", 0, "soft cap of logits, of gemma2 and gemma3 (default none)")
	f.BoolVar(&s.Tied, "tied", false, "the output head shares the embedding's weights")
	f.BoolVar(&s.Bias, "bias", false, "add biases to queries, keys and values (qwen2 always has them)")
	f.BoolVar(&s.Fused, "fused", false, "store queries, keys and values as one tensor (phi3 always does)")
	f.Float64Var(&s.RopeBase, "rope-base", 0, "RoPE base frequency (default 10000)")
	f.Float64Var(&s.LocalBase, "local-base", 0, "RoPE base of a gemma3's layers with a window (default 10000)")
	f.IntVar(&s.RotaryDim, "rotary-dim", 0, "values of a phi3's head that are rotated (default all)")
	f.StringVar(&s.RopeScaling, "rope-scaling", "", "RoPE scaling: linear, llama3 or, of phi3, longrope (default none)")
	f.Float64Var(&s.RopeFactor, "rope-factor", 0, "factor of --rope-scaling (default 8)")
	f.StringVar(&s.Tokenizer, "tokenizer",
		"", "tokenizer: gpt-2, smollm, llama-bpe, qwen2 or sentencepiece (default that of the architecture, gpt-2 for llama)")
	f.Uint64Var(&s.Seed, "seed", 0, "random seed (default 1)")
	return c
}
