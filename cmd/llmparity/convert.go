package main

import (
	"context"
	"fmt"
	"io"
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
		Short: "Convert a GGUF file to a WebLLM package, or to a float32 GGUF file",
		Long: `Convert a GGUF file to a WebLLM package with its model library, or to a GGUF file with float32 weights.

To compare a quantised model token by token, convert it to a float32 GGUF file first, and make the
package from that file: quantised weights are computed differently in the browser and natively.

Output: IN-f32.gguf, or the folder IN-webllm (-f16 with --dtype f16, -cN with --context N). An existing
one is replaced.

Docs: ` + docsModels,
		Example: `  llmparity model convert my.gguf --to webllm
  llmparity model convert my-q4_0.gguf --to gguf -o models`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			say := func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			if f.dtype != webllm.F32 && f.dtype != webllm.F16 {
				return fault.New(fault.Usage, "use f32 or f16", "--dtype: unknown dtype %q", f.dtype)
			}
			if window < 0 || window == 1 {
				return fault.New(fault.Usage, "", "--context %d: must be at least 2, or 0 for the model's maximum", window)
			}
			switch to {
			case "webllm":
				return writePackage(c.Context(), args[0], filepath.Join(out, packageName(args[0], f.dtype, window)),
					window, &f, say,
					c.OutOrStdout())
			case "gguf":
				for _, name := range []string{"context", "kernels", "sort", "dtype"} {
					if c.Flags().Changed(name) {
						return fault.New(fault.Usage, "", "--%s requires --to webllm", name)
					}
				}
				return writeGGUF(c.Context(), args[0], filepath.Join(out, stem(args[0])+"-f32.gguf"), c.OutOrStdout())
			}
			return fault.New(fault.Usage, "use webllm or gguf", "--to: unknown format %q", to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "format to convert to: webllm or gguf")
	c.Flags().StringVarP(&out, "output", "o", ".", "folder to write into")
	f.register(c.Flags(), ofPackages)
	c.Flags().StringVar(&f.dtype, "dtype", webllm.F32,
		"dtype of weights, activations and KV cache: f32 or f16 (needs shader-f16)")
	c.Flags().IntVar(&window, "context", 0, "context window of the package in tokens (default: the model's maximum)")
	return c
}

// packageName distinguishes packages of the same model by dtype and context window.
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

// writeGGUF writes the model's values as float32, atomically.
func writeGGUF(ctx context.Context, path, target string, w io.Writer) error {
	f, err := gguf.OpenReadable(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// Refuse an incomplete model, and a vocabulary that engines would read in different ways.
	if _, err := f.Architecture(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	var bytes int64
	for _, t := range f.Tensors {
		bytes += 4 * t.Elements()
	}
	if err := cache.Free(filepath.Dir(target), bytes, chooseFolder); err != nil {
		return err
	}
	return writeModel(target, w, func() error {
		err := whole.Write(target, func(out io.Writer) error {
			return gguf.Write(whole.Until(ctx, out), gguf.AsFloat32(f.Metadata), f.Unquantised())
		})
		if err != nil {
			return writeFault(err, target)
		}
		return nil
	})
}

const chooseFolder = "name another folder with -o"

func writeFault(err error, target string) error { return fault.WriteError(err, target, chooseFolder) }
