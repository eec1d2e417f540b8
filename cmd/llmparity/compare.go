package main

import (
	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/record"
	"llmparity/reports"
)

func compareCommand() *cobra.Command {
	var json, details bool
	var html string
	c := &cobra.Command{
		Use:   "compare {DIR | FILE.csv}...",
		Short: "Show runs, and memory that other programs wrote down, beside each other",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var runs []*record.Run
			for _, dir := range args {
				r, err := openRun(dir)
				if err != nil {
					return err
				}
				runs = append(runs, r)
			}
			result := compare.Runs(runs...)
			if html != "" {
				if err := writeHTML(html, "name another file with --html", result, runs...); err != nil {
					return err
				}
			}
			if json {
				return reports.JSON(c.OutOrStdout(), result)
			}
			return terminal(details)(c.OutOrStdout(), result)
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print the result as JSON, for machines")
	c.Flags().StringVar(&html, "html", "", "also write an HTML report to this file")
	detailsFlag(c, &details)
	c.MarkFlagsMutuallyExclusive("json", "details")
	return c
}
