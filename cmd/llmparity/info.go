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
		Short: "Show a model's architecture, size, and which engines here can run it",
		Long: `Show a model's architecture and size, and which engines here can run it. MODEL is a GGUF file, a WebLLM
package's folder, or a compiled model library (.wasm), which is not executed.`,
		Example: "  llmparity model info my.gguf\n  llmparity model info my-webllm --json",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := inspect.Open(c.Context(), args[0], kinds.All, new(engineFlags).chosen())
			if err != nil {
				return err
			}
			return show(c.OutOrStdout(), info, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
