package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/tiny"
)

func randomCommand() *cobra.Command {
	var s tiny.Spec
	var out string
	c := &cobra.Command{
		Use:   "random -o FILE",
		Short: "Write a model of any shape with random weights, without a download",
		Long: `Write a GGUF with random float32 weights in the shape that is asked for, the same file each time and everywhere.

It is for experiments that hang on a model's shape and not on what it says: how memory and speed grow with layers, with
key-value heads and their size (the KV cache takes 2 × layers × kv-heads × head-dim values a token), with context or with
the vocabulary, and whether engines agree on a feature. Every engine runs it like any other model; its text is varied and
means nothing. What is not asked for is small: 2 layers of 4 heads, a hidden size of 128, a context of 1024.`,
		Example: `  llmparity model random --layers 8 --hidden 512 --heads 8 --kv-heads 2 --context 4096 -o gqa.gguf
  llmparity model random --arch qwen2 --tied -o qwen2.gguf
  llmparity model random --head-dim 128 --hidden 256 --rope-scaling llama3 --tokenizer llama-bpe -o llama3.gguf`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := asked(c.Flags()); err != nil {
				return err
			}
			return writeRandom(c.Context(), out, s, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "random.gguf", "the file to write")
	f.StringVar(&s.Architecture, "arch", "", "llama or qwen2, which rotates otherwise and has biases (default llama)")
	f.IntVar(&s.Layers, "layers", 0, "layers (default 2)")
	f.IntVar(&s.Hidden, "hidden", 0, "values of the hidden state (default 128)")
	f.IntVar(&s.Heads, "heads", 0, "attention heads (default 4, or as many of --head-dim as fill the hidden state)")
	f.IntVar(&s.KVHeads, "kv-heads", 0, "key-value heads, which divide the heads (default: as many)")
	f.IntVar(&s.HeadDim, "head-dim", 0, "values of a head (default: the hidden state's, divided by the heads)")
	f.IntVar(&s.FFN, "ffn", 0, "values of the feed-forward part (default: twice the hidden state's)")
	f.IntVar(&s.Vocab, "vocab", 0, "tokens, 512 or more (default 640)")
	f.IntVar(&s.Context, "context", 0, "the longest text in tokens (default 1024)")
	f.IntVar(&s.Window, "window", 0, "a sliding window in tokens; llama.cpp doesn't keep to it (default: none)")
	f.BoolVar(&s.Tied, "tied", false, "the head is the embedding")
	f.BoolVar(&s.Bias, "bias", false, "biases of queries, keys and values in a llama too")
	f.Float64Var(&s.RopeBase, "rope-base", 0, "base of the rotation's frequencies (default 10000)")
	f.StringVar(&s.RopeScaling, "rope-scaling", "", "linear or llama3 (default: none)")
	f.Float64Var(&s.RopeFactor, "rope-factor", 0, "by what --rope-scaling stretches positions (default 8)")
	f.StringVar(&s.Tokenizer, "tokenizer",
		"", "gpt-2, smollm, llama-bpe, qwen2 or sentencepiece (default gpt-2; for qwen2 its own)")
	f.Uint64Var(&s.Seed, "seed", 0, "another seed gives other weights (default 1)")
	return c
}

// asked refuses numbers that would be taken for none given, and a factor of nothing.
func asked(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		switch kind := f.Value.Type(); {
		case err != nil || f.Name == "window": // 0 is none
		case kind != "int" && kind != "uint64" && kind != "float64":
		case strings.Trim(f.Value.String(), "0.-") == "":
			err = fault.New(fault.Usage, "leave it out for the default", "--%s %s: it must be more than 0", f.Name,
				f.Value)
		}
	})
	if err == nil && flags.Changed("rope-factor") && !flags.Changed("rope-scaling") {
		err = fault.New(fault.Usage, "add --rope-scaling linear or llama3",
			"--rope-factor says by what --rope-scaling stretches positions, and there is none")
	}
	return err
}

// writeRandom writes the model, and says where it is and what its hash is.
func writeRandom(ctx context.Context, path string, s tiny.Spec, w io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return writeFault(err, path)
	}
	if err := tiny.WriteRandomFile(ctx, path, s); err != nil {
		return err
	}
	sum, err := cache.HashFile(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s  %s\n", path, sum)
	return err
}
