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
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/tiny"
)

func modelCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Make, list and inspect models",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listCommand(), tinyCommand(), randomCommand(), convertCommand(), infoCommand())
	return c
}

func tinyCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "tiny",
		Short: "Write the tiny model: a GGUF, and a WebLLM package of the same weights",
		Long: `Write the tiny model, the same bytes on every machine: tiny.gguf, and the folder webllm with the same weights as a
WebLLM package. Its compiled library, webllm/lib.wasm, needs Python and emscripten once (` + "`make setup`" + `).`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return writeTiny(c.Context(), out, func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }, c.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&out, "output", "o", ".", "the folder to write into")
	return c
}

func writeTiny(ctx context.Context, out string, say func(string), w io.Writer) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return writeFault(err, out)
	}
	path := filepath.Join(out, "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s  %s\n", path, tiny.SHA256)
	return writePackage(ctx, path, filepath.Join(out, "webllm"), 0, new(engineFlags), say, w)
}

// writePackage writes a model's WebLLM package, and its library as lib.wasm in the same folder. A context of 0 is the
// model's own.
func writePackage(ctx context.Context, path, target string, context int, f *engineFlags, say func(string),
	w io.Writer) error {
	m, err := model.Open(path, context)
	if err == nil {
		err = m.Unsupported
	}
	if err != nil {
		return err
	}
	// A folder that can't be written to is told before anything is compiled for it.
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

// writable says why a package can't be made at target.
func writable(target string) error {
	if info, err := os.Stat(target); err == nil && !info.IsDir() {
		return writeFault(errors.New("it is there and no folder"), target)
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
