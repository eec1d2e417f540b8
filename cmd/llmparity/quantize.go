package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/dtype"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/native/llamacpp"
)

func quantizeCommand() *cobra.Command {
	var to string
	q := llamacpp.Quantizer{Cache: cache.Dir(os.Getenv)}
	c := &cobra.Command{
		Use:   "quantize IN.gguf [OUT.gguf] --to TYPE",
		Short: "Quantize a GGUF file with llama.cpp",
		Long: `Quantize a GGUF file with llama.cpp's llama-quantize: to Q4_K_M, Q8_0 or any other type that it lists. IN is a file or
a name as in run --model. OUT is by default IN-TYPE.gguf in the current folder. An existing file is replaced,
once the new one is whole.

K types need rows of a multiple of 256 values. llama.cpp stores other tensors in another type; the output lists
how many tensors have which type.

Docs: docs/howto/use-your-own-model.md`,
		Example: `  llmparity model quantize my-f16.gguf --to Q4_K_M
  llmparity model quantize my-f16.gguf models/my.gguf --to Q8_0`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return fault.New(fault.Usage, "name one, such as --to Q4_K_M", "--to: no type")
			}
			return quantize(c, q, to, args[0], strings.Join(args[1:], ""))
		},
	}
	c.Flags().StringVar(&to, "to", "", "type of the weights, such as Q4_K_M")
	c.Flags().StringVar(&q.Path, "llama-quantize", "", "path of llama-quantize (default: $"+llamacpp.QuantizeVariable+
		", then PATH, then the build of scripts/setup llamacpp-tools)")
	c.Flags().BoolVar(&q.Again, "allow-requantize", false,
		"quantize weights again that are quantized already; that loses more than quantizing the original")
	return c
}

// quantize writes a file with weights of another type. An empty out is a name in the current folder.
func quantize(c *cobra.Command, q llamacpp.Quantizer, to, in, out string) error {
	program, err := q.Find()
	if err != nil {
		return err
	}
	if to, err = q.Type(c.Context(), program, to); err != nil {
		return err
	}
	path, size, err := quantizable(in, q.Again)
	if err != nil {
		return err
	}
	title := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	out = cmp.Or(out, title+"-"+to+".gguf")
	if info, err := os.Stat(out); err == nil {
		if was, err := os.Stat(path); err == nil && os.SameFile(info, was) {
			return fault.New(fault.Usage, "name another file", "%s is the model that is read", out)
		}
	}
	if err := cache.Free(filepath.Dir(out), size, "name another file"); err != nil {
		return err
	}
	said(c)("quantizing with " + program)
	var warnings []string
	err = writeModel(c, out, func() error {
		warnings, err = q.Write(c.Context(), program, path, out, to)
		return fault.WriteError(err, out, "name another file")
	})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		said(c)("llama.cpp: " + w)
	}
	return printTypes(c, out)
}

// quantizable finds a GGUF file that can be quantized, and its size.
func quantizable(name string, again bool) (path string, size int64, err error) {
	if models.Listed(name) {
		return "", 0, fault.New(fault.BadModel, "convert it first with `llmparity model convert "+name+" --to gguf`",
			"%s is not a GGUF file", name)
	}
	if path, err = models.Path(name); err != nil {
		return "", 0, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if err := f.Whole(); err != nil {
		return "", 0, err
	}
	if d, ok := dtype.Named(f.DType()); !again && (!ok || !d.Float()) {
		return "", 0, fault.New(fault.Usage, "quantize the original F32, F16 or BF16 file, or give --allow-requantize",
			"%s is quantized already (%s)", path, f.DType())
	}
	return f.Paths()[0], f.Size, nil
}

// printTypes prints how many tensors of a file have which type.
func printTypes(c *cobra.Command, path string) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tensors := map[string]int{}
	for _, t := range f.Tensors {
		tensors[t.Type.String()]++
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		all = append(all, fmt.Sprintf("%d %s", tensors[name], name))
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "tensors: %s\n", strings.Join(all, ", "))
	return err
}
