package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/kit/fault"
	"llmparity/internal/predict/calculator"
)

func compareEstimatesCommand() *cobra.Command {
	var c calculator.Calculated
	var unit string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare-estimates PROFILE.json...",
		Short: "Compare numbers of another memory calculator with measured ones",
		Long: `Compare the numbers of another memory calculator with measured ones, component by component.

PROFILE.json is a memory profile from "llmparity report DIR --profile". You give
the other calculator's numbers in GiB (2^30 bytes), or in GB (10^9 bytes) with --calc-unit GB.
With several profiles, each is compared with these numbers. With --json, the output is then a list.

Docs: docs/explanation/prediction.md`,
		Example: `  llmparity compare-estimates profile.json --calc-weights 13.5 --calc-kv 0.4
  llmparity compare-estimates profile.json --calc-weights 14.5 --calc-unit GB --json`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, part := range calculator.Parts {
				if cmd.Flags().Changed(part.Flag) && math.IsNaN(c[i]) {
					return fault.New(fault.Usage, "give a size in gigabytes", "--%s is not a number", part.Flag)
				}
			}
			if err := c.Check(); err != nil {
				return err
			}
			switch strings.ToLower(unit) {
			case "gib":
			case "gb":
				for i := range c {
					c[i] *= 1e9 / (1 << 30)
				}
			default:
				return fault.New(fault.Usage, "choose GiB or GB", "--calc-unit %s is unknown", unit)
			}
			return compareEstimates(cmd.OutOrStdout(), c, args, asJSON)
		},
	}
	for i, part := range calculator.Parts {
		cmd.Flags().Float64Var(&c[i], part.Flag, 0, part.Help)
		c[i] = math.NaN() // until it is given
	}
	cmd.Flags().StringVar(&unit, "calc-unit", "GiB",
		"unit of the other calculator's numbers: GiB (2^30 bytes) or GB (10^9 bytes)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// compareEstimates compares a calculation with profiles.
func compareEstimates(out io.Writer, c calculator.Calculated, paths []string, asJSON bool) error {
	var all []comparisonJSON
	for i, path := range paths {
		p, err := calculator.OpenProfile(path)
		if err != nil {
			return err
		}
		r := c.Against(p)
		all = append(all, comparisonJSON{"2.0", "comparison of estimates", map[string]string{"gb": "GiB (2^30 bytes)"},
			path, p.Model, p.Engine, r})
		if asJSON {
			continue
		}
		if len(paths) > 1 {
			fmt.Fprintf(out, "%s%s\n", strings.Repeat("\n", min(i, 1)), path)
		}
		r.Print(out, p)
	}
	switch {
	case !asJSON:
		return nil
	case len(all) == 1:
		return printJSON(out, all[0])
	}
	return printJSON(out, all)
}

type comparisonJSON struct {
	Schema  string            `json:"schema_version"`
	Kind    string            `json:"kind"`
	Units   map[string]string `json:"units"`
	Profile string            `json:"profile"`
	Model   string            `json:"model_name,omitempty"`
	Engine  string            `json:"engine_type,omitempty"`
	calculator.Comparison
}
