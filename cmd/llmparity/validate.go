package main

import (
	"github.com/spf13/cobra"

	"llmparity/compare/validate"
	"llmparity/internal/kit/fault"
	"llmparity/reports"
)

func validateCommand() *cobra.Command {
	var asJSON, markdown bool
	c := &cobra.Command{
		Use:   "validate DIR",
		Short: "Compare predicted with measured memory over many runs",
		Long: `Compare predicted with measured memory over all runs below a folder: median error, bias, largest error and
share within the predicted range, for each component, by engine and by context window. A table
of cells follows, the worst first. The exit code is 4 if a run cannot be read.

Docs: docs/explanation/prediction.md`,
		Example: `  llmparity validate results
  llmparity validate results --markdown > table.md`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			v, err := validate.Runs(c.Context(), args[0])
			if err != nil {
				return err
			}
			render := reports.ValidationTable
			if asJSON {
				render = reports.JSON
			} else if markdown {
				render = reports.ValidationMarkdown
			}
			if err := render(c.OutOrStdout(), v); err != nil {
				return err
			}
			if n := len(v.Broken); n > 0 {
				return fault.New(fault.BadRecord, "read them with the version that wrote them, or remove them",
					"%d of %d run folders cannot be read", n, n+v.Runs)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&markdown, "markdown", false, "print the tables as Markdown")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}
