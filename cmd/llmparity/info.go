package main

import (
	"github.com/spf13/cobra"

	"llmparity/internal/inspect"
	"llmparity/internal/kinds"
)

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info MODEL",
		Short: "Say what a model is, what it takes, and what each engine here can do with it",
		Long: `Say what a model is, what it takes, and what each engine here can do with it. MODEL is a GGUF file, the folder of a WebLLM
package, or a compiled model library (.wasm), which is read without running it.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := inspect.Open(c.Context(), args[0], kinds.All, new(engineFlags).chosen())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), info)
			}
			info.Print(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines")
	return c
}
