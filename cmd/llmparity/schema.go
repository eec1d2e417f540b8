package main

import (
	"strings"

	"github.com/spf13/cobra"

	"llmparity/docs/reference/schemas"
	"llmparity/internal/fault"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema NAME",
		Short: "Print the JSON Schema of what is written: " + strings.Join(schemas.Names(), ", "),
		Long: `Print the published JSON Schema (draft 2020-12) of a document: ` + strings.Join(schemas.Names(), ", ") +
			`.
docs/reference/formats.md says which command writes which.`,
		Args:      arguments(cobra.ExactArgs(1)),
		ValidArgs: schemas.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := schemas.Text(args[0])
			if err != nil {
				return fault.Wrap(fault.Usage, err, "name one of those", "no schema")
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}
