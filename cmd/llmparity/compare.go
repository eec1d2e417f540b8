package main

import (
	"strings"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/record"
	"llmparity/reports"
)

func compareCommand() *cobra.Command {
	var details bool
	var html string
	var as formatFlags
	var minEffect float64
	var by []string
	options := comparison()
	var figures figureFlags
	c := &cobra.Command{
		Use:   "compare {DIR | FILE.csv}...",
		Short: "Compare two or more runs",
		Long: `Compare runs with each other, and with memory logs (CSV) that other tools wrote.

The first run is the baseline run. The figures of the other runs are compared with those of the first
run, in cells with the same engine, model, prompt and request. "~" means no significant difference.
Runs on different classes of devices are shown without ratios.`,
		Example: `  llmparity compare results/monday results/friday
  llmparity compare results/latest --by engine,context --format csv`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			format, err := as.chosen()
			if err != nil {
				return err
			}
			options.MinEffect = minEffect / 100
			if c.Flags().Changed("by") {
				options.By = append([]string{}, by...)
			}
			var runs []*record.Run
			for _, dir := range args {
				r, err := openRun(dir, true)
				if err != nil {
					return err
				}
				runs = append(runs, r)
			}
			if err := options.Check(runs...); err != nil {
				return err
			}
			defer frugal()()
			result := compare.With(options, runs...)
			if html != "" {
				if err := writeHTML(html, "name another file with --html", result, runs...); err != nil {
					return err
				}
			}
			if err := figures.write(c, "", result, runs...); err != nil {
				return err
			}
			if format != nil {
				return format.write(c.OutOrStdout(), as.out, result, runs...)
			}
			show := reports.Comparison
			if details {
				show = reports.Details
			}
			return show(c.OutOrStdout(), result)
		},
	}
	as.register(c)
	c.Flags().StringVarP(&as.out, "output", "o", "",
		"with --format: file or folder to write instead of standard output")
	c.Flags().StringVar(&html, "html", "", "also write an HTML report to this file")
	c.Flags().StringSliceVar(&by, "by", nil, "average over cells with the same "+
		strings.Join(compare.Fields(), ", ")+", or an engine's own field that the plan varied")
	c.Flags().Float64Var(&minEffect, "min-effect", 100*options.MinEffect,
		"ignore differences below this percentage")
	toleranceFlag(c, &options)
	c.Flags().BoolVar(&options.AllowDifferent, "allow-different", false,
		"also show ratios between different classes of devices or isolations, with a mark")
	c.Flags().StringToStringVar(&options.Reference, referenceFlag, nil, referenceHelp)
	figures.register(c)
	detailsFlag(c, &details)
	c.MarkFlagsMutuallyExclusive("json", "format", "details")
	return c
}
