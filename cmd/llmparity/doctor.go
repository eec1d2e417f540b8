package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/doctor"
	"llmparity/internal/kinds"
)

func doctorCommand() *cobra.Command {
	var f engineFlags
	var asJSON bool
	var o doctor.Options
	c := &cobra.Command{
		Use:     "doctor",
		Aliases: []string{"env"},
		Short:   "Check what can run here and how to install the rest",
		Long: `Check what can run here, and how to install what is missing: browsers, WebGPU, llama.cpp, Ollama,
the compiler of model libraries, GPUs. The exit code is 4 if the default run, or an engine that a flag
names, needs something that is missing.

Docs: docs/howto/check-a-machine.md`,
		Example: "  llmparity doctor\n  llmparity doctor --openai-url http://127.0.0.1:8000",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			o.Kinds, o.Choice, o.Tool, o.Cache = kinds.All, f.chosen(), tool(), f.chosen().Settings.Cache
			d := doctor.Examine(c.Context(), o)
			if err := context.Cause(c.Context()); err != nil {
				return err
			}
			if err := show(c.OutOrStdout(), d, asJSON); err != nil {
				return err
			}
			return d.Err()
		},
	}
	f.register(c.Flags(), ofParts)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&o.Quick, "quick", false, "start no browser; WebGPU is not checked")
	c.Flags().BoolVar(&o.Servers, "servers", false,
		"also look for model servers on the usual local ports")
	return c
}

// show prints a result as text or as JSON.
func show(w io.Writer, v interface{ Print(io.Writer) }, asJSON bool) error {
	if asJSON {
		return printJSON(w, v)
	}
	v.Print(w)
	return nil
}

// printJSON prints indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
