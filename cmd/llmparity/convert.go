package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/browser/webllm"
	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/whole"
)

func convertCommand() *cobra.Command {
	var to, out string
	var window int
	var f engineFlags
	c := &cobra.Command{
		Use:   "convert IN.gguf --to webllm|gguf",
		Short: "Write a model as a WebLLM package, or as a GGUF of the values that are in it",
		Long: `Write a GGUF's model as a WebLLM package with its library, or as another GGUF; both have float32 weights, whatever the
types in the file, unless a package is asked for in float16. A quantised model computes on other values natively (blocks times
blocks) than in the package; with both made of the same float32 GGUF, engines can be compared token by token.

What is written is IN-f32.gguf, or the folder IN-webllm, with -f16 behind it for --dtype f16 and -cN for --context N. One of that
name is replaced.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			say := func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			if f.dtype != webllm.F32 && f.dtype != webllm.F16 {
				return fault.New(fault.Usage, "choose f32 or f16", "--dtype %q", f.dtype)
			}
			if window < 0 || window == 1 {
				return fault.New(fault.Usage, "",
					"--context %d: at least 2 tokens are needed, or 0 for the model's own", window)
			}
			switch to {
			case "webllm":
				return writePackage(c.Context(), args[0], filepath.Join(out, packageName(args[0], f.dtype, window)),
					window, &f, say,
					c.OutOrStdout())
			case "gguf":
				for _, name := range []string{"context", "kernels", "sort", "dtype"} {
					if c.Flags().Changed(name) {
						return fault.New(fault.Usage, "",
							"--%s goes with --to webllm: a GGUF keeps what is the model's own, in float32", name)
					}
				}
				return writeGGUF(c.Context(), args[0], filepath.Join(out, stem(args[0])+"-f32.gguf"), c.OutOrStdout())
			}
			return fault.New(fault.Usage, "", "--to %q: webllm or gguf is needed", to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "what to write: webllm or gguf")
	c.Flags().StringVarP(&out, "output", "o", ".", "the folder to write into")
	f.register(c.Flags(), ofPackages)
	c.Flags().StringVar(&f.dtype, "dtype", webllm.F32,
		"WebLLM's weights, activations and KV cache: f32, or f16 (the adapter must have shader-f16)")
	c.Flags().IntVar(&window, "context", 0, "the package's context window in tokens (default, or 0: the model's own)")
	return c
}

// packageName tells packages of one model apart: what is in it but for the library, where it isn't the usual.
func packageName(path, dtype string, context int) string {
	name := stem(path) + "-webllm"
	if dtype == webllm.F16 {
		name += "-f16"
	}
	if context > 0 {
		name += fmt.Sprintf("-c%d", context)
	}
	return name
}

func stem(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// writeGGUF writes the model's values as float32, aside first: whoever opens target finds a whole model or none.
func writeGGUF(ctx context.Context, path, target string, w io.Writer) error {
	f, err := gguf.OpenReadable(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// What is no whole model by itself is refused here as everywhere, and so is a vocabulary that engines would read in
	// different ways.
	if _, err := f.Architecture(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return writeFault(err, target)
	}
	err = whole.Write(target, func(out io.Writer) error {
		return gguf.Write(whole.Until(ctx, out), gguf.AsFloat32(f.Metadata), f.Unquantised())
	})
	if err != nil {
		return writeFault(err, target)
	}
	sum, err := cache.HashFile(target)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s  %s\n", target, sum)
	return nil
}

func writeFault(err error, target string) error {
	return fault.WriteError(err, target, "name another folder with -o")
}
