package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"llmparity/browser/webllm"
	"llmparity/internal/cache"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/tiny"
)

func modelCommand() *cobra.Command {
	c := parent("model", "List, inspect, convert and create models", listCommand(), infoCommand(), convertCommand(),
		tinyCommand(), randomCommand())
	c.Example = "  llmparity model list Llama\n  llmparity model convert my.gguf --to webllm"
	return c
}

func tinyCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "tiny",
		Short: "Write the built-in tiny model (random weights) as GGUF file and WebLLM package",
		Long: `Write the built-in tiny model as tiny.gguf and as a WebLLM package (folder webllm) with the same weights.
Its weights are random, and the files are the same on every machine. Compiling the model library needs
Python and Emscripten ("make setup").`,
		Example: "  llmparity model tiny\n  llmparity model tiny -o models",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return writeTiny(c.Context(), out, func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }, c.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&out, "output", "o", ".", "folder to write into")
	return c
}

func writeTiny(ctx context.Context, out string, say func(string), w io.Writer) error {
	path := filepath.Join(out, "tiny.gguf")
	if err := writeModel(path, w, func() error { return tiny.WriteFile(path) }); err != nil {
		return err
	}
	return writePackage(ctx, path, filepath.Join(out, "webllm"), 0, new(engineFlags), say, w)
}

// writeModel writes a file into a folder, which it makes, and prints its path and hash.
func writeModel(path string, w io.Writer, write func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return writeFault(err, path)
	}
	if err := write(); err != nil {
		return err
	}
	sum, err := cache.HashFile(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s  %s\n", path, sum)
	return err
}

// writePackage writes a WebLLM package with its model library, lib.wasm. A context of 0 is the model's maximum.
func writePackage(ctx context.Context, path, target string, context int, f *engineFlags, say func(string),
	w io.Writer) error {
	m, err := model.Open(path, context)
	if err == nil {
		err = m.Unsupported
	}
	if err != nil {
		return err
	}
	// Compiling takes minutes: check the folder first.
	if err := writable(target); err != nil {
		return err
	}
	c := f.chosen().Config(webllm.Kind).(*webllm.Config)
	s := f.chosen().Settings
	s.DType = f.dtype
	if err := webllm.Write(ctx, m, target, *c, s, say); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s/\n%s\n", target, filepath.Join(target, mlc.LibraryName))
	return nil
}

// writable returns the reason why a package cannot be written to target.
func writable(target string) error {
	if info, err := os.Stat(target); err == nil && !info.IsDir() {
		return writeFault(errors.New("not a folder"), target)
	}
	parent := filepath.Dir(target)
	err := os.MkdirAll(parent, 0o755)
	if err == nil {
		var probe string
		if probe, err = os.MkdirTemp(parent, ".probe-*"); err == nil {
			err = os.Remove(probe)
		}
	}
	if err != nil {
		return writeFault(err, target)
	}
	return nil
}
