package main

import (
	"strings"

	"github.com/spf13/cobra"

	"llmparity/docs/reference/schemas"
	"llmparity/internal/kit/fault"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema NAME",
		Short: "Print the JSON Schema of an output format",
		Long: "Print the JSON Schema (draft 2020-12) of a plan or an output format. NAME is one of\n" +
			strings.Join(schemas.Names(), ", ") + ".\n\nFormats: docs/reference/formats.md",
		Example:   "  llmparity schema plan\n  llmparity schema result > result.schema.json",
		Args:      arguments(cobra.ExactArgs(1)),
		ValidArgs: schemas.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := schemas.Text(args[0])
			if err != nil {
				return fault.New(fault.Usage, didYouMean(args[0], schemas.Names()), "unknown schema %q", args[0])
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}
