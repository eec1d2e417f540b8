package main

import (
	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/reports"
)

func validateCommand() *cobra.Command {
	var asJSON, markdown bool
	c := &cobra.Command{
		Use:   "validate DIR",
		Short: "Hold what was foretold of memory against what was measured, over all runs below a folder",
		Long: `Hold what was foretold of memory against what was measured, over all runs below a folder, or of a single one: median error, bias, largest error
and the share within the range that was foretold, for each component, by engine and by context; then the cells, the worst first.

Runs of before there were forecasts count as runs without. A folder that can't be read is said and left out; the exit code is 22 then.`,
		Example: `  llmparity validate results
  llmparity validate results --markdown > table.md`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			v, err := compare.Validate(c.Context(), args[0])
			if err != nil {
				return err
			}
			render := reports.ValidationTable
			if asJSON {
				render = reports.ValidationJSON
			} else if markdown {
				render = reports.ValidationMarkdown
			}
			if err := render(c.OutOrStdout(), v); err != nil {
				return err
			}
			if n := len(v.Broken); n > 0 {
				return fault.New(fault.BadRecord, "read them with the version that wrote them, or remove them",
					"%d of %d run folders can't be read", n, n+v.Runs)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines")
	c.Flags().BoolVar(&markdown, "markdown", false, "print the tables as Markdown, for a document")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}
