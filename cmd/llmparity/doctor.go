package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"llmparity/internal/doctor"
	"llmparity/internal/kinds"
)

func doctorCommand() *cobra.Command {
	var f engineFlags
	var asJSON bool
	var o doctor.Options
	c := &cobra.Command{
		Use:     "doctor",
		Aliases: []string{"env"},
		Short:   "Say what is here, what is missing, and how to get it",
		Long: "Say what this machine is, what of llmparity's parts is here, what is missing, and how to get it. The class of the error is that of " +
			"the first part that is missing.",
		Example: "  llmparity doctor\n  llmparity env --quick --json\n  llmparity doctor --openai-url http://127.0.0.1:8000",
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
			if !asJSON {
				d.Print(c.OutOrStdout())
			} else if err := printJSON(c.OutOrStdout(), d); err != nil {
				return fmt.Errorf("writing what was found: %w", err)
			}
			return d.Err()
		},
	}
	f.register(c.Flags(), ofParts)
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines (docs/howto/check-a-machine.md)")
	c.Flags().BoolVar(&o.Quick, "quick", false, "start no browser: nothing is told of WebGPU then")
	c.Flags().BoolVar(&o.Servers, "servers", false,
		"also ask the ports of this machine where servers of models usually listen")
	return c
}

// printJSON prints for machines what people can read too.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
